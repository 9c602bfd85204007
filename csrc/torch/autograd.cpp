// The gradient of gpureduce::sum: a Node like those that torch generates for its own operators, so that everything that
// works for them works here: double backward, forward-mode AD, torch.func, torch.compile, compiled autograd.

#include <ATen/ops/real.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include <mutex>

#include "reduce.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;
using torch::dynamo::autograd::IValuePacker;

// What backward needs of a call; no tensor is saved.
struct SavedCall {
    std::vector<c10::SymInt> sizes;  // of self
    int64_t lost_dims = 0;           // bit d: dim d of self is not in the result
    at::ScalarType self_type = at::kFloat;
};

// Every element of a row gets the row's gradient. Made of aten views, so it differentiates and fuses; the conversion
// comes before the expansion because it copies.
variable_list sum_backward(const variable_list& gradients, const SavedCall& call) {
    at::Tensor gradient = gradients[0];
    if (!gradient.defined()) return {at::Tensor()};
    if (gradient.is_complex() && !at::isComplexType(call.self_type)) gradient = at::real(gradient);
    gradient = gradient.to(call.self_type);
    for (int d = 0; d < int(call.sizes.size()); ++d)
        if (call.lost_dims >> d & 1) gradient = gradient.unsqueeze(d);
    return {gradient.expand_symint(call.sizes)};
}

variable_list sum_backward_unpacked(const variable_list& gradients, const std::vector<at::IValue>& arguments) {
    torch::dynamo::autograd::PackedArgs packed(arguments);
    SavedCall call;
    call.sizes = packed.unpack<std::vector<c10::SymInt>>();
    call.lost_dims = packed.unpack<int64_t>();
    call.self_type = packed.unpack<at::ScalarType>();
    return sum_backward(gradients, call);
}

struct SumBackward final : Node {
    SavedCall call;

    std::string name() const override { return "GpureduceSumBackward"; }

    variable_list apply(variable_list&& gradients) override { return sum_backward(gradients, call); }

    // Compiled autograd: what the compiled graph depends on; sizes become its inputs.
    void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override {
        args.collect(call.sizes);
        args.collect(call.lost_dims);
        args.collect(call.self_type);
    }

    // Compiled autograd: puts a call of sum_backward_unpacked into the graph that is being traced.
    variable_list apply_with_saved(const variable_list& gradients,
                                   torch::dynamo::autograd::SwapSavedVariables& saved) override {
        auto const& compiler = torch::dynamo::autograd::getPyCompilerInterface();
        static std::once_flag bound;
        std::call_once(bound, [&] {
            compiler->bind_function(
                saved.get_py_compiler(), name(), sum_backward_unpacked,
                {IValuePacker<std::vector<c10::SymInt>>::packed_type(), IValuePacker<int64_t>::packed_type(),
                 IValuePacker<at::ScalarType>::packed_type()});
        });
        saved.before(call.sizes);
        torch::dynamo::autograd::PackedArgs packed;
        packed.pack(call.sizes);
        packed.pack(call.lost_dims);
        packed.pack(call.self_type);
        saved.after(call.sizes);
        auto const outputs = torch::dynamo::autograd::get_input_metadata(next_edges());
        return compiler->call_function(saved.get_py_compiler(), "apply_functional", name(), gradients,
                                       std::move(packed).vec(),
                                       IValuePacker<std::decay_t<decltype(outputs)>>::pack(outputs));
    }
};

// Nodes are counted intrusively since torch 2.13, by std::shared_ptr before.
using NodePointer = decltype(torch::autograd::Edge::function);

template <class Derived, class Pointer = NodePointer>
Pointer make_node(Derived* node) {
    if constexpr (std::is_same_v<Pointer, std::shared_ptr<Node>>)
        return Pointer(node, [](Derived* dead) { deleteNode(dead); });  // without recursion, however deep the graph
    else
        return Pointer(std::unique_ptr<Node>(node));
}

NodePointer node_of(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim) {
    auto* node = new SumBackward;
    NodePointer pointer = make_node(node);
    node->set_next_edges(torch::autograd::collect_next_edges(self));
    node->call.sizes = self.sym_sizes().vec();
    node->call.self_type = self.scalar_type();
    bool reduced[kMaxDims];
    int const dims = check_dims(dim, self.dim(), reduced);
    for (int d = 0; d < dims && !keepdim; ++d) node->call.lost_dims |= int64_t(uint64_t(reduced[d]) << d);
    return pointer;
}

at::Tensor sum_autograd(c10::DispatchKeySet keys, const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                        std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate) {
    auto const& op = sum_operator();
    c10::DispatchKeySet const below = keys & c10::after_autograd_keyset;
    bool const requires_grad = torch::autograd::compute_requires_grad(self);
    if (!requires_grad && !self._fw_grad(/*level=*/0).defined())
        return op.redispatch(below, self, dim, keepdim, dtype, accumulate);

    at::Tensor result = [&] {
        at::AutoDispatchBelowADInplaceOrView const guard;
        return op.redispatch(below, self, dim, keepdim, dtype, accumulate);
    }();
    if (requires_grad) torch::autograd::set_history(result, node_of(self, dim, keepdim));
    at::Tensor const tangent = self._fw_grad(/*level=*/0);
    if (tangent.defined() && torch::autograd::isDifferentiableType(result.scalar_type()))
        result._set_fw_grad(op.call(tangent, dim, keepdim, dtype, accumulate), /*level=*/0, /*is_inplace_op=*/false);
    return result;
}

const Registration autograd_kernels(c10::DispatchKey::Autograd, [](torch::Library& m) { m.impl("sum", sum_autograd); });

}  // namespace
}  // namespace gpureduce::binding
