// Rows of at most kMaxGroup leaves, when there are enough of them to keep every warp busy.
//
// Who owns what: a warp owns a row and reads it leaf by leaf; lane i keeps the i-th of 32 values, so that the tree over
// them is one more fold of the lanes. Valid: in lane 0. Moves: the input once. Barriers: none.
#pragma once

#include "launch.cuh"
#include "leaves.cuh"

namespace gpureduce::cuda {

// The row of this warp. Volatile, so that it is computed anew for the store and in no register, or spilled in front of the
// loads, while the row is read.
__device__ __forceinline__ int64_t own_row() {
    unsigned thread, block;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return int64_t(block) * (blockDim.x / kWarp) + thread / kWarp;
}

template <class Op, Loader L>
__global__ void __launch_bounds__(kMaxThreads, takes_registers<Op> ? 1 : kBlocksPerSm)
    warp_row_kernel(const __grid_constant__ RowArgs<L> args) {
    using E = typename Op::element;
    using A = typename Op::acc;
    if constexpr (Op::slow_finish) {  // once for all rows of the block
        __shared__ A total[kMaxThreads / kWarp];
        if (own_row() < args.outputs) {
            A const own = fold_all_leaves<Op>(RowReader<E, L>(args, own_row()));
            if (threadIdx.x % kWarp == 0) total[threadIdx.x / kWarp] = own;
        }
        __syncthreads();
        int64_t const row = int64_t(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x;
        if (threadIdx.x < blockDim.x / kWarp && row < args.outputs)
            store_result<Op>(args.results, row, total[threadIdx.x]);
        return;
    }
    if (own_row() >= args.outputs) return;
    A const total = fold_all_leaves<Op>(RowReader<E, L>(args, own_row()));
    if (threadIdx.x % kWarp == 0) store_result<Op>(args.results, own_row(), total);
}

template <class Ops>
cudaError_t launch_warp_row(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return dispatch_row<Ops, Path::warp_row>(problem, plan, [&](auto op, auto tag) {
        constexpr Loader loader = decltype(tag)::loader;
        warp_row_kernel<decltype(op), loader>
            <<<unsigned(plan.grid_x), plan.threads, 0, buffers.stream>>>(row_args<loader>(problem, plan, buffers));
    });
}

}  // namespace gpureduce::cuda
