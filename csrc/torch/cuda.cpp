// gpureduce::sum on CUDA.

#include <ATen/EmptyTensor.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <vector>

#include "../cuda/run.h"
#include "cuda_workspace.h"
#include "out.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

std::vector<DeviceTraits> all_traits() {
    std::vector<DeviceTraits> traits(c10::cuda::device_count());
    for (int device = 0; device < int(traits.size()); ++device) {
        int& sm_count = traits[device].sm_count;
        C10_CUDA_CHECK(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device));
    }
    return traits;
}

// Of each device its own; asked once.
const DeviceTraits& traits_of(c10::Device device) {
    static std::vector<DeviceTraits> const traits = all_traits();
    return traits[device.index()];
}

// c10's guard asks for the device three times, so it is only made where it has something to do.
class DeviceGuard {
  public:
    explicit DeviceGuard(c10::Device device) {
        if (c10::cuda::current_device() != device.index()) guard_.set_device(device);
    }

  private:
    c10::cuda::OptionalCUDAGuard guard_;
};

void run(const Prepared& call, const at::Tensor& input, const at::Tensor& result) {
    if (call.problem.outputs == 0) return;
    auto const stream = c10::cuda::getCurrentCUDAStream(input.device().index());
    cuda::Buffers const buffers{input.const_data_ptr(), result.mutable_data_ptr(), nullptr,
                                mailbox_for(call.plan, stream), stream.stream()};
    cudaError_t const error = cuda::run(call.problem, call.plan, buffers);
    TORCH_CHECK(error == cudaSuccess, "gpureduce::sum: ", cudaGetErrorName(error), ": ", cudaGetErrorString(error));
}

at::Tensor sum_cuda(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                    std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate) {
    auto const call = prepare({self, dim, keepdim, dtype, accumulate}, &traits_of(self.device()));
    DeviceGuard const guard(self.device());
    if (call->load_as != self.scalar_type())
        return sum_cuda(self.to(call->load_as), dim, keepdim, call->result, accumulate);
    at::Tensor result =
        at::detail::empty_generic(call->result_sizes, c10::cuda::CUDACachingAllocator::get(),
                                  c10::DispatchKeySet(c10::DispatchKey::CUDA), call->result, std::nullopt);
    run(*call, self, result);
    return result;
}

at::Tensor& sum_out_cuda(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                         std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate,
                         at::Tensor& out) {
    check_same_device(self, out);  // the dispatcher comes here also when `out` alone is on CUDA
    DeviceGuard const guard(self.device());
    return sum_into(out, {self, dim, keepdim, dtype, accumulate}, &traits_of(self.device()), run);
}

std::string explain_cuda(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                         std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate, int64_t sms) {
    return explain_sum({self, dim, keepdim, dtype, accumulate}, sms, traits_of(self.device()));
}

const Registration cuda_kernels(c10::DispatchKey::CUDA, [](torch::Library& m) {
    m.impl("sum", sum_cuda);
    m.impl("sum.out", sum_out_cuda);
    m.impl("_explain", explain_cuda);
});

}  // namespace
}  // namespace gpureduce::binding
