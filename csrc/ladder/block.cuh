// What the kernels of several rungs share: launches, the tree of a block in its two forms, 16-byte loads at any alignment.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "../core/accumulate.h"
#include "rung.h"

namespace gpureduce::ladder {

inline constexpr int kWarp = 32;
inline constexpr int kWarps = kBlock / kWarp;  // of a block

// --- launches ---------------------------------------------------------------------------------------------------------

// Calls launch(std::integral_constant<int, N>{}) for the parameter's N.
template <int... N, class F>
Error with_parameter(Values<N...>, int parameter, F&& launch) {
    Error result = cudaErrorInvalidValue;
    ((parameter == N ? void(result = launch(std::integral_constant<int, N>{})) : void()), ...);
    return result;
}

// `pass` over the elements, over the results that its blocks left, over those of these, until one is left.
template <class Pass>
Error repeat(const SumArgs& args, const Launch& launch, int64_t of_block, Pass&& pass) {
    const float* in = args.in;
    auto* results = static_cast<float*>(launch.workspace);
    for (int64_t count = args.n;;) {
        int64_t const blocks = blocks_for(count, of_block);
        pass(in, count, blocks == 1 ? args.out : results, unsigned(blocks));
        if (cudaError_t const error = cudaGetLastError(); error != cudaSuccess || blocks == 1) return error;
        in = results;
        results += blocks;
        count = blocks;
    }
}

// --- the tree of a block ----------------------------------------------------------------------------------------------

// The sum over all threads, valid in thread 0: strides halve, in shared memory. Barriers: 9.
__device__ __forceinline__ float tree_sum(float value) {
    __shared__ float sum[kBlock];
    int const thread = int(threadIdx.x);
    sum[thread] = value;
    __syncthreads();
#pragma unroll
    for (int stride = kBlock / 2; stride > 0; stride /= 2) {
        if (thread < stride) sum[thread] += sum[thread + stride];
        __syncthreads();
    }
    return sum[0];
}

__device__ __forceinline__ float from_lane_above(float value, int distance) {
    return __shfl_down_sync(0xffffffffu, value, distance);
}
__device__ __forceinline__ double from_lane_above(double value, int distance) {
    return __shfl_down_sync(0xffffffffu, value, distance);
}
__device__ __forceinline__ Compensated<float> from_lane_above(Compensated<float> sum, int distance) {
    return {from_lane_above(sum.value, distance), from_lane_above(sum.error, distance)};
}

// The sum over the lanes of a warp, all of which call it; valid in lane 0. No barrier, no memory.
template <class A>
__device__ __forceinline__ A warp_sum(A sum) {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) sum = add(sum, from_lane_above(sum, distance));
    return sum;
}

// The sum over all threads by shuffles, valid in thread 0. Barriers: 1; one more is needed before the next call.
template <class A>
__device__ __forceinline__ A shuffle_sum(A sum) {
    __shared__ A of_warp[kWarps];
    int const lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
    sum = warp_sum(sum);
    if (lane == 0) of_warp[warp] = sum;
    __syncthreads();
    if (warp > 0) return sum;
    return warp_sum(lane < kWarps ? of_warp[lane] : zero_of<A>());
}

// --- 16 bytes at a time -----------------------------------------------------------------------------------------------

// An array of floats at any address: up to 3 elements, then whole aligned loads of 16 bytes, then up to 3 elements.
struct Vectors {
    const float* in;
    const float4* load;
    int64_t count, n;  // of loads, of elements
    int head, tail;    // elements before and behind the loads

    __device__ __forceinline__ Vectors(const float* in, int64_t n) : in(in), n(n) {
        int const to_boundary = int((0 - reinterpret_cast<uintptr_t>(in) / sizeof(float)) % 4);
        head = n < to_boundary ? int(n) : to_boundary;
        load = reinterpret_cast<const float4*>(in + head);
        count = (n - head) / 4;
        tail = int((n - head) % 4);
    }
    // What the launch's thread of this index adds of the head and of the tail: at most one element of each.
    __device__ __forceinline__ float ends(int64_t thread) const {
        float sum = 0;
        if (thread < head) sum += in[thread];
        if (thread < tail) sum += in[n - 1 - thread];
        return sum;
    }
};

__device__ __forceinline__ float sum_of(float4 v) { return (v.x + v.y) + (v.z + v.w); }

}  // namespace gpureduce::ladder
