// The CUDA engine's one entry.
#pragma once

#include <cuda_runtime_api.h>

#include "../core/plan.h"

namespace gpureduce::cuda {

struct Buffers {
    const void* in;
    void* out;      // contiguous, problem.outputs elements of problem.out
    void* second;   // the same of problem.second, or null
    void* mailbox;  // plan.mailbox_bytes, 16-byte aligned, all zero; all zero again when the kernel ends
    cudaStream_t stream;
};

// Launches on buffers.stream; never synchronises, never allocates. Needs the device to be current.
cudaError_t run(const Problem& problem, const Plan& plan, const Buffers& buffers);

}  // namespace gpureduce::cuda
