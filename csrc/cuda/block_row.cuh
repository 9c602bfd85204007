// Long rows, and few of them: a block per chunk of a row.
//
// Who owns what: block (chunk, row) owns chunk_leaves leaves of a row, kRowGroups at a time; its warps take leaves in turn.
// The value of a leaf goes to shared memory under its index, so the tree does not know which warp computed what. The block
// of a row's last chunk collects the others and folds. Valid: in thread 0. Moves: the input once, one accumulator a chunk
// out and in. Barriers: at most 3, and 2 more for each kRowGroups leaves after the first.
#pragma once

#include "launch.cuh"
#include "leaves.cuh"
#include "mailbox.cuh"

namespace gpureduce::cuda {

// The values of at most kRowGroups leaves into value, by index; of integers, any number of leaves into one value a warp.
// Returns how many values there are.
template <class Op, class Reader>
__device__ __forceinline__ int leaf_values(const Reader& row, typename Reader::Leaves first, int leaves,
                                           typename Op::acc* value) {
    using A = typename Op::acc;
    int const warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    if constexpr (Op::order_free) {
        A mine = Op::identity();
        for_each_leaf<Op, false>(row, first, leaves, warp, warps, [&](int, A sum) { mine = sum; });
        mine = fold_lanes<Op>(mine);
        if (lane == 0) value[warp] = mine;
        return warps;
    } else {
        for_each_leaf<Op, false>(row, first, leaves, warp, warps, [&](int i, A sum) {
            if (lane == 0) value[i] = sum;
        });
        return leaves;
    }
}

// The total of a binary counter over `count` values.
template <class Op>
__device__ __forceinline__ typename Op::acc counted(const typename Op::acc* level, int count) {
    auto total = Op::identity();
    for (int d = 0; count >> d; ++d)
        if ((count >> d) & 1) total = Op::combine(level[d], total);
    return total;
}

// All leaves of a chunk. Valid in thread 0. Only chunks of enormous rows have more than kRowGroups: the binary counter over
// the values of so many each is in shared memory.
template <class Op, class Reader>
__device__ __forceinline__ typename Op::acc fold_chunk(const Reader& row, typename Reader::Leaves first, int leaves,
                                                       typename Op::acc* value, typename Op::acc* scratch) {
    using A = typename Op::acc;
    __shared__ A level[kRowLevels];
    A total = Op::identity();
#pragma unroll 1
    for (int pass = 0;; ++pass, first += kRowGroups, leaves -= kRowGroups) {
        int const values = leaf_values<Op>(row, first, Op::order_free ? leaves : min(leaves, kRowGroups), value);
        __syncthreads();
        total = fold_block<Op>(ArrayValues<A>{value, values, Op::identity()}, values, scratch);
        if (Op::order_free || (pass == 0 && leaves <= kRowGroups)) return total;
        bool const last = leaves <= kRowGroups;
        if (threadIdx.x == 0) {
            int d = 0;
            for (; (pass >> d) & 1; ++d) total = Op::combine(level[d], total);
            level[d] = total;
            if (last) total = counted<Op>(level, pass + 1);
        }
        if (last) return total;
        __syncthreads();  // before value is written again
    }
}

// Out of line, so that the blocks that only send have the registers of the leaves alone, and once for all loaders.
template <class Op>
__device__ __noinline__ typename Op::acc collect(Letter* boxes, int chunks, typename Op::acc* scratch) {
    return fold_block<Op>(Partials<Op>{boxes, chunks}, chunks, scratch);
}

template <class Op, Loader L>
__global__ void __launch_bounds__(kMaxThreads, min_blocks<Op>)
    block_row_kernel(const __grid_constant__ RowArgs<L> args) {
    using E = typename Op::element;
    using A = typename Op::acc;
    __shared__ A value[kRowGroups];
    __shared__ A scratch[kWarp];

    int64_t const row = args.first_row + blockIdx.y;
    using Reader = RowReader<E, L>;
    using Leaves = typename Reader::Leaves;
    Reader const reader(args, row);
    Leaves const first = Leaves(blockIdx.x) * args.chunk_leaves;
    int const leaves = int(min(Leaves(args.chunk_leaves), reader.leaves() - first));
    A total = fold_chunk<Op>(reader, first, leaves, value, scratch);

    if (args.chunks > 1) {
        Letter* const boxes = args.mailbox + int64_t(blockIdx.y) * args.chunks * letters<A>;
        if (threadIdx.x == 0) send(boxes + blockIdx.x * letters<A>, 1, total);
        if (blockIdx.x != args.chunks - 1) return;
        if (args.chunks > kGroup) __syncthreads();  // before value is written again
        total = collect<Op>(boxes, args.chunks, value);
    }
    if (threadIdx.x == 0) store_result<Op>(args.results, row, total);
}

template <class Ops>
cudaError_t launch_block_row(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    if (plan.chunks > kMaxFold || plan.chunk_leaves >= int64_t(kRowGroups) << kRowLevels)
        return cudaErrorInvalidConfiguration;
    return dispatch_row<Ops, Path::block_row>(problem, plan, [&](auto op, auto tag) {
        constexpr Loader loader = decltype(tag)::loader;
        auto args = row_args<loader>(problem, plan, buffers);
        for (; args.first_row < problem.outputs; args.first_row += plan.grid_y) {
            dim3 const grid(unsigned(plan.grid_x), unsigned(std::min(plan.grid_y, problem.outputs - args.first_row)));
            block_row_kernel<decltype(op), loader><<<grid, plan.threads, 0, buffers.stream>>>(args);
        }
    });
}

}  // namespace gpureduce::cuda
