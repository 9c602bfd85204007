// The gradient of gpureduce::total_norm, a Node like that of gpureduce::sum.

#include <ATen/ops/ones_like.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include <mutex>

#include "list.h"
#include "node.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::dynamo::autograd::IValuePacker;

// d norm / d tensor times the gradient. torch's rules: 0 where the norm is 0; the infinity norm shares it among its elements.
variable_list list_gradients(const at::Tensor& gradient, const std::vector<at::Tensor>& tensors, const at::Tensor& norm,
                             Norm kind) {
    variable_list gradients;
    gradients.reserve(tensors.size());
    if (kind == Norm::two) {
        at::Tensor const share = gradient.div(norm).masked_fill(norm.eq(0), 0);
        for (at::Tensor const& tensor : tensors) gradients.push_back(tensor.mul(share));
        return gradients;
    }
    if (kind == Norm::one) {
        for (at::Tensor const& tensor : tensors) gradients.push_back(tensor.sgn().mul(gradient));
        return gradients;
    }
    std::vector<at::Tensor> masks;
    at::Tensor count;
    for (at::Tensor const& tensor : tensors) {
        at::Tensor const size = tensor.abs();
        masks.push_back(size.eq(norm).logical_or_(size.isnan()));
        at::Tensor const found = masks.back().sum();
        count = count.defined() ? count.add(found) : found;
    }
    at::Tensor const share = gradient.div(count);
    for (size_t i = 0; i < tensors.size(); ++i) gradients.push_back(tensors[i].sgn().mul(share.mul(masks[i])));
    return gradients;
}

variable_list norm_backward(const variable_list& gradients, const std::vector<at::Tensor>& tensors,
                            const at::Tensor& norm, Norm kind) {
    if (!gradients[0].defined()) return variable_list(tensors.size());
    return list_gradients(gradients[0], tensors, norm, kind);
}

variable_list norm_backward_unpacked(const variable_list& gradients, const std::vector<at::IValue>& arguments) {
    torch::dynamo::autograd::PackedArgs packed(arguments);
    auto const tensors = packed.unpack<std::vector<at::Tensor>>();
    auto const norm = packed.unpack<at::Tensor>();
    return norm_backward(gradients, tensors, norm, Norm(packed.unpack<int64_t>()));
}

struct TotalNormBackward final : Node {
    std::vector<SavedVariable> tensors;
    SavedVariable norm;
    int64_t kind = 0;

    std::string name() const override { return "GpureduceTotalNormBackward"; }

    std::vector<at::Tensor> unpacked() {
        std::vector<at::Tensor> all;
        all.reserve(tensors.size());
        for (SavedVariable const& saved : tensors) all.push_back(saved.unpack());
        return all;
    }
    variable_list apply(variable_list&& gradients) override {
        std::lock_guard const lock(mutex_);
        return norm_backward(gradients, unpacked(), norm.unpack(owner_of(this)), Norm(kind));
    }
    void release_variables() override {
        std::lock_guard const lock(mutex_);
        for (SavedVariable& saved : tensors) saved.reset_data();
        norm.reset_data();
    }

    void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override {
        args.collect(tensors, /*is_output=*/false);
        args.collect(norm, /*is_output=*/true);
        args.collect(kind);
    }
    variable_list apply_with_saved(const variable_list& gradients,
                                   torch::dynamo::autograd::SwapSavedVariables& saved) override {
        auto const& compiler = torch::dynamo::autograd::getPyCompilerInterface();
        static std::once_flag bound;
        std::call_once(bound, [&] {
            compiler->bind_function(saved.get_py_compiler(), name(), norm_backward_unpacked,
                                    {IValuePacker<std::vector<at::Tensor>>::packed_type(),
                                     IValuePacker<at::Tensor>::packed_type(), IValuePacker<int64_t>::packed_type()});
        });
        saved.before(tensors);
        saved.before(norm);
        torch::dynamo::autograd::PackedArgs packed;
        packed.pack(unpacked());
        packed.pack(at::Tensor(norm.unpack(owner_of(this))));
        packed.pack(kind);
        saved.after(tensors);
        saved.after(norm);
        auto const outputs = torch::dynamo::autograd::get_input_metadata(next_edges());
        return compiler->call_function(saved.get_py_compiler(), "apply_functional", name(), gradients,
                                       std::move(packed).vec(),
                                       IValuePacker<std::decay_t<decltype(outputs)>>::pack(outputs));
    }
};

// Of the norm of tensors that have tangents.
at::Tensor norm_tangent(at::TensorList tensors, const at::Tensor& norm, Norm kind) {
    std::vector<at::Tensor> primals, tangents;
    for (at::Tensor const& tensor : tensors) {
        primals.push_back(primal(tensor));
        tangents.push_back(tensor._fw_grad(/*level=*/0));
    }
    variable_list const slopes = list_gradients(at::ones_like(norm), primals, norm, kind);
    at::Tensor sum = at::zeros_like(norm);
    for (size_t i = 0; i < slopes.size(); ++i)
        if (tangents[i].defined()) sum = sum.add(at::real(slopes[i].conj().mul(tangents[i])).sum());
    return sum;
}

at::Tensor total_norm_autograd(c10::DispatchKeySet keys, at::TensorList tensors, const at::Scalar& ord) {
    auto const& op = total_norm_operator();
    c10::DispatchKeySet const below = keys & c10::after_autograd_keyset;
    bool const requires_grad = torch::autograd::compute_requires_grad(tensors);
    bool const any_tangent = std::any_of(tensors.begin(), tensors.end(), has_tangent);
    if (!requires_grad && !any_tangent) return op.redispatch(below, tensors, ord);

    total_norm_type(tensors, "gpureduce::total_norm");
    auto const kind = kernel_norm(ord);
    if (!kind || !is_uniform(tensors)) return composite_norm(tensors, ord);  // its steps are differentiable
    at::Tensor result = [&] {
        at::AutoDispatchBelowADInplaceOrView const guard;
        return op.redispatch(below, tensors, ord);
    }();
    auto* const node = requires_grad ? new TotalNormBackward : nullptr;
    if (node != nullptr) {
        OwningNode const owner = owning_node(node);
        node->set_next_edges(torch::autograd::collect_next_edges(tensors));
        node->kind = int64_t(*kind);
        for (at::Tensor const& tensor : tensors) node->tensors.emplace_back(tensor, /*is_output=*/false);
        torch::autograd::set_history(result, owner);
    }
    if (any_tangent)
        result._set_fw_grad(norm_tangent(tensors, primal(result), *kind), /*level=*/0, /*is_inplace_op=*/false);
    if (node != nullptr) node->norm = SavedVariable(result, /*is_output=*/true);  // with its tangent
    return result;
}

const Registration list_autograd_kernel(c10::DispatchKey::Autograd,
                                        [](torch::Library& m) { m.impl("total_norm", total_norm_autograd); });

}  // namespace
}  // namespace gpureduce::binding
