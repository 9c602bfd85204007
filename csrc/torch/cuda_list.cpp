// gpureduce::total_norm and gpureduce::clip_grads_ on CUDA.

#include <ATen/EmptyTensor.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "../cuda/run.h"
#include "cuda_device.h"
#include "cuda_workspace.h"
#include "list.h"
#include "reduce.h"
#include "registration.h"
#include "types.h"

namespace gpureduce::binding {
namespace {

at::Tensor empty_scalar(at::ScalarType type) {
    return at::detail::empty_generic({}, c10::cuda::CUDACachingAllocator::get(),
                                     c10::DispatchKeySet(c10::DispatchKey::CUDA), type, std::nullopt);
}

void check(cudaError_t error) {
    TORCH_CHECK(error == cudaSuccess, "gpureduce::total_norm: ", cudaGetErrorName(error), ": ",
                cudaGetErrorString(error));
}

// The norm in one launch for each kManyTensors tensors, the multiplication likewise; nothing is waited for.
at::Tensor run_cuda(const GatheredList& list, std::optional<double> max_norm) {
    CurrentDevice const guard(list.device);
    auto const stream = c10::cuda::getCurrentCUDAStream(list.device.index());
    ListPlan const plan = make_list_plan(list.problem, device_traits(list.device), current_geometry());
    at::Tensor const norm = empty_scalar(list.result);
    at::Tensor const coefficient = max_norm ? empty_scalar(at::kDouble) : at::Tensor();
    double* const factor = max_norm ? coefficient.mutable_data_ptr<double>() : nullptr;
    // Between several launches another thread's may come, so they need a mailbox of their own.
    bool const alone = list.problem.count <= kManyTensors;
    at::Tensor const own = alone ? at::Tensor() : at::zeros({plan.mailbox_bytes}, norm.options().dtype(at::kByte));
    void* const mailbox = alone ? mailbox_for(plan.mailbox_bytes, stream) : own.mutable_data_ptr();
    cuda::ListBuffers const buffers{
        norm.mutable_data_ptr(), *element_of(list.result), factor, max_norm.value_or(0), mailbox, stream.stream()};
    check(cuda::run_list_norm(list.problem, plan, buffers));
    if (max_norm) check(cuda::run_list_scale(list.problem, plan, factor, stream.stream()));
    return norm;
}

at::Tensor total_norm_cuda(at::TensorList tensors, const at::Scalar& ord) {
    return total_norm_with(tensors, ord, run_cuda);
}
at::Tensor clip_cuda(at::TensorList gradients, const at::Scalar& max_norm, const at::Scalar& ord) {
    return clip_with(gradients, max_norm, ord, run_cuda);
}

const Registration cuda_list_kernels(c10::DispatchKey::CUDA, [](torch::Library& m) {
    m.impl("total_norm", total_norm_cuda);
    m.impl("clip_grads_", clip_cuda);
});

}  // namespace
}  // namespace gpureduce::binding
