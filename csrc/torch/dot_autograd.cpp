// The gradients of gpureduce::vecdot and gpureduce::dot, a Node like that of gpureduce::sum.

#include <ATen/ExpandUtils.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include <mutex>

#include "dot.h"
#include "node.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::dynamo::autograd::IValuePacker;

// What backward needs of a call, apart from the inputs.
struct PairFacts {
    std::vector<c10::SymInt> x_sizes, y_sizes;
    int64_t dim = 0;  // of the broadcast inputs; -1 if they have none
    bool conjugate = false;

    PairFacts() = default;
    explicit PairFacts(const PairCall& call)
        : x_sizes(call.x.sym_sizes().vec()),
          y_sizes(call.y.sym_sizes().vec()),
          dim(call.dim),
          conjugate(call.conjugate) {}
};

// x and y are defined where the gradient of the other is wanted.
variable_list pair_backward(const variable_list& gradients, const at::Tensor& x, const at::Tensor& y,
                            const PairFacts& facts) {
    at::Tensor gradient = gradients[0];
    if (!gradient.defined()) return variable_list(kInputs);
    if (facts.dim >= 0) gradient = gradient.unsqueeze(facts.dim);
    std::vector<c10::SymInt> const all = at::infer_size_symint(facts.x_sizes, facts.y_sizes);
    auto const summed = [&](const at::Tensor& products, const std::vector<c10::SymInt>& sizes) {
        return at::sum_to(products.expand_symint(all), sizes);
    };
    variable_list result(kInputs);
    if (y.defined())
        result[0] = summed(facts.conjugate ? gradient.conj().mul(y) : gradient.mul(y.conj()), facts.x_sizes);
    if (x.defined()) result[1] = summed(gradient.mul(facts.conjugate ? x : x.conj()), facts.y_sizes);
    return result;
}

variable_list pair_backward_unpacked(const variable_list& gradients, const std::vector<at::IValue>& arguments) {
    torch::dynamo::autograd::PackedArgs packed(arguments);
    auto const x = packed.unpack<at::Tensor>();
    auto const y = packed.unpack<at::Tensor>();
    PairFacts facts;
    facts.x_sizes = packed.unpack<std::vector<c10::SymInt>>();
    facts.y_sizes = packed.unpack<std::vector<c10::SymInt>>();
    facts.dim = packed.unpack<int64_t>();
    facts.conjugate = packed.unpack<bool>();
    return pair_backward(gradients, x, y, facts);
}

struct PairBackward final : Node {
    SavedVariable x, y;
    PairFacts facts;

    std::string name() const override { return facts.conjugate ? "GpureduceVecdotBackward" : "GpureduceDotBackward"; }

    variable_list apply(variable_list&& gradients) override {
        std::lock_guard const lock(mutex_);
        return pair_backward(gradients, x.unpack(), y.unpack(), facts);
    }
    void release_variables() override {
        std::lock_guard const lock(mutex_);
        x.reset_data();
        y.reset_data();
    }

    void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override {
        args.collect(x, /*is_output=*/false);
        args.collect(y, /*is_output=*/false);
        args.collect(facts.x_sizes);
        args.collect(facts.y_sizes);
        args.collect(facts.dim);
        args.collect(facts.conjugate);
    }
    variable_list apply_with_saved(const variable_list& gradients,
                                   torch::dynamo::autograd::SwapSavedVariables& saved) override {
        auto const& compiler = torch::dynamo::autograd::getPyCompilerInterface();
        using Sizes = std::vector<c10::SymInt>;
        static std::once_flag bound[2];
        std::call_once(bound[facts.conjugate], [&] {
            compiler->bind_function(saved.get_py_compiler(), name(), pair_backward_unpacked,
                                    {IValuePacker<at::Tensor>::packed_type(), IValuePacker<at::Tensor>::packed_type(),
                                     IValuePacker<Sizes>::packed_type(), IValuePacker<Sizes>::packed_type(),
                                     IValuePacker<int64_t>::packed_type(), IValuePacker<bool>::packed_type()});
        });
        saved.before(x);
        saved.before(y);
        saved.before(facts.x_sizes);
        saved.before(facts.y_sizes);
        torch::dynamo::autograd::PackedArgs packed;
        packed.pack(at::Tensor(x.unpack()));
        packed.pack(at::Tensor(y.unpack()));
        packed.pack(facts.x_sizes);
        packed.pack(facts.y_sizes);
        packed.pack(facts.dim);
        packed.pack(facts.conjugate);
        saved.after(x);
        saved.after(y);
        saved.after(facts.x_sizes);
        saved.after(facts.y_sizes);
        auto const outputs = torch::dynamo::autograd::get_input_metadata(next_edges());
        return compiler->call_function(saved.get_py_compiler(), "apply_functional", name(), gradients,
                                       std::move(packed).vec(),
                                       IValuePacker<std::decay_t<decltype(outputs)>>::pack(outputs));
    }
};

// `below(x, y)` redispatches the operator, and `call(x, y)` calls it anew; `check` gives the PairCall.
template <class Below, class Call, class Check>
at::Tensor pair_autograd(const at::Tensor& x, const at::Tensor& y, Below below, Call call, Check check) {
    bool const x_grad = torch::autograd::compute_requires_grad(x), y_grad = torch::autograd::compute_requires_grad(y);
    bool const x_tangent = has_tangent(x), y_tangent = has_tangent(y);
    if (!x_grad && !y_grad && !x_tangent && !y_tangent) return below(x, y);

    PairFacts const facts(check());
    at::Tensor result = [&] {
        at::AutoDispatchBelowADInplaceOrView const guard;
        return below(x, y);
    }();
    if (!torch::autograd::isDifferentiableType(result.scalar_type())) return result;
    if (x_grad || y_grad) {
        auto* const node = new PairBackward;
        OwningNode const owner = owning_node(node);
        node->set_next_edges(torch::autograd::collect_next_edges(x, y));
        node->facts = facts;
        if (y_grad) node->x = SavedVariable(x, /*is_output=*/false);
        if (x_grad) node->y = SavedVariable(y, /*is_output=*/false);
        torch::autograd::set_history(result, owner);
    }
    if (x_tangent || y_tangent) {
        at::Tensor tangent;
        if (x_tangent) tangent = call(x._fw_grad(/*level=*/0), primal(y));
        if (y_tangent) {
            at::Tensor const other = call(primal(x), y._fw_grad(/*level=*/0));
            tangent = tangent.defined() ? tangent.add(other) : other;
        }
        result._set_fw_grad(tangent, /*level=*/0, /*is_inplace_op=*/false);
    }
    return result;
}

using Text = std::optional<std::string_view>;

at::Tensor vecdot_autograd(c10::DispatchKeySet keys, const at::Tensor& x, const at::Tensor& y, int64_t dim,
                           Text accumulate) {
    auto const& op = vecdot_operator();
    return pair_autograd(
        x, y,
        [&](const at::Tensor& a, const at::Tensor& b) {
            return op.redispatch(keys & c10::after_autograd_keyset, a, b, dim, accumulate);
        },
        [&](const at::Tensor& a, const at::Tensor& b) { return op.call(a, b, dim, accumulate); },
        [&] { return check_vecdot(x, y, dim, accumulate); });
}

at::Tensor dot_autograd(c10::DispatchKeySet keys, const at::Tensor& self, const at::Tensor& tensor) {
    auto const& op = dot_operator();
    return pair_autograd(
        self, tensor,
        [&](const at::Tensor& a, const at::Tensor& b) {
            return op.redispatch(keys & c10::after_autograd_keyset, a, b);
        },
        [&](const at::Tensor& a, const at::Tensor& b) { return op.call(a, b); },
        [&] { return check_dot(self, tensor); });
}

const Registration dot_autograd_kernels(c10::DispatchKey::Autograd, [](torch::Library& m) {
    m.impl("vecdot", vecdot_autograd);
    m.impl("dot", dot_autograd);
});

}  // namespace
}  // namespace gpureduce::binding
