// map, uncoalesced, divergent: the sum of two arrays, element by element.
//
// Who owns what: a thread owns N elements (map: 256 apart, uncoalesced: in a row), in divergent one. Moves: 8 bytes an element in,
// 4 out. Barriers: none. Alignment: any.
#include "../block.cuh"
#include "strategies.h"

namespace gpureduce::ladder {
namespace {

template <int N>
__global__ void map_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                           int64_t n) {
    int64_t const first = int64_t(blockIdx.x) * (kBlock * N) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < N; ++i)
        if (int64_t const at = first + i * kBlock; at < n) out[at] = a[at] + b[at];
}

template <int N>
__global__ void uncoalesced_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                                   int64_t n) {
    int64_t const first = (int64_t(blockIdx.x) * kBlock + threadIdx.x) * N;
#pragma unroll 4
    for (int i = 0; i < N; ++i)
        if (int64_t const at = first + i; at < n) out[at] = a[at] + b[at];
}

// Turn t is that of the lanes t, t + N, t + 2 N, ..; the others wait for them. Not unrolled, so that it stays a loop.
template <int N>
__global__ void divergent_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                                 int64_t n) {
    int64_t const at = int64_t(blockIdx.x) * kBlock + threadIdx.x;
    if (at >= n) return;
#pragma unroll 1
    for (int turn = 0; turn < N; ++turn)
        if (int(threadIdx.x) % N == turn) out[at] = a[at] + b[at];
}

}  // namespace

Error Map::launch(const MapArgs& args, const Launch& launch) {
    return with_parameter(Parameters{}, launch.parameter, [&](auto value) -> Error {
        constexpr int N = decltype(value)::value;
        auto const blocks = unsigned(blocks_for(args.n, kBlock * N));
        map_kernel<N><<<blocks, kBlock, 0, launch.stream>>>(args.a, args.b, args.out, args.n);
        return cudaGetLastError();
    });
}

Error Uncoalesced::launch(const MapArgs& args, const Launch& launch) {
    return with_parameter(Parameters{}, launch.parameter, [&](auto value) -> Error {
        constexpr int N = decltype(value)::value;
        auto const blocks = unsigned(blocks_for(args.n, kBlock * N));
        uncoalesced_kernel<N><<<blocks, kBlock, 0, launch.stream>>>(args.a, args.b, args.out, args.n);
        return cudaGetLastError();
    });
}

Error Divergent::launch(const MapArgs& args, const Launch& launch) {
    return with_parameter(Parameters{}, launch.parameter, [&](auto value) -> Error {
        constexpr int N = decltype(value)::value;
        auto const blocks = unsigned(blocks_for(args.n, kBlock));
        divergent_kernel<N><<<blocks, kBlock, 0, launch.stream>>>(args.a, args.b, args.out, args.n);
        return cudaGetLastError();
    });
}

}  // namespace gpureduce::ladder
