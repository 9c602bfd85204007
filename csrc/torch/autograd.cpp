// The gradients of the operators: a Node like those that torch generates for its own, so that everything that works for them
// works here: double backward, forward-mode AD, torch.func, torch.compile, compiled autograd. The formulas are in gradients.h.

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include <cctype>
#include <memory>
#include <mutex>

#include "gradients.h"
#include "kernels.h"
#include "node.h"
#include "reduce.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::dynamo::autograd::IValuePacker;
using torch::dynamo::autograd::PackedArgs;

// "GpureduceSumBackward" of sum, "GpureduceMaxDimBackward" of max.dim.
std::string node_name(const Operator& op) {
    std::string name = "Gpureduce";
    bool starts = true;
    for (char const c : registered_name(op, op.overload)) {
        if (c != '_' && c != '.') name += starts ? char(std::toupper(c)) : c;
        starts = c == '_' || c == '.';
    }
    return name + "Backward";
}

// --- what a node holds, as values of compiled autograd --------------------------------------------------------------

// f(value) for everything of a call but its tensors.
template <class Values, class F>
void for_values(Values& call, F&& f) {
    f(call.sizes);
    f(call.reduced);
    f(call.keepdim);
    f(call.parameter);
    f(call.self_type);
    f(call.result_type);
}

std::vector<at::TypePtr> packed_types(GradientRule rule) {
    GradientCall const like;
    std::vector<at::TypePtr> types;
    for_values(like,
               [&](auto const& value) { types.push_back(IValuePacker<std::decay_t<decltype(value)>>::packed_type()); });
    Saves const saves = saves_of(rule);
    for (bool const saved : {saves.self, saves.first, saves.second})
        if (saved) types.push_back(IValuePacker<at::Tensor>::packed_type());
    return types;
}

std::vector<at::IValue> pack(const GradientCall& call) {
    PackedArgs packed;
    for_values(call, [&](auto const& value) { packed.pack(value); });
    for (at::Tensor const* tensor : {&call.self, &call.first, &call.second})
        if (tensor->defined()) packed.pack(*tensor);
    return std::move(packed).vec();
}

GradientCall unpack(GradientRule rule, const std::vector<at::IValue>& arguments) {
    PackedArgs packed(arguments);
    GradientCall call;
    call.rule = rule;
    for_values(call, [&](auto& value) { value = packed.unpack<std::decay_t<decltype(value)>>(); });
    Saves const saves = saves_of(rule);
    if (saves.self) call.self = packed.unpack<at::Tensor>();
    if (saves.first) call.first = packed.unpack<at::Tensor>();
    if (saves.second) call.second = packed.unpack<at::Tensor>();
    return call;
}

// --- the node -------------------------------------------------------------------------------------------------------

// The tensors of a call that a rule wants to find; most calls of linear ones have no such thing.
struct SavedTensors {
    SavedVariable self, first, second;
};

// f(tensor, whether it is a result) for those that are saved.
template <class F>
void for_saved(Saves saves, SavedTensors* saved, F&& f) {
    if (saves.self) f(saved->self, false);
    if (saves.first) f(saved->first, true);
    if (saves.second) f(saved->second, true);
}

struct Backward final : Node {
    explicit Backward(const Operator& row) : op(row) {}

    const Operator& op;
    GradientCall call;  // without its tensors
    std::unique_ptr<SavedTensors> tensors;

    std::string name() const override { return node_name(op); }

    // The call with its tensors. One that was written to meanwhile, or released, is an error of torch's.
    GradientCall whole() {
        Saves const saves = saves_of(call.rule);
        GradientCall with = call;
        if (saves.self) with.self = tensors->self.unpack();
        if (saves.first) with.first = tensors->first.unpack(getptr());
        if (saves.second) with.second = tensors->second.unpack(getptr());
        return with;
    }

    variable_list apply(variable_list&& gradients) override {
        if (!tensors) return backward(call, gradients);
        std::unique_lock lock(mutex_);
        GradientCall const with = whole();
        lock.unlock();
        return backward(with, gradients);
    }

    void release_variables() override {
        if (!tensors) return;
        std::lock_guard const lock(mutex_);
        for_saved(saves_of(call.rule), tensors.get(), [](SavedVariable& tensor, bool) { tensor.reset_data(); });
    }

    // Compiled autograd: what the compiled graph depends on; sizes and tensors become its inputs.
    void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override {
        args.collect(int64_t(&op - kOperators));
        for_values(call, [&](auto const& value) { args.collect(value); });
        if (tensors)
            for_saved(saves_of(call.rule), tensors.get(),
                      [&](const SavedVariable& tensor, bool is_result) { args.collect(tensor, is_result); });
    }

    // Compiled autograd: puts a call of the formula into the graph that is being traced.
    variable_list apply_with_saved(const variable_list& gradients,
                                   torch::dynamo::autograd::SwapSavedVariables& saved) override {
        auto const& compiler = torch::dynamo::autograd::getPyCompilerInterface();
        static std::once_flag bound[kRows];
        GradientRule const rule = call.rule;
        std::call_once(bound[&op - kOperators], [&] {
            compiler->bind_function(
                saved.get_py_compiler(), name(),
                [rule](const variable_list& each, const std::vector<at::IValue>& arguments) {
                    return backward(unpack(rule, arguments), each);
                },
                packed_types(rule));
        });
        Saves const saves = tensors ? saves_of(rule) : Saves{};
        saved.before(call.sizes);
        for_saved(saves, tensors.get(), [&](SavedVariable& tensor, bool) { saved.before(tensor); });
        auto packed = pack(whole());
        saved.after(call.sizes);
        for_saved(saves, tensors.get(), [&](SavedVariable& tensor, bool) { saved.after(tensor); });
        auto const outputs = torch::dynamo::autograd::get_input_metadata(next_edges());
        return compiler->call_function(saved.get_py_compiler(), "apply_functional", name(), gradients,
                                       std::move(packed), IValuePacker<std::decay_t<decltype(outputs)>>::pack(outputs));
    }
};

GradientCall describe(const Call& call, const at::Tensor& first) {
    GradientCall gradient;
    gradient.rule = call.op.gradient;
    gradient.sizes = call.self.sym_sizes().vec();
    bool reduced[kMaxDims];
    int const dims = check_dims(call, reduced);
    for (int d = 0; d < dims; ++d) gradient.reduced |= int64_t(uint64_t(reduced[d]) << d);
    gradient.keepdim = call.keepdim;
    gradient.parameter = call.parameter;
    gradient.self_type = call.self.scalar_type();
    gradient.result_type = first.scalar_type();
    return gradient;
}

// Gives the results their history.
Backward& set_history(const Call& call, const at::Tensor& first, const at::Tensor& second) {
    auto* const node = new Backward(call.op);
    OwningNode const pointer = owning_node(node);
    node->set_next_edges(torch::autograd::collect_next_edges(call.self));
    node->call = describe(call, first);
    torch::autograd::set_history(first, pointer);
    if (has_second_gradient(call.op.gradient)) torch::autograd::set_history(second, pointer);
    return *node;
}

// Results are saved after they have their history, since they must not own their node, and after they have their tangents,
// which a derivative of the gradient asks for.
void save(const Call& call, const at::Tensor& first, const at::Tensor& second, Backward& node) {
    Saves const saves = saves_of(call.op.gradient);
    if (!saves.self && !saves.first && !saves.second) return;
    node.tensors = std::make_unique<SavedTensors>();
    if (saves.self) node.tensors->self = SavedVariable(call.self, /*is_output=*/false);
    if (saves.first) node.tensors->first = SavedVariable(first, /*is_output=*/true);
    if (saves.second) node.tensors->second = SavedVariable(second, /*is_output=*/true);
}

void set_tangents(const at::Tensor* const* results, const variable_list& tangents) {
    for (size_t i = 0; i < tangents.size(); ++i)
        if (tangents[i].defined() && torch::autograd::isDifferentiableType(results[i]->scalar_type()))
            results[i]->_set_fw_grad(tangents[i], /*level=*/0, /*is_inplace_op=*/false);
}

// What a call of a rule that is not linear sees of its arguments: self without its tangent, and the results.
variable_list forward_of(const Call& call, const at::Tensor& tangent, const at::Tensor& first,
                         const at::Tensor& second) {
    GradientCall gradient = describe(call, first);
    gradient.self = call.self._fw_primal(/*level=*/0);
    gradient.first = first;
    gradient.second = second;
    return forward(gradient, tangent);
}

struct Autograd {
    static constexpr bool composes = false;
    template <size_t Row>
    static ResultOf<Row> run(c10::DispatchKeySet keys, const Call& call) {
        c10::DispatchKeySet const below = keys & c10::after_autograd_keyset;
        bool const requires_grad = torch::autograd::compute_requires_grad(call.self);
        at::Tensor const tangent = call.self._fw_grad(/*level=*/0);
        if (!requires_grad && !tangent.defined()) return redispatch<Row>(below, call);

        ResultOf<Row> results = [&] {
            at::AutoDispatchBelowADInplaceOrView const guard;
            return redispatch<Row>(below, call);
        }();
        at::Tensor const none;
        at::Tensor const *first, *second = &none;
        if constexpr (has_two<Row>)
            first = &std::get<0>(results), second = &std::get<1>(results);
        else
            first = &results;
        Backward* const node = requires_grad ? &set_history(call, *first, *second) : nullptr;
        if (tangent.defined() && torch::autograd::isDifferentiableType(first->scalar_type())) {
            at::Tensor const* const each[] = {first, second};
            if constexpr (is_linear(kOperators[Row].gradient))
                set_tangents(each, {dispatch<Row>(call.of(tangent))});
            else
                set_tangents(each, forward_of(call, tangent, *first, *second));
        }
        if (node) save(call, *first, *second, *node);
        return results;
    }
};

const Registration autograd_kernels(c10::DispatchKey::Autograd, [](torch::Library& m) {
    for_every_row([&](auto row) {
        constexpr Operator const& op = kOperators[row];
        std::string const name = registered_name(op, op.overload);
        if constexpr (op.gradient == GradientRule::none)  // nothing for autograd to see
            m.impl(name.c_str(), torch::CppFunction::makeFallthrough());
        else
            m.impl(name.c_str(), PlainKernel<Autograd, row>::run_with_keys);
    });
});

}  // namespace
}  // namespace gpureduce::binding
