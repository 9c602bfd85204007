// pipeline: the sum of an array in the host's memory, chunk by chunk.
//
// Who owns what: chunk c, of 4 MiB, goes through the buffer and the stream c % N; 256 blocks add it and leave a result each in slots
// of the chunk, which one block adds at the end. So neither N nor the order in which chunks arrive changes a bit. Moves: the
// array over the bus, then through the GPU's memory, in and out again. Alignment: any.
#include "../walk.cuh"
#include "strategies.h"

namespace gpureduce::ladder {
namespace {

// An event that lives for one call: what was recorded and waited for is remembered by the streams.
class Event {
  public:
    Event() : error_(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)) {}
    ~Event() {
        if (event_ != nullptr) cudaEventDestroy(event_);
    }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    // `later` goes on when all that is in `earlier` now is done.
    Error order(Stream earlier, Stream later) const {
        if (error_ != cudaSuccess) return error_;
        if (cudaError_t const error = cudaEventRecord(event_, earlier); error != cudaSuccess) return error;
        return cudaStreamWaitEvent(later, event_, 0);
    }

  private:
    cudaEvent_t event_ = nullptr;
    cudaError_t error_;
};

Error add_chunks(const PipelineArgs& args, const Launch& launch, float* slots, float* buffers) {
    for (int64_t chunk = 0; chunk * kChunkElements < args.n; ++chunk) {
        int64_t const first = chunk * kChunkElements, turn = chunk % launch.parameter;
        int64_t const count = args.n - first < kChunkElements ? args.n - first : kChunkElements;
        Stream const stream = launch.side_streams[turn];
        float* const buffer = buffers + turn * kChunkElements;
        auto const error =
            cudaMemcpyAsync(buffer, args.in + first, size_t(count) * sizeof(float), cudaMemcpyHostToDevice, stream);
        if (error != cudaSuccess) return error;
        walk_kernel<float><<<kChunkBlocks, kBlock, 0, stream>>>(buffer, count, slots + chunk * kChunkBlocks);
    }
    return cudaGetLastError();
}

}  // namespace

// The side streams are joined again also where a chunk failed, because the workspace is given back in the order of the main one.
Error Pipeline::launch(const PipelineArgs& args, const Launch& launch) {
    auto* const buffers = static_cast<float*>(launch.workspace);
    float* const slots = buffers + launch.parameter * kChunkElements;
    Event const event;
    for (int i = 0; i < launch.parameter; ++i)
        if (Error const error = event.order(launch.stream, launch.side_streams[i]); error != cudaSuccess) return error;
    Error result = add_chunks(args, launch, slots, buffers);
    for (int i = 0; i < launch.parameter; ++i) {
        Error const error = event.order(launch.side_streams[i], launch.stream);
        if (result == cudaSuccess) result = error;
    }
    if (result != cudaSuccess) return result;
    walk_kernel<float><<<1, kBlock, 0, launch.stream>>>(slots, Pipeline::slots(args.n), args.out);
    return cudaGetLastError();
}

}  // namespace gpureduce::ladder
