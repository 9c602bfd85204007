// serial, float4, vec4_serial, warp_shuffle: a thread loads more than one element before the block's tree.
//
// Who owns what: a block owns 256 N elements or loads of 16 bytes, a thread N of them, 256 apart. Valid: in thread 0. Moves: 4
// bytes an element in, 4 a block out. Barriers: 9, and 1 in warp_shuffle. Alignment: any; see Vectors for loads of 16 bytes.
#include "block.cuh"
#include "sums.h"

namespace gpureduce::ladder {
namespace {

// The index is block * (256 N) + i * 256 + thread. With (block * 256 + thread) * N + i * 256, as it is often written, blocks
// overlap: some elements are read several times and others never, which data that are all ones do not show.
template <int N>
__global__ void serial_kernel(const float* __restrict__ in, int64_t n, float* __restrict__ results) {
    int64_t const first = int64_t(blockIdx.x) * (kBlock * N) + threadIdx.x;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i)
        if (first + i * kBlock < n) sum += in[first + i * kBlock];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) results[blockIdx.x] = sum;
}

__global__ void float4_kernel(const float* __restrict__ in, int64_t n, float* __restrict__ results) {
    Vectors const vectors(in, n);
    int64_t const thread = int64_t(blockIdx.x) * kBlock + threadIdx.x;
    float sum = vectors.ends(thread);
    if (thread < vectors.count) sum += sum_of(vectors.load[thread]);
    sum = tree_sum(sum);
    if (threadIdx.x == 0) results[blockIdx.x] = sum;
}

// N loads of this thread, 256 apart, and its part of the ends.
template <int N>
__device__ __forceinline__ float thread_sum(const float* in, int64_t n) {
    Vectors const vectors(in, n);
    int64_t const first = int64_t(blockIdx.x) * (kBlock * N) + threadIdx.x;
    float sum = vectors.ends(int64_t(blockIdx.x) * kBlock + threadIdx.x);
#pragma unroll
    for (int i = 0; i < N; ++i)
        if (first + i * kBlock < vectors.count) sum += sum_of(vectors.load[first + i * kBlock]);
    return sum;
}

template <int N>
__global__ void vec4_serial_kernel(const float* __restrict__ in, int64_t n, float* __restrict__ results) {
    float const sum = tree_sum(thread_sum<N>(in, n));
    if (threadIdx.x == 0) results[blockIdx.x] = sum;
}

__global__ void warp_shuffle_kernel(const float* __restrict__ in, int64_t n, float* __restrict__ results) {
    float const sum = shuffle_sum(thread_sum<kLoadsAtOnce>(in, n));
    if (threadIdx.x == 0) results[blockIdx.x] = sum;
}

}  // namespace

Error Serial::launch(const SumArgs& args, const Launch& launch) {
    return with_parameter(Parameters{}, launch.parameter, [&](auto value) {
        constexpr int N = decltype(value)::value;
        auto const pass = [&](const float* in, int64_t count, float* results, unsigned blocks) {
            serial_kernel<N><<<blocks, kBlock, 0, launch.stream>>>(in, count, results);
        };
        return repeat(args, launch, of_block(N), pass);
    });
}

Error Float4::launch(const SumArgs& args, const Launch& launch) {
    return repeat(args, launch, of_block(0), [&](const float* in, int64_t count, float* results, unsigned blocks) {
        float4_kernel<<<blocks, kBlock, 0, launch.stream>>>(in, count, results);
    });
}

Error Vec4Serial::launch(const SumArgs& args, const Launch& launch) {
    return with_parameter(Parameters{}, launch.parameter, [&](auto value) {
        constexpr int N = decltype(value)::value;
        auto const pass = [&](const float* in, int64_t count, float* results, unsigned blocks) {
            vec4_serial_kernel<N><<<blocks, kBlock, 0, launch.stream>>>(in, count, results);
        };
        return repeat(args, launch, of_block(N), pass);
    });
}

Error WarpShuffle::launch(const SumArgs& args, const Launch& launch) {
    return repeat(args, launch, of_block(0), [&](const float* in, int64_t count, float* results, unsigned blocks) {
        warp_shuffle_kernel<<<blocks, kBlock, 0, launch.stream>>>(in, count, results);
    });
}

}  // namespace gpureduce::ladder
