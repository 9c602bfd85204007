// Built in place of cuda_list.cpp where torch or the toolkit has no CUDA.

#include "list.h"
#include "registration.h"
#include "without_cuda.h"

namespace gpureduce::binding {
namespace {

at::Tensor total_norm_without_cuda(at::TensorList, const at::Scalar&) {
    refuse("gpureduce::total_norm", "a tensor is on CUDA");
}
at::Tensor clip_without_cuda(at::TensorList, const at::Scalar&, const at::Scalar&) {
    refuse("gpureduce::clip_grads_", "a tensor is on CUDA");
}

const Registration no_cuda_list_kernels(c10::DispatchKey::CUDA, [](torch::Library& m) {
    m.impl("total_norm", total_norm_without_cuda);
    m.impl("clip_grads_", clip_without_cuda);
});

}  // namespace
}  // namespace gpureduce::binding
