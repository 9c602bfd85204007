// One row of at most kTinyLeaves leaves of whole aligned packs, with as few instructions as that takes.
//
// Who owns what: one block; a warp owns a leaf, and warps without one contribute the identity. Valid: in thread 0. Moves: the
// input once. Barriers: 1, none for a single warp.
#include "launch.cuh"
#include "whole_packs.cuh"

namespace gpureduce::cuda {
namespace {

constexpr int kLeafBytes = kLoads * kLanes * kVectorBytes;

template <class Op, int Warps>
__global__ void __launch_bounds__(Warps* kWarp)
    tiny_row_kernel(const char* __restrict__ in, const __grid_constant__ Results results) {
    int const bytes = int(results.ending.n) * int(sizeof(typename Op::element));
    int const lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
    int const first_byte = warp * kLeafBytes + lane * kVectorBytes;
    uint4 words[kLoads];
    bool mine[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
        mine[k] = first_byte + k * kLanes * kVectorBytes < bytes;
        words[k] = load_vector_if(mine[k], in + first_byte + k * kLanes * kVectorBytes);
    }
    RowPart<Op> value[1] = {
        whole_sum<Op, false>(words, mine, first_byte / int(sizeof(typename Op::element)), OwnLoad<Op>{})};
    fold_rows<Op>(value, kWarp);
    if constexpr (Warps > 1) {
        __shared__ __align__(kVectorBytes) RowPart<Op> leaf[Warps];
        if (lane == 0) leaf[warp] = value[0];
        __syncthreads();
        if (warp != 0) return;
        if constexpr (Warps == kWarp) {
            value[0] = leaf[lane];
            fold_rows<Op>(value, kWarp);
        } else {
            RowPart<Op> node[Warps];
#pragma unroll
            for (int i = 0; i < Warps; ++i) node[i] = leaf[i];
#pragma unroll
            for (int step = 1; step < Warps; step *= 2)
#pragma unroll
                for (int i = 0; i < Warps; i += 2 * step) node[i] = join<Op>(node[i], node[i + step]);
            value[0] = node[0];
        }
    }
    if (threadIdx.x == 0) store_result<Op>(results, 0, value[0]);
}

}  // namespace

cudaError_t run_tiny_row(const Problem& p, const Plan& plan, const Buffers& b) {
    int64_t const bytes = p.n * dtype_info(p.in).bytes;
    if (p.n < 1 || bytes > int64_t(plan.threads) / kWarp * kLeafBytes) return cudaErrorInvalidConfiguration;
    return dispatch<CoveredSums>(p, [&](auto op) {
        using Op = decltype(op);
        auto const launch = [&](auto kernel, int warps) {
            kernel<<<1, warps * kWarp, 0, b.stream>>>(static_cast<const char*>(b.in), results_of(p, b));
        };
        if (plan.threads <= kWarp) return launch(tiny_row_kernel<Op, 1>, 1);
        if (plan.threads <= 4 * kWarp) return launch(tiny_row_kernel<Op, 4>, 4);
        if (plan.threads <= 16 * kWarp) return launch(tiny_row_kernel<Op, 16>, 16);
        launch(tiny_row_kernel<Op, kTinyLeaves>, kTinyLeaves);
    });
}

}  // namespace gpureduce::cuda
