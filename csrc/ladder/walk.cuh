// A block's share of an array of any length, for rungs with a fixed number of blocks at most.
//
// Who owns what: tiles of 4,096 elements (4 loads of 16 bytes a thread, 256 apart) go to the blocks in turn, so that all blocks
// read close together. Alignment: any. Barriers: none.
#pragma once

#include "block.cuh"
#include "sums.h"

namespace gpureduce::ladder {

template <class A>
__device__ __forceinline__ A widened(float x) {
    return Load<A, float>::of(x);
}
template <class A>
__device__ __forceinline__ A sum_of(float4 v) {
    return add(add(widened<A>(v.x), widened<A>(v.y)), add(widened<A>(v.z), widened<A>(v.w)));
}

// The sum of what this thread owns. A whole tile has its loads in flight together, without a check in between.
template <class A>
__device__ __forceinline__ A walk(const float* in, int64_t n) {
    constexpr int kTileLoads = kBlock * kLoadsAtOnce;
    Vectors const vectors(in, n);
    A sum = widened<A>(vectors.ends(int64_t(blockIdx.x) * kBlock + threadIdx.x));
    int64_t tile = int64_t(blockIdx.x) * kTileLoads;
    int64_t const step = int64_t(gridDim.x) * kTileLoads;
    for (; tile + kTileLoads <= vectors.count; tile += step) {
        float4 value[kLoadsAtOnce];
#pragma unroll
        for (int i = 0; i < kLoadsAtOnce; ++i) value[i] = vectors.load[tile + i * kBlock + threadIdx.x];
#pragma unroll
        for (int i = 0; i < kLoadsAtOnce; ++i) sum = add(sum, sum_of<A>(value[i]));
    }
#pragma unroll 1
    for (int64_t i = tile + threadIdx.x; i < min(tile + kTileLoads, vectors.count); i += kBlock)
        sum = add(sum, sum_of<A>(vectors.load[i]));
    return sum;
}

// One result a block. Valid: in thread 0. Moves: the array once, 4 bytes a block out. Barriers: 1.
template <class A>
__global__ void __launch_bounds__(kBlock)
    walk_kernel(const float* __restrict__ in, int64_t n, A* __restrict__ results) {
    A const sum = shuffle_sum(walk<A>(in, n));
    if (threadIdx.x == 0) results[blockIdx.x] = sum;
}

}  // namespace gpureduce::ladder
