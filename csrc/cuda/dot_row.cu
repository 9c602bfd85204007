// Dot products of rows longer than a warp is wide.
//
// Who owns what: where chunks are none (chunk_leaves is 0), a warp owns a row and lane i keeps the value of leaf i, at most 32.
// Else block (chunk, row) owns chunk_leaves leaves of a row; its warps take them in turn, and leave their values in shared
// memory under their index; the block of the last chunk collects the others. Valid: in lane 0, or thread 0. Moves: both
// inputs once, one accumulator a chunk out and in. Barriers: none for warps, else 3.
#include "block_row.cuh"
#include "dot.cuh"

namespace gpureduce::cuda {
namespace {

// The leaf values of a row from `first` on that fall to `worker` of `workers` warps: calls take(i, value of leaf first + i).
template <class Op, bool Vector, class Take>
__device__ __forceinline__ void for_each_dot_leaf(const DotArgs<Vector>& args, int64_t row, int64_t first, int leaves,
                                                  int worker, int workers, Take take) {
    using E = typename Op::element;
    constexpr int kLeaf = row_leaf_elements(int(sizeof(E)));
    PairOffset const offset = args.kept.at(row);
    int64_t const start = first * kLeaf;
    int64_t const left = args.n - start;
    const E* const x = static_cast<const E*>(args.x) + offset.x + start * args.step_x;
    const E* const y = static_cast<const E*>(args.y) + offset.y + start * args.step_y;
    if constexpr (Vector) {
        int const whole = int(min(int64_t(leaves), left / kLeaf));
        int i = worker;
#pragma unroll 1
        for (; i < whole; i += workers) take(i, dot_whole_leaf<Op>(x + i * kLeaf, y + i * kLeaf, args.conjugate));
        if (i >= leaves) return;
        int const rest = int(left - int64_t(i) * kLeaf);
        if (rest % components<E> == 0)
            take(i, dot_packs<Op>(x + i * kLeaf, y + i * kLeaf, rest, args.conjugate));
        else
            take(i, dot_rest<Op>(x + i * kLeaf, y + i * kLeaf, rest, args.conjugate));
    } else {
#pragma unroll 1
        for (int i = worker; i < leaves; i += workers) {
            int64_t const e = int64_t(i) * kLeaf;
            take(i, dot_elements<Op>(x + e * args.step_x, y + e * args.step_y, args.step_x, args.step_y,
                                     int(min(left - e, int64_t(kLeaf))), args.conjugate));
        }
    }
}

template <class Op, bool Vector>
__global__ void __launch_bounds__(kMaxThreads, min_blocks<Op>)
    dot_row_kernel(const __grid_constant__ DotArgs<Vector> args) {
    using A = typename Op::acc;
    __shared__ A value[kRowGroups];
    __shared__ A scratch[kWarp];
    int const warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp, warps = int(blockDim.x) / kWarp;
    bool const by_warps = args.chunk_leaves == 0;
    int64_t const row = by_warps ? int64_t(blockIdx.x) * warps + warp : args.first_row + blockIdx.y;
    int64_t const first = by_warps ? 0 : int64_t(blockIdx.x) * args.chunk_leaves;
    int const leaves = int(by_warps ? args.leaves : min(int64_t(args.chunk_leaves), args.leaves - first));
    A mine = Op::identity();
    if (row < args.outputs)
        for_each_dot_leaf<Op, Vector>(args, row, first, leaves, by_warps ? 0 : warp, by_warps ? 1 : warps,
                                      [&](int i, A sum) {
                                          if (by_warps)
                                              mine = choose(lane == i, sum, mine);
                                          else if (lane == 0)
                                              value[i] = sum;
                                      });
    if (by_warps) {
        mine = fold_lanes<Op>(mine, leaves <= 1 ? 1 : 1 << (kWarp - __clz(leaves - 1)));  // as many as have a value
        if (lane == 0 && row < args.outputs) store_result<Op>(args.results, row, mine);
        return;
    }
    __syncthreads();
    A total = fold_block<Op>(ArrayValues<A>{value, leaves, Op::identity()}, leaves, scratch);
    if (args.chunks > 1) {
        Letter* const boxes = args.mailbox + int64_t(blockIdx.y) * args.chunks * letters<A>;
        if (threadIdx.x == 0) send(boxes + blockIdx.x * letters<A>, 1, total);
        if (blockIdx.x != args.chunks - 1) return;
        __syncthreads();  // before value is written again
        total = collect<Op>(boxes, args.chunks, value);
    }
    if (threadIdx.x == 0) store_result<Op>(args.results, row, total);
}

}  // namespace

cudaError_t run_dot_row(const DotProblem& problem, const Plan& plan, const DotBuffers& buffers) {
    if (plan.chunks > kMaxFold || plan.chunk_leaves > kRowGroups) return cudaErrorInvalidConfiguration;
    return dispatch_dot_loader(problem, plan, [&](auto op, auto vector) {
        constexpr bool kVector = decltype(vector)::value;
        auto args = dot_args<kVector>(problem, plan, buffers);
        if (plan.path == Path::warp_row) {
            dot_row_kernel<decltype(op), kVector><<<unsigned(plan.grid_x), plan.threads, 0, buffers.stream>>>(args);
            return;
        }
        for (; args.first_row < problem.outputs; args.first_row += plan.grid_y) {
            dim3 const grid(unsigned(plan.grid_x), unsigned(std::min(plan.grid_y, problem.outputs - args.first_row)));
            dot_row_kernel<decltype(op), kVector><<<grid, plan.threads, 0, buffers.stream>>>(args);
        }
    });
}

}  // namespace gpureduce::cuda
