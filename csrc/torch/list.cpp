#include "list.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

#include <cmath>

#include "../core/store.h"
#include "../cpu/run.h"
#include "reduce.h"
#include "registration.h"
#include "types.h"

namespace gpureduce::binding {
namespace {

bool has_kernels(at::ScalarType type, Norm norm) {
    if (at::isComplexType(type)) return norm == Norm::two && type != at::kComplexHalf;  // that of its parts
    return type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
}

bool lies_together(const at::Tensor& tensor) {
    return tensor.is_non_overlapping_and_dense() &&
           reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % tensor.element_size() == 0;
}

// False where the kernels do not take the list, or not that norm of it. With `writes`, its tensors will be written to.
bool gather(at::TensorList tensors, std::optional<Norm> norm, bool writes, GatheredList& list) {
    if (!norm || !is_uniform(tensors)) return false;
    at::ScalarType const type = tensors[0].scalar_type();
    if (!has_kernels(type, *norm)) return false;
    list.device = tensors[0].device();
    list.result = c10::toRealValueType(type);
    list.pieces.reserve(tensors.size());
    int const parts = at::isComplexType(type) ? 2 : 1;
    for (size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].numel() == 0) continue;
        at::Tensor const* tensor = &tensors[i];
        if (!lies_together(*tensor)) {
            list.copies.push_back({i, tensor->clone(at::MemoryFormat::Contiguous)});
            tensor = &list.copies.back().copy;
        }
        void* const data = writes ? tensor->mutable_data_ptr() : const_cast<void*>(tensor->const_data_ptr());
        list.pieces.push_back({data, parts * tensor->numel()});
    }
    DType const in = *element_of(list.result);
    list.problem = make_list_problem(list.pieces.data(), int64_t(list.pieces.size()), in, *norm);
    return list.problem.leaves <= kMostListLeaves;
}

void check_not_empty(at::TensorList tensors, std::optional<Norm> norm, const char* op) {
    if (norm != Norm::infinity) return;
    for (at::Tensor const& tensor : tensors)
        if (tensor.numel() > 0) return;
    TORCH_CHECK(false, op, ": the infinity norm of no elements does not exist, and the tensors have none");
}

// Lists of the same device and type, in the order of their first tensors.
std::vector<std::vector<at::Tensor>> groups_of(at::TensorList tensors) {
    std::vector<std::vector<at::Tensor>> groups;
    for (at::Tensor const& tensor : tensors) {
        auto const same = [&](const std::vector<at::Tensor>& group) {
            return group[0].device() == tensor.device() && group[0].scalar_type() == tensor.scalar_type();
        };
        auto group = std::find_if(groups.begin(), groups.end(), same);
        if (group == groups.end()) group = groups.insert(groups.end(), std::vector<at::Tensor>{});
        group->push_back(tensor);
    }
    return groups;
}

at::Tensor joined(const std::vector<at::Tensor>& norms, c10::Device device) {
    std::vector<at::Tensor> there;
    there.reserve(norms.size());
    for (at::Tensor const& norm : norms) there.push_back(norm.to(device));
    return at::stack(there);
}

// --- kernels that are the same on every device ------------------------------------------------------------------------

at::Tensor total_norm_meta(at::TensorList tensors, const at::Scalar&) {
    at::ScalarType const type = total_norm_type(tensors, "gpureduce::total_norm");
    return at::empty({}, tensors[0].options().dtype(type).layout(at::kStrided));
}
at::Tensor clip_meta(at::TensorList gradients, const at::Scalar&, const at::Scalar&) {
    at::ScalarType const type = total_norm_type(gradients, "gpureduce::clip_grads_");
    return at::empty({}, gradients[0].options().dtype(type).layout(at::kStrided));
}

using ClipSignature = at::Tensor(at::TensorList, const at::Scalar&, const at::Scalar&);
const c10::TypedOperatorHandle<ClipSignature>& clip_operator() {
    static auto const found =
        c10::Dispatcher::singleton().findSchemaOrThrow("gpureduce::clip_grads_", "").typed<ClipSignature>();
    return found;
}

// Only a list without tensors has no other kernel. As torch, zero.
c10::DispatchKeySet below_selection(c10::DispatchKeySet keys) {
    return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::BackendSelect);
}
at::Tensor total_norm_select(c10::DispatchKeySet keys, at::TensorList tensors, const at::Scalar& ord) {
    if (tensors.empty()) return at::zeros({}, at::kFloat);
    return total_norm_operator().redispatch(below_selection(keys), tensors, ord);
}
at::Tensor clip_select(c10::DispatchKeySet keys, at::TensorList gradients, const at::Scalar& max_norm,
                       const at::Scalar& ord) {
    if (gradients.empty()) return at::zeros({}, at::kFloat);
    return clip_operator().redispatch(below_selection(keys), gradients, max_norm, ord);
}

at::Tensor clip_autograd(c10::DispatchKeySet keys, at::TensorList gradients, const at::Scalar& max_norm,
                         const at::Scalar& ord) {
    for (at::Tensor const& gradient : gradients) {
        TORCH_CHECK(!torch::autograd::compute_requires_grad(gradient),
                    "gpureduce::clip_grads_: not differentiable, but a tensor requires a gradient; call it under "
                    "torch.no_grad()");
        TORCH_CHECK_NOT_IMPLEMENTED(!gradient._fw_grad(/*level=*/0).defined(),
                                    "gpureduce::clip_grads_: does not support forward AD, but a tensor has a tangent");
    }
    at::AutoDispatchBelowAutograd const guard;
    return clip_operator().redispatch(keys & c10::after_autograd_keyset, gradients, max_norm, ord);
}

at::Tensor clip_version(c10::DispatchKeySet keys, at::TensorList gradients, const at::Scalar& max_norm,
                        const at::Scalar& ord) {
    at::Tensor const norm = [&] {
        at::AutoDispatchBelowADInplaceOrView const guard;
        return clip_operator().redispatch(keys & c10::after_ADInplaceOrView_keyset, gradients, max_norm, ord);
    }();
    for (at::Tensor const& gradient : gradients) torch::autograd::increment_version(gradient);
    return norm;
}

// --- the CPU's --------------------------------------------------------------------------------------------------------

at::Tensor run_cpu(const GatheredList& list, std::optional<double> max_norm) {
    static cpu::ParallelFor const threads_of_torch = [](int64_t count, int64_t grain,
                                                        const std::function<void(int64_t, int64_t)>& body) {
        at::parallel_for(0, count, grain, body);
    };
    double norm = 0;
    int const threads = at::get_num_threads();
    bool done = cpu::run_list_norm(list.problem, threads, threads_of_torch, norm);
    if (done && max_norm)
        done = cpu::run_list_scale(list.problem, threads, threads_of_torch, clip_coefficient(norm, *max_norm));
    TORCH_INTERNAL_ASSERT(done, "gpureduce::total_norm: no CPU kernel for ", list.result);
    at::Tensor const result = at::detail::empty_cpu({}, list.result);
    store(result.mutable_data_ptr(), 0, *element_of(list.result), norm);
    return result;
}

at::Tensor total_norm_cpu(at::TensorList tensors, const at::Scalar& ord) {
    return total_norm_with(tensors, ord, run_cpu);
}
at::Tensor clip_cpu(at::TensorList gradients, const at::Scalar& max_norm, const at::Scalar& ord) {
    return clip_with(gradients, max_norm, ord, run_cpu);
}

const Registration list_schemas(std::nullopt, [](torch::Library& m) {
    m.def("total_norm(Tensor[] tensors, Scalar ord=2) -> Tensor", {at::Tag::pt2_compliant_tag});
    m.def("clip_grads_(Tensor(a!)[] grads, Scalar max_norm, Scalar ord=2) -> Tensor", {at::Tag::pt2_compliant_tag});
});
const Registration list_select_kernels(c10::DispatchKey::BackendSelect, [](torch::Library& m) {
    m.impl("total_norm", total_norm_select);
    m.impl("clip_grads_", clip_select);
});
const Registration list_meta_kernels(c10::DispatchKey::Meta, [](torch::Library& m) {
    m.impl("total_norm", total_norm_meta);
    m.impl("clip_grads_", clip_meta);
});
const Registration clip_autograd_kernel(c10::DispatchKey::Autograd,
                                        [](torch::Library& m) { m.impl("clip_grads_", clip_autograd); });
const Registration clip_version_kernel(c10::DispatchKey::ADInplaceOrView,
                                       [](torch::Library& m) { m.impl("clip_grads_", clip_version); });
const Registration cpu_list_kernels(c10::DispatchKey::CPU, [](torch::Library& m) {
    m.impl("total_norm", total_norm_cpu);
    m.impl("clip_grads_", clip_cpu);
});

}  // namespace

const c10::TypedOperatorHandle<TotalNormSignature>& total_norm_operator() {
    static auto const found =
        c10::Dispatcher::singleton().findSchemaOrThrow("gpureduce::total_norm", "").typed<TotalNormSignature>();
    return found;
}

std::optional<Norm> kernel_norm(const at::Scalar& ord) {
    double const p = ord.toDouble();
    if (p == 2) return Norm::two;
    if (p == 1) return Norm::one;
    if (std::isinf(p) && p > 0) return Norm::infinity;
    return std::nullopt;
}

at::ScalarType total_norm_type(at::TensorList tensors, const char* op) {
    at::ScalarType type = c10::toRealValueType(tensors[0].scalar_type());
    for (size_t i = 0; i < tensors.size(); ++i) {
        at::ScalarType const own = tensors[i].scalar_type();
        TORCH_CHECK(at::isFloatingType(own) || at::isComplexType(own), op,
                    ": expected floating point or complex tensors, but tensor ", i, " is of dtype ", own);
        if (c10::toRealValueType(own) != type) type = c10::promoteTypes(type, c10::toRealValueType(own));
    }
    return type;
}

bool is_uniform(at::TensorList tensors) {
    at::Tensor const& first = tensors[0];
    for (at::Tensor const& tensor : tensors)
        if (tensor.scalar_type() != first.scalar_type() || tensor.device() != first.device() ||
            tensor.layout() != at::kStrided)
            return false;
    return true;
}

at::Tensor composite_norm(at::TensorList tensors, const at::Scalar& ord) {
    c10::Device const device = tensors[0].device();
    std::vector<at::Tensor> norms;
    if (kernel_norm(ord))
        if (auto const groups = groups_of(tensors); groups.size() > 1) {
            for (auto const& group : groups) norms.push_back(total_norm_operator().call(group, ord));
            return total_norm_operator().call({joined(norms, device)}, ord);
        }
    for (at::Tensor const& tensor : tensors) norms.push_back(at::linalg_vector_norm(tensor, ord));
    at::Tensor const all = joined(norms, device);
    return ord.toDouble() == 0 ? all.sum() : at::linalg_vector_norm(all, ord);
}

at::Tensor total_norm_with(at::TensorList tensors, const at::Scalar& ord, RunList* run) {
    auto const type = total_norm_type(tensors, "gpureduce::total_norm");
    auto const norm = kernel_norm(ord);
    check_not_empty(tensors, norm, "gpureduce::total_norm");
    GatheredList list;
    if (!gather(tensors, norm, /*writes=*/false, list)) return composite_norm(tensors, ord);
    if (list.pieces.empty()) return at::zeros({}, tensors[0].options().dtype(type));
    return run(list, std::nullopt);
}

at::Tensor clip_with(at::TensorList gradients, const at::Scalar& max_norm, const at::Scalar& ord, RunList* run) {
    auto const type = total_norm_type(gradients, "gpureduce::clip_grads_");
    auto const norm = kernel_norm(ord);
    check_not_empty(gradients, norm, "gpureduce::clip_grads_");
    GatheredList list;
    if (gather(gradients, norm, /*writes=*/true, list)) {
        if (list.pieces.empty()) return at::zeros({}, gradients[0].options().dtype(type));
        at::Tensor const total = run(list, max_norm.toDouble());
        for (auto const& copied : list.copies) gradients[copied.tensor].copy_(copied.copy);
        return total;
    }
    at::Tensor const total = total_norm_operator().call(gradients, ord);
    at::Tensor const coefficient = total.add(1e-6).reciprocal().mul(max_norm).clamp_max(1.0);
    for (auto const& group : groups_of(gradients)) at::_foreach_mul_(group, coefficient.to(group[0].device()));
    return total;
}

}  // namespace gpureduce::binding
