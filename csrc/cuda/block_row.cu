// Long rows, and few of them: a block per chunk of a row.
//
// Who owns what: block (chunk, row) owns chunk_leaves leaves of a row, in at most kRowGroups groups of group_leaves; its warps
// take groups in turn. The value of a group goes to shared memory under its index, so the tree does not know which warp
// computed what. The block of a row's last chunk collects the others and folds. Valid: in thread 0. Moves: the input once,
// one accumulator a chunk out and in. Barriers: at most 3.
#include "launch.cuh"
#include "leaf.cuh"
#include "mailbox.cuh"

namespace gpureduce::cuda {
namespace {

// All leaves of a chunk into group_value, by group. Returns how many groups there are; for integers one a warp.
template <class Op, class Reader>
__device__ __forceinline__ int fold_groups(const Reader& row, int64_t first, int leaves, int chunk_leaves,
                                           typename Op::acc* group_value) {
    using A = typename Op::acc;
    int const warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    if constexpr (Op::order_free) {
        A mine = Op::identity();
        for_each_leaf<Op>(row, first, leaves, warp, warps, [&](int, A value) { mine = value; });
        mine = fold_lanes<Op>(mine);
        if (lane == 0) group_value[warp] = mine;
        return warps;
    } else if (chunk_leaves <= kRowGroups) {
        for_each_leaf<Op>(row, first, leaves, warp, warps, [&](int i, A value) {
            if (lane == 0) group_value[i] = value;
        });
        return leaves;
    } else {
        int const group_leaves = chunk_leaves / kRowGroups;
        int const groups = (leaves + group_leaves - 1) / group_leaves;
        for (int g = warp; g < groups; g += warps) {
            int const begin = g * group_leaves;
            A const value = fold_group<Op>(row, first + begin, min(group_leaves, leaves - begin));
            if (lane == 0) group_value[g] = value;
        }
        return groups;
    }
}

template <class Op, Loader L>
__global__ void __launch_bounds__(kMaxThreads, min_blocks<Op>)
    block_row_kernel(const __grid_constant__ RowArgs<L> args) {
    using E = typename Op::element;
    using A = typename Op::acc;
    __shared__ A group_value[kRowGroups];
    __shared__ A scratch[kWarp];

    int64_t const row = args.first_row + blockIdx.y;
    int64_t const first = int64_t(blockIdx.x) * args.chunk_leaves;
    int const leaves = int(min(int64_t(args.chunk_leaves), args.leaves - first));
    RowReader<E, L> const reader(args, row);
    int const groups = fold_groups<Op>(reader, first, leaves, args.chunk_leaves, group_value);
    __syncthreads();
    A total = fold_block<Op>(ArrayValues<A>{group_value, groups, Op::identity()}, groups, scratch);

    if (args.chunks > 1) {
        Letter* const boxes = args.mailbox + int64_t(blockIdx.y) * args.chunks * letters<A>;
        if (threadIdx.x == 0) send(boxes + blockIdx.x * letters<A>, 1, total);
        if (blockIdx.x != args.chunks - 1) return;
        if (args.chunks > kGroup) __syncthreads();  // before group_value is written again
        total = fold_block<Op>(Partials<Op>{boxes, args.chunks}, args.chunks, group_value);
    }
    if (threadIdx.x == 0) store_result<Op>(args.out, row, args.out_type, total, args.n);
}

}  // namespace

cudaError_t run_block_row(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    if (plan.chunks > kMaxFold || plan.chunk_leaves > int64_t(kRowGroups) * kMaxGroup)
        return cudaErrorInvalidConfiguration;
    return dispatch_row(problem, plan, [&](auto op, auto tag) {
        constexpr Loader loader = decltype(tag)::loader;
        auto args = row_args<loader>(problem, plan, buffers);
        for (; args.first_row < problem.outputs; args.first_row += plan.grid_y) {
            dim3 const grid(unsigned(plan.grid_x), unsigned(std::min(plan.grid_y, problem.outputs - args.first_row)));
            block_row_kernel<decltype(op), loader><<<grid, plan.threads, 0, buffers.stream>>>(args);
        }
    });
}

}  // namespace gpureduce::cuda
