// Multiplies the tensors of a list by one number, which is on the device.
//
// Who owns what: a block owns a chunk of the list's leaves, the last chunk first, since what was read last is still in the L2;
// its warps take them in turn. Moves: the tensors once in and once out, nothing if the number is 1. Barriers: none.
#include "list.cuh"

namespace gpureduce::cuda {
namespace {

template <int N>
struct ScaleArgs {
    ListShare<N> list;
    const double* factor;
};

template <class E>
__device__ __forceinline__ uint4 scaled_words(uint4 words, FactorOf<E> factor) {
    Pack<E> pack = as_pack<E>(words);
#pragma unroll
    for (E& x : pack.value) x = scaled_by(x, factor);
    return bit_cast<uint4>(pack);
}

template <class E>
__device__ __forceinline__ void scale_leaf(ListLeaf<E> leaf, FactorOf<E> factor) {
    int const lane = int(threadIdx.x) % kWarp;
    E* const start = const_cast<E*>(leaf.start);
    if (leaf.whole()) {
        uint4* const pack = reinterpret_cast<uint4*>(start) + lane;
        int const packs = leaf.count / components<E> - lane;  // from this lane's first on
        uint4 words[kLoads];
#pragma unroll
        for (int k = 0; k < kLoads; ++k)
            if (k * kLanes < packs) words[k] = pack[k * kLanes];
#pragma unroll
        for (int k = 0; k < kLoads; ++k)
            if (k * kLanes < packs) pack[k * kLanes] = scaled_words<E>(words[k], factor);
    } else {
#pragma unroll 4
        for (int e = lane; e < leaf.count; e += kLanes) start[e] = scaled_by(start[e], factor);
    }
}

template <class E, int N>
__global__ void __launch_bounds__(kMaxThreads, kBlocksPerSm)
    list_scale_kernel(const __grid_constant__ ScaleArgs<N> args) {
    auto const factor = FactorOf<E>(__ldg(args.factor));
    if (factor == FactorOf<E>(1)) return;
    int const warp = int(threadIdx.x) / kWarp, warps = int(blockDim.x) / kWarp;
    uint32_t const chunk = args.list.first_chunk + (gridDim.x - 1 - blockIdx.x);
    uint32_t const first = chunk * uint32_t(args.list.chunk_leaves);
    int const leaves = int(min(uint32_t(args.list.chunk_leaves), args.list.leaves - first));
    if (warp >= leaves) return;
    ListWalk<E, N> walk(args.list.table, first + warp);
#pragma unroll 1
    for (int i = warp; i < leaves; i += warps) scale_leaf<E>(walk.at(first + i), factor);
}

template <int N>
cudaError_t launch(const ListProblem& p, const ListPlan& plan, const double* factor, cudaStream_t stream) {
    cudaError_t result = cudaErrorInvalidValue;
    visit_first(
        ListTypes{}, [&](auto element) { return info_of<decltype(element)>.id == p.in; },
        [&](auto element) {
            result = for_each_share<N>(p, plan, [&](const ListShare<N>& share, unsigned blocks) {
                ScaleArgs<N> const args{share, factor};
                list_scale_kernel<decltype(element), N><<<blocks, plan.threads, 0, stream>>>(args);
            });
        });
    return result;
}

}  // namespace

cudaError_t run_list_scale(const ListProblem& problem, const ListPlan& plan, const double* factor,
                           cudaStream_t stream) {
    return problem.count <= kFewTensors ? launch<kFewTensors>(problem, plan, factor, stream)
                                        : launch<kManyTensors>(problem, plan, factor, stream);
}

}  // namespace gpureduce::cuda
