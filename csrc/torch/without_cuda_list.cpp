// Built in place of cuda_list.cpp where torch or the toolkit has no CUDA.

#include <c10/util/Exception.h>

#include "list.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

[[noreturn]] void refuse(const char* op) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, op,
        ": a tensor is on CUDA, but gpureduce was built without CUDA; rebuild it where nvcc and "
        "a torch with CUDA are installed (GPUREDUCE_CUDA=1 says what is missing)");
}

at::Tensor total_norm_without_cuda(at::TensorList, const at::Scalar&) { refuse("gpureduce::total_norm"); }
at::Tensor clip_without_cuda(at::TensorList, const at::Scalar&, const at::Scalar&) { refuse("gpureduce::clip_grads_"); }

const Registration no_cuda_kernels(c10::DispatchKey::CUDA, [](torch::Library& m) {
    m.impl("total_norm", total_norm_without_cuda);
    m.impl("clip_grads_", clip_without_cuda);
});

}  // namespace
}  // namespace gpureduce::binding
