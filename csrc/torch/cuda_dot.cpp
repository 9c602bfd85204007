// gpureduce::vecdot and gpureduce::dot on CUDA.

#include <c10/util/Exception.h>

#include "../cuda/run.h"
#include "cuda_device.h"
#include "cuda_workspace.h"
#include "dot.h"
#include "reduce.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

void run_cuda(const DotProblem& problem, const at::Tensor& x, const at::Tensor& y, const at::Tensor& result) {
    if (problem.outputs == 0) return;
    CurrentDevice const guard(x.device());
    auto const stream = c10::cuda::getCurrentCUDAStream(x.device().index());
    Plan const plan = make_dot_plan(problem, device_traits(x.device()), current_geometry());
    cuda::DotBuffers const buffers{x.const_data_ptr(), y.const_data_ptr(), result.mutable_data_ptr(),
                                   mailbox_for(plan, stream), stream.stream()};
    cudaError_t const error = cuda::run_dot(problem, plan, buffers);
    TORCH_CHECK(error == cudaSuccess, "gpureduce::vecdot: ", cudaGetErrorName(error), ": ", cudaGetErrorString(error));
}

at::Tensor vecdot_cuda(const at::Tensor& x, const at::Tensor& y, int64_t dim,
                       std::optional<std::string_view> accumulate) {
    return pair_with(check_vecdot(x, y, dim, accumulate), run_cuda);
}
at::Tensor& vecdot_out_cuda(const at::Tensor& x, const at::Tensor& y, int64_t dim,
                            std::optional<std::string_view> accumulate, at::Tensor& out) {
    return pair_into(out, check_vecdot(x, y, dim, accumulate), run_cuda);
}
at::Tensor dot_cuda(const at::Tensor& self, const at::Tensor& tensor) {
    return pair_with(check_dot(self, tensor), run_cuda);
}
at::Tensor& dot_out_cuda(const at::Tensor& self, const at::Tensor& tensor, at::Tensor& out) {
    return pair_into(out, check_dot(self, tensor), run_cuda);
}

const Registration cuda_dot_kernels(c10::DispatchKey::CUDA, [](torch::Library& m) {
    m.impl("vecdot", vecdot_cuda);
    m.impl("vecdot.out", vecdot_out_cuda);
    m.impl("dot", dot_cuda);
    m.impl("dot.out", dot_out_cuda);
});

}  // namespace
}  // namespace gpureduce::binding
