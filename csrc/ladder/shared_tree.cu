// naive, sequential, strided: the same work, a tree over 256 elements in shared memory, with other threads doing it.
//
// Who owns what: a block owns 256 elements, a thread one of them. Valid: in thread 0. Moves: 4 bytes an element in, 4 a block
// out. Barriers: 9. Alignment: any. The loops are unrolled in all three, so that none of them has to divide by a stride.
#include "block.cuh"
#include "sums.h"

namespace gpureduce::ladder {
namespace {

// The thread's element in shared memory, zero behind the end.
__device__ __forceinline__ void stage(const float* in, int64_t n, float* sum) {
    int64_t const i = int64_t(blockIdx.x) * kBlock + threadIdx.x;
    sum[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
}

__global__ void naive_kernel(const float* __restrict__ in, int64_t n, float* __restrict__ results) {
    __shared__ float sum[kBlock];
    int const thread = int(threadIdx.x);
    stage(in, n, sum);
#pragma unroll
    for (int stride = 1; stride < kBlock; stride *= 2) {
        if (thread % (2 * stride) == 0) sum[thread] += sum[thread + stride];
        __syncthreads();
    }
    if (thread == 0) results[blockIdx.x] = sum[0];
}

__global__ void sequential_kernel(const float* __restrict__ in, int64_t n, float* __restrict__ results) {
    __shared__ float sum[kBlock];
    int const thread = int(threadIdx.x);
    stage(in, n, sum);
#pragma unroll
    for (int stride = kBlock / 2; stride > 0; stride /= 2) {
        if (thread < stride) sum[thread] += sum[thread + stride];
        __syncthreads();
    }
    if (thread == 0) results[blockIdx.x] = sum[0];
}

// The additions of naive, by the threads of sequential: 2 * stride apart in shared memory, which has 32 banks of 4 bytes.
__global__ void strided_kernel(const float* __restrict__ in, int64_t n, float* __restrict__ results) {
    __shared__ float sum[kBlock];
    int const thread = int(threadIdx.x);
    stage(in, n, sum);
#pragma unroll
    for (int stride = 1; stride < kBlock; stride *= 2) {
        if (thread < kBlock / (2 * stride)) sum[2 * stride * thread] += sum[2 * stride * thread + stride];
        __syncthreads();
    }
    if (thread == 0) results[blockIdx.x] = sum[0];
}

}  // namespace

Error Naive::launch(const SumArgs& args, const Launch& launch) {
    return repeat(args, launch, of_block(0), [&](const float* in, int64_t count, float* results, unsigned blocks) {
        naive_kernel<<<blocks, kBlock, 0, launch.stream>>>(in, count, results);
    });
}

Error Sequential::launch(const SumArgs& args, const Launch& launch) {
    return repeat(args, launch, of_block(0), [&](const float* in, int64_t count, float* results, unsigned blocks) {
        sequential_kernel<<<blocks, kBlock, 0, launch.stream>>>(in, count, results);
    });
}

Error Strided::launch(const SumArgs& args, const Launch& launch) {
    return repeat(args, launch, of_block(0), [&](const float* in, int64_t count, float* results, unsigned blocks) {
        strided_kernel<<<blocks, kBlock, 0, launch.stream>>>(in, count, results);
    });
}

}  // namespace gpureduce::ladder
