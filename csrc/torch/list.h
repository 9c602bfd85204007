// gpureduce::total_norm and gpureduce::clip_grads_: lists of tensors, made ready for one call of a kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Scalar.h>

#include <optional>
#include <vector>

#include "../core/list.h"

namespace gpureduce::binding {

using TotalNormSignature = at::Tensor(at::TensorList, const at::Scalar&);
const c10::TypedOperatorHandle<TotalNormSignature>& total_norm_operator();

// A list as the kernels take it: of one device and type, and each tensor's elements side by side in memory.
struct GatheredList {
    c10::Device device = at::kCPU;
    at::ScalarType result = at::kFloat;
    std::vector<Piece> pieces;  // of the tensors that have elements
    struct Copy {
        size_t tensor;
        at::Tensor copy;
    };
    std::vector<Copy> copies;  // made of those whose elements lie apart
    ListProblem problem;       // refers to the pieces

    GatheredList() = default;
    GatheredList(const GatheredList&) = delete;
    GatheredList& operator=(const GatheredList&) = delete;
};

// The norm that there are kernels for.
std::optional<Norm> kernel_norm(const at::Scalar& ord);

// Of all tensors, as torch.nn.utils.get_total_norm gives it. Throws for types that have no norm.
at::ScalarType total_norm_type(at::TensorList tensors, const char* op);

// The one device and type of the list, as far as there are kernels for it.
bool is_uniform(at::TensorList tensors);

// What a device does with a gathered list: gives its norm, and multiplies its tensors so that it is at most max_norm, if there
// is one.
using RunList = at::Tensor(const GatheredList& list, std::optional<double> max_norm);

// What a device's kernels of the operators do around `run`; other lists and norms are taken apart.
at::Tensor total_norm_with(at::TensorList tensors, const at::Scalar& ord, RunList* run);
at::Tensor clip_with(at::TensorList gradients, const at::Scalar& max_norm, const at::Scalar& ord, RunList* run);

// The norm in several steps, each differentiable.
at::Tensor composite_norm(at::TensorList tensors, const at::Scalar& ord);

}  // namespace gpureduce::binding
