// gpureduce::ladder on CUDA; registered for CPU tensors too, since one rung reads the memory of the host.

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winterference-size"  // torch's header aligns to it, which is only a matter of speed
#include <ATen/core/CachingHostAllocator.h>
#pragma GCC diagnostic pop
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "aligned.h"
#include "cuda_device.h"
#include "cuda_workspace.h"
#include "ladder.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

const float* floats(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

// What a kind of rung works on; self and other have aligned elements.
ladder::SumArgs arguments(ladder::SumArgs, const at::Tensor& self, const at::Tensor&, float* out) {
    return {floats(self), self.numel(), out};
}
ladder::PipelineArgs arguments(ladder::PipelineArgs, const at::Tensor& self, const at::Tensor&, float* out) {
    return {floats(self), self.numel(), out};
}
ladder::MapArgs arguments(ladder::MapArgs, const at::Tensor& self, const at::Tensor& other, float* out) {
    return {floats(self), floats(other), out, self.numel()};
}
ladder::TileArgs arguments(ladder::TileArgs, const at::Tensor& self, const at::Tensor& other, float* out) {
    return {floats(self), floats(other), out, self.size(0), other.size(1), self.size(1)};
}
ladder::ColumnsArgs arguments(ladder::ColumnsArgs, const at::Tensor& self, const at::Tensor&, float* out) {
    return {floats(self), out, self.size(0), self.size(1)};
}
ladder::AdaptiveArgs arguments(ladder::AdaptiveArgs, const at::Tensor& self, const at::Tensor& other, float* out) {
    return {floats(self), other.const_data_ptr<int64_t>(), out, self.numel(), other.numel() - 1};
}

// Streams from torch's pool. The allocator of pinned memory is told of them, so that it waits for them before it gives the
// tensor's memory away again; pageable memory has been read when the copy's call returns.
std::vector<ladder::Stream> side_streams(const at::Tensor& self, c10::Device device, int count) {
    std::vector<ladder::Stream> streams;
    for (int i = 0; i < count; ++i) {
        auto const stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index());
        at::getHostAllocator(at::kCUDA)->record_event(const_cast<void*>(self.const_data_ptr()),
                                                      self.storage().data_ptr().get_context(), stream.unwrap());
        streams.push_back(stream.stream());
    }
    return streams;
}

template <class R>
void run(int parameter, const at::Tensor& self, const at::Tensor& other, const at::Tensor& result) {
    constexpr bool from_host = std::is_same_v<typename R::Args, ladder::PipelineArgs>;
    c10::Device const device = result.device();
    auto const stream = c10::cuda::getCurrentCUDAStream(device.index());
    auto const args = arguments(typename R::Args{}, self, other, result.mutable_data_ptr<float>());
    std::vector<ladder::Stream> sides;
    if constexpr (from_host) sides = side_streams(self, device, parameter);
    ladder::Launch launch{parameter, device_traits(device).sm_count, stream.stream(), sides.data(), nullptr, nullptr};
    ladder::Needs const needs = R::needs(args, launch);
    at::Tensor const workspace = at::empty({needs.workspace_bytes}, result.options().dtype(at::kByte));
    launch.workspace = workspace.mutable_data_ptr();
    launch.mailbox = mailbox_for(needs.mailbox_bytes, stream);
    auto const error = static_cast<cudaError_t>(R::launch(args, launch));
    TORCH_CHECK(error == cudaSuccess, "gpureduce::ladder: rung '", R::name, "': ", cudaGetErrorName(error), ": ",
                cudaGetErrorString(error));
}

// Where the rung runs, which for the one that reads the host's memory is the current GPU.
c10::Device device_of(const LadderCall& call) {
    if (ladder::parse(call.rung).name == ladder::Pipeline::name) {
        TORCH_CHECK(call.self.is_cpu(), "gpureduce::ladder: rung '", call.rung,
                    "' reads the memory of the host, but self is on ", call.self.device());
        TORCH_CHECK_NOT_IMPLEMENTED(c10::cuda::device_count() > 0, "gpureduce::ladder: rung '", call.rung,
                                    "' adds on a GPU, but there is none");
        return {c10::kCUDA, c10::cuda::current_device()};
    }
    TORCH_CHECK_NOT_IMPLEMENTED(call.self.is_cuda(), "gpureduce::ladder: rung '", call.rung,
                                "' runs on CUDA, but self is on ", call.self.device());
    return call.self.device();
}

at::Tensor ladder_cuda(const at::Tensor& self, std::string_view rung, const std::optional<at::Tensor>& other) {
    LadderCall const call = check_ladder(self, rung, other);
    c10::Device const device = device_of(call);
    CurrentDevice const guard(device);
    auto const sizes = C10_AS_INTARRAYREF_SLOW(call.result_sizes);
    if (self.numel() == 0) return at::zeros(sizes, self.options().device(device));
    at::Tensor const result = at::empty(sizes, self.options().device(device));
    if (result.numel() == 0) return result;
    at::Tensor const x = with_aligned_elements(self);
    at::Tensor const y = call.other.defined() ? with_aligned_elements(call.other) : call.other;
    ladder::visit_rung(rung, [&](auto chosen, int parameter) { run<decltype(chosen)>(parameter, x, y, result); });
    return result;
}

const Registration cuda_ladder_kernels(c10::DispatchKey::CUDA,
                                       [](torch::Library& m) { m.impl("ladder", ladder_cuda); });
const Registration cpu_ladder_kernels(c10::DispatchKey::CPU, [](torch::Library& m) { m.impl("ladder", ladder_cuda); });

}  // namespace
}  // namespace gpureduce::binding
