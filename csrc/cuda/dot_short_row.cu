// Dot products of rows of at most as many elements as a warp is wide, with any steps.
//
// Who owns what: a group of 1 to 32 lanes owns kDotRowsAtOnce rows, a lane an element of each. Valid: in the group's first
// lane. Moves: both inputs once. Barriers: none.
#include "dot.cuh"

namespace gpureduce::cuda {
namespace {

template <class Op>
__global__ void __launch_bounds__(kMaxThreads)
    dot_short_row_kernel(const __grid_constant__ DotArgs<false> args, int lanes_log2) {
    using E = typename Op::element;
    using A = typename Op::acc;
    int const lanes = 1 << lanes_log2, lane = int(threadIdx.x) & (lanes - 1);
    int64_t const groups = blockDim.x >> lanes_log2;
    int64_t const first = int64_t(blockIdx.x) * groups * kDotRowsAtOnce + (threadIdx.x >> lanes_log2);
    E a[kDotRowsAtOnce], b[kDotRowsAtOnce];
    bool mine[kDotRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kDotRowsAtOnce; ++i) {
        int64_t const row = first + i * groups;
        mine[i] = row < args.outputs && lane < args.n;
        if (!mine[i]) continue;
        PairOffset const offset = args.kept.at(row);
        a[i] = load_element(static_cast<const E*>(args.x) + offset.x + lane * args.step_x);
        b[i] = load_element(static_cast<const E*>(args.y) + offset.y + lane * args.step_y);
    }
#pragma unroll
    for (int i = 0; i < kDotRowsAtOnce; ++i) {
        A sum = Op::identity();
        if (mine[i]) sum = Op::product(a[i], b[i], args.conjugate);
        sum = fold_lanes<Op>(sum, lanes);
        if (lane == 0 && first + i * groups < args.outputs)
            store_result<Op>(args.results, first + i * groups, sum, Stream{});
    }
}

}  // namespace

cudaError_t run_dot_short_row(const DotProblem& problem, const Plan& plan, const DotBuffers& buffers) {
    if (problem.n > kLanes || plan.lanes_per_row < problem.n) return cudaErrorInvalidConfiguration;
    return dispatch_dot(problem, [&](auto op) {
        dot_short_row_kernel<decltype(op)><<<unsigned(plan.grid_x), plan.threads, 0, buffers.stream>>>(
            dot_args<false>(problem, plan, buffers), ceil_log2(plan.lanes_per_row));
    });
}

}  // namespace gpureduce::cuda
