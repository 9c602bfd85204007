// The CUDA engine's one entry.
#pragma once

#include <cuda_runtime_api.h>

#include "../core/dot.h"
#include "../core/list.h"

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

struct DotBuffers {
    const void* x;
    const void* y;
    void* out;      // contiguous, problem.outputs elements of problem.in
    void* mailbox;  // plan.mailbox_bytes, as above
    cudaStream_t stream;
};

// Sums of products, as run.
cudaError_t run_dot(const DotProblem& problem, const Plan& plan, const DotBuffers& buffers);

struct ListBuffers {
    void* norm;  // one element of norm_type
    DType norm_type;
    double* coefficient;  // gets clip_coefficient(norm, max_norm), unless it is null
    double max_norm;
    void* mailbox;  // plan.mailbox_bytes, as above
    cudaStream_t stream;
};

// The norm of a list of tensors; and each of them multiplied by *factor, which is on the device. As run.
cudaError_t run_list_norm(const ListProblem& problem, const ListPlan& plan, const ListBuffers& buffers);
cudaError_t run_list_scale(const ListProblem& problem, const ListPlan& plan, const double* factor, cudaStream_t stream);

}  // namespace gpureduce::cuda
