// Columns: a kept index moves fastest, so threads side by side own columns side by side.
//
// Who owns what: a unit is V columns of one batch (16 bytes, or one column). Block (tile, chunk) owns threads_across units
// and chunk_leaves leaves (of 8 rows) of them. Thread (x, y) owns one unit and a run of run_leaves leaves, round after round.
// Threads of one x fold through shared memory by y; chunks join (join.cuh).
// Valid: in y = 0. Needs: for V > 1 aligned 16-byte columns. Moves: the input once, `chunks` accumulators a column out and in.
// Barriers: one a fold, one before the memory of a fold is used again, and those of a join.
#pragma once

#include "join.cuh"
#include "launch.cuh"
#include "store_columns.cuh"

namespace gpureduce::cuda {

template <class Op, int V>
constexpr int min_column_blocks = column_blocks_per_sm(V * int(sizeof(typename Op::acc)), is_heavy<Op>);

// Which unit a thread owns, and which share of its rows.
struct ColumnShare {
    int y, down;
    int64_t unit;
    bool exists;

    template <class Args>
    __device__ __forceinline__ explicit ColumnShare(const Args& args) {
        unsigned thread, block;  // volatile, so that nothing of an earlier share is kept in registers
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
        int const across = 1 << args.across_log2;
        y = int(thread) >> args.across_log2;
        down = int(blockDim.x) >> args.across_log2;
        unit = int64_t(block) * across + (int(thread) & (across - 1));
        exists = unit < args.units;
        if (!exists) unit = args.units - 1;
    }
};

// The rows that a run from `row` on has.
template <class Args>
__device__ __forceinline__ int rows_of_run(const Args& args, int64_t row) {
    int64_t const left = args.n - row;
    int const most = args.run_leaves * kColumnLeafRows;
    return left >= most ? most : int(max(left, int64_t(0)));
}

// The first row of a thread.
template <class Args>
__device__ __forceinline__ int64_t start_row(const Args& args, int y) {
    return (int64_t(int(blockIdx.y)) * args.chunk_leaves + y * args.run_leaves) * kColumnLeafRows;
}

// From the run of one round to that of the next.
template <class Args>
__device__ __forceinline__ int64_t round_rows(const Args& args, const ColumnShare& share) {
    return int64_t(share.down * args.run_leaves) * kColumnLeafRows;
}

// One round: the run of this thread from `row` on. The loop over whole groups has no call in it, so that nothing needs to be
// kept in memory across one.
template <class Op, int V, Rows R>
__device__ __forceinline__ Values<Op, V> reduce_run(const ColumnReader<Op, V, R>& reader, int64_t row,
                                                    SharedCounter<Op, V> counter) {
    using Reader = ColumnReader<Op, V, R>;
    auto const& args = reader.args;
    int const rows = rows_of_run(args, row);
    int const whole = rows / Reader::kRows;
    bool const rest = rows % Reader::kRows != 0;
    if constexpr (Op::order_free) {
        auto sum = Reader::none();
#pragma unroll 1
        for (int i = 0; i < whole; ++i, row += Reader::kRows) Reader::join(sum, reader.whole(row));
        if (rest) Reader::join(sum, ragged<Op, V, R>(args, reader.start, row));
        Values<Op, V> total;
#pragma unroll
        for (int v = 0; v < V; ++v) total.of[v] = sum.of[v];
        return total;
    } else {
#pragma unroll 1
        for (int i = 0; i < whole; ++i, row += Reader::kRows) counter.push(i, reader.whole(row));
        if (rest) counter.push(whole, ragged<Op, V, R>(args, reader.start, row));
        return counter.total(whole + rest);
    }
}

// The node of a chunk, in y = 0. Shared memory: a counter of every thread, then one over rounds of every x.
template <class Op, int V, Rows R>
__device__ __forceinline__ Values<Op, V> reduce_chunk(const ColumnArgs<R>& args, int levels, Values<Op, V>* shared) {
    ColumnShare const share(args);
    using E = typename Op::element;
    auto const* const in = static_cast<const E*>(args.in) + args.places.at(share.unit).in;
    ColumnReader<Op, V, R> const reader{args, reinterpret_cast<const char*>(in)};
    SharedCounter<Op, V> const counter{shared + threadIdx.x, int(blockDim.x)};
    int const across = 1 << args.across_log2;
    SharedCounter<Op, V> const rounds{shared + levels * int(blockDim.x) + (int(threadIdx.x) & (across - 1)), across};
    int64_t row = start_row(args, share.y);
#pragma unroll 1
    for (int round = 0;; row += round_rows(args, share)) {
        auto node = reduce_run<Op, V>(reader, row, counter);
        node = fold_down<Op, V>(node, args.across_log2, shared);
        if (args.rounds == 1) return node;
        if (share.y == 0) {
            rounds.push(round, node);
            if (round + 1 == args.rounds) node = rounds.total(args.rounds);
        }
        if (++round == args.rounds) return node;
        __syncthreads();
    }
}

// The end of a block, if others have the same tile: the one whose tile is complete stores its columns one by one. The fold has used
// the memory, of which the first warp still reads what is not its own; the first `across` values are.
template <class Op, int V, class Args>
__device__ __forceinline__ void join_tile(const Args& args, const Values<Op, V>& node, Values<Op, V>* shared) {
    using A = typename Op::acc;
    A* const value = reinterpret_cast<A*>(shared);
    int const across = 1 << args.across_log2, x = threadIdx.x;
    int64_t const first_unit = int64_t(blockIdx.x) * across;
    int const columns = int(min(int64_t(across), args.units - first_unit)) * V;
    int const columns_log2 = min(args.across_log2 + ceil_log2(V), 31 - __clz(int(blockDim.x)));
    Join<Op> join{args.mailbox + first_unit * V * letters<A>, args.units * V, columns, columns_log2};
    if (x < across && x * V < columns)
#pragma unroll
        for (int v = 0; v < V; ++v) join.give(blockIdx.y, x * V + v, node.of[v]);
    auto* const scratch = reinterpret_cast<Values<Op, 1>*>(value + across * V);
    if (!join.run(blockIdx.y, args.chunks, value, scratch)) return;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        int64_t const out = args.places.at(first_unit + i / V).out + i % V * args.column_out_stride;
        store_result<Op>(args.results, out, value[i]);
    }
}

// What a launch with a unit of V columns has of either kind.
template <class Args, class Axes, class Buffers>
void set_tiles(Args& args, const Plan& plan, int64_t n, int64_t outputs, const Axes& kept, int V, const Buffers& b) {
    args.mailbox = static_cast<Letter*>(b.mailbox);
    args.n = n;
    args.chunk_leaves = int(plan.chunks > 1 ? plan.chunk_leaves : 0);
    args.chunks = int(plan.chunks);
    args.run_leaves = plan.run_leaves;
    args.rounds = int(plan.chunk_leaves / (int64_t(plan.run_leaves) * (plan.threads / plan.threads_across)));
    args.units = outputs / V;
    args.across_log2 = ceil_log2(plan.threads_across);
    args.column_out_stride = kept.last().out_stride;
    args.places = decltype(args.places)::of_units(kept, V);
}

template <class Op, int V, Rows R>
__global__ void __launch_bounds__(kColumnThreads, min_column_blocks<Op, V>)
    column_kernel(const __grid_constant__ ColumnArgs<R> args, int levels) {
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    auto* const shared = reinterpret_cast<Values<Op, V>*>(shared_bytes);
    auto const node = reduce_chunk<Op, V>(args, levels, shared);
    if (args.chunks > 1) return join_tile<Op, V>(args, node, shared);
    ColumnShare const share(args);
    if (share.y == 0 && share.exists) store_columns<Op, V>(args, args.places.at(share.unit).out, node);
}

template <class Op, int V, Rows R>
void launch_columns(const Problem& p, const Plan& plan, const Buffers& b) {
    ColumnArgs<R> args{};
    set_tiles(args, plan, p.n, p.outputs, p.kept, V, b);
    int64_t const bytes = sizeof(typename Op::element);
    Axis const rows = p.reduced.last();
    args.in = b.in;
    args.row_step = rows.stride * bytes;
    if (R == Rows::two_axes) {
        if (p.reduced.count == 2) args.run_gap = (p.reduced.axis[0].stride - rows.size * rows.stride) * bytes;
        args.by_run = Divisor::of(rows.size);
    }
    args.results = results_of(p, b);
    if (R == Rows::scattered) args.rows = decltype(args.rows)::of(p.reduced, p.reduced.count);
    dim3 const grid(unsigned(plan.grid_x), unsigned(plan.grid_y));
    column_kernel<Op, V, R><<<grid, plan.threads, size_t(plan.shared_bytes), b.stream>>>(args, plan.counter_levels);
}

template <class Ops>
cudaError_t launch_column(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    Axis const rows = problem.reduced.last();
    bool const one = problem.reduced.count == 1, walk = problem.reduced.count <= 2 && problem.n < (int64_t(1) << 31);
    bool const near = one && walk && share_lines(rows.stride * dtype_info(problem.in).bytes);
    return dispatch<Ops>(problem, [&](auto op) {
        using Op = decltype(op);
        auto const with = [&](auto columns, auto rows) {
            launch_columns<Op, decltype(columns)::value, decltype(rows)::value>(problem, plan, buffers);
        };
        std::integral_constant<int, unit_columns<Op>> constexpr vectors{};
        std::integral_constant<int, 1> constexpr single{};
        std::integral_constant<Rows, Rows::one_axis> constexpr one_axis{};
        std::integral_constant<Rows, Rows::two_axes> constexpr two_axes{};
        std::integral_constant<Rows, Rows::scattered> constexpr scattered{};
        if (plan.loader == Loader::vector) {
            if constexpr (Op::coverage != Coverage::basic)
                if (!one || near) return with(vectors, two_axes);
            return with(vectors, one_axis);
        }
        bool const few = problem.kept.count <= column_axes<Rows::two_axes>;
        if constexpr (Op::coverage == Coverage::every)
            if (few && (near || (walk && !one))) return with(single, two_axes);
        if constexpr (Op::coverage != Coverage::basic)
            if (few && one) return with(single, one_axis);
        with(single, scattered);
    });
}

}  // namespace gpureduce::cuda
