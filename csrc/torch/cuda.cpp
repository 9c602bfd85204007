// The operators on CUDA.

#include <ATen/EmptyTensor.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "../cuda/run.h"
#include "cuda_device.h"
#include "cuda_workspace.h"
#include "kernels.h"
#include "out.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

void run(const Operator& op, const Prepared& call, const at::Tensor& input, const at::Tensor& first,
         const at::Tensor& second) {
    if (call.problem.outputs == 0) return;
    auto const stream = c10::cuda::getCurrentCUDAStream(input.device().index());
    cuda::Buffers const buffers{input.const_data_ptr(), first.mutable_data_ptr(),
                                second.defined() ? second.mutable_data_ptr() : nullptr, mailbox_for(call.plan, stream),
                                stream.stream()};
    cudaError_t const error = cuda::run(call.problem, call.plan, buffers);
    TORCH_CHECK(error == cudaSuccess, "gpureduce::", op.name, ": ", cudaGetErrorName(error), ": ",
                cudaGetErrorString(error));
}

at::Tensor empty(const Prepared& call, at::ScalarType type) {
    return at::detail::empty_generic(call.result_sizes, c10::cuda::CUDACachingAllocator::get(),
                                     c10::DispatchKeySet(c10::DispatchKey::CUDA), type, std::nullopt);
}

template <class R>
R reduce(const Call& call) {
    auto const prepared = prepare(call, &device_traits(call.self.device()));
    CurrentDevice const guard(call.self.device());
    if (prepared->load_as != call.self.scalar_type()) return reduce<R>(call.of(converted(call, prepared->load_as)));
    at::Tensor first = empty(*prepared, prepared->result), second;
    if constexpr (!std::is_same_v<R, at::Tensor>) second = empty(*prepared, prepared->second_result);
    run(call.op, *prepared, call.self, first, second);
    return as_results<R>(std::move(first), std::move(second));
}

struct Cuda {
    static constexpr bool composes = true;
    template <size_t Row>
    static ResultOf<Row> run(const Call& call) {
        return reduce<ResultOf<Row>>(call);
    }
    template <size_t Row>
    static void run_out(const Call& call, at::Tensor* const* outs) {
        check_same_device(call, outs);  // the dispatcher comes here also when an out alone is on CUDA
        CurrentDevice const guard(call.self.device());
        reduce_into(outs, call, &device_traits(call.self.device()), gpureduce::binding::run);
    }
};

std::string explain_cuda(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, Dtype dtype,
                         Text accumulate, int64_t sms, std::string_view op) {
    return explain_call(call_named(op, self, dim, keepdim, dtype, accumulate), sms, device_traits(self.device()));
}

const Registration cuda_kernels(c10::DispatchKey::CUDA, [](torch::Library& m) {
    add_plain<Cuda>(m);
    add_out<Cuda>(m);
    m.impl("_explain", explain_cuda);
});

}  // namespace
}  // namespace gpureduce::binding
