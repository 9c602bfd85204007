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

// Where the columns of a unit are.
template <int V>
struct Place {
    int64_t batch, column;

    template <class Args>
    __device__ __forceinline__ Place(const Args& args, int64_t unit) {
        batch = args.units == args.units_per_batch ? 0
                : args.units < (int64_t(1) << 31)  ? args.by_batch.divide(uint32_t(unit))
                                                   : unit / args.units_per_batch;
        column = (unit - batch * args.units_per_batch) * V;
    }
    template <class Args>
    __device__ __forceinline__ int64_t in(const Args& args) const {
        return args.batch.at(batch).in + column * args.column_stride;
    }
    template <class Args>
    __device__ __forceinline__ int64_t out(const Args& args) const {
        return args.batch.at(batch).out + column * args.column_out_stride;
    }
};

// One round: the run of this thread from `row` on. The loop over whole groups has no call in it, so that nothing needs to be
// kept in memory across one.
template <class Op, int V, Rows R>
__device__ __forceinline__ Values<Op, V> reduce_run(const ColumnReader<Op, V, R>& reader, int64_t row,
                                                    SharedCounter<Op, V> counter) {
    using Reader = ColumnReader<Op, V, R>;
    auto const& args = reader.args;
    int const rows = int(max(int64_t(0), min(args.n - row, int64_t(args.run_leaves) * kColumnLeafRows)));
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
    const char* const in = static_cast<const char*>(args.in);
    ColumnReader<Op, V, R> const reader{
        args, in + Place<V>(args, share.unit).in(args) * int64_t(sizeof(typename Op::element))};
    SharedCounter<Op, V> const counter{shared + threadIdx.x, int(blockDim.x)};
    int const across = 1 << args.across_log2;
    SharedCounter<Op, V> const rounds{shared + levels * int(blockDim.x) + (int(threadIdx.x) & (across - 1)), across};
    int64_t const run_rows = int64_t(args.run_leaves) * kColumnLeafRows;
    int64_t row = blockIdx.y * args.chunk_leaves * kColumnLeafRows + share.y * run_rows;
#pragma unroll 1
    for (int round = 0;; row += share.down * run_rows) {
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

// The block whose tile is complete stores its columns one by one. The fold has used the memory, of which the first warp still
// reads what is not its own; the first `across` values are.
template <class Op, int V, Rows R>
__device__ __forceinline__ void join_tile(const ColumnArgs<R>& args, const Values<Op, V>& node, Values<Op, V>* shared) {
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
    if (!join.run(blockIdx.y, int(args.chunks), value, scratch)) return;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        int64_t const out = Place<V>(args, first_unit + i / V).out(args) + i % V * args.column_out_stride;
        store_result<Op>(args.results, out, value[i]);
    }
}

template <class Op, int V, Rows R>
__global__ void __launch_bounds__(kColumnThreads, min_column_blocks<Op, V>)
    column_kernel(const __grid_constant__ ColumnArgs<R> args, int levels) {
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    auto* const shared = reinterpret_cast<Values<Op, V>*>(shared_bytes);
    auto const node = reduce_chunk<Op, V>(args, levels, shared);
    if (args.chunks > 1) return join_tile<Op, V>(args, node, shared);
    ColumnShare const share(args);
    if (share.y == 0 && share.exists) store_columns<Op, V>(args, Place<V>(args, share.unit).out(args), node);
}

template <class Op, int V, Rows R>
void launch_columns(const Problem& p, const Plan& plan, const Buffers& b) {
    ColumnArgs<R> args{};
    int64_t const bytes = sizeof(typename Op::element);
    Axis const columns = p.kept.last(), rows = p.reduced.last();
    int const down = plan.threads / plan.threads_across;
    args.in = b.in;
    args.mailbox = static_cast<Letter*>(b.mailbox);
    args.n = p.n;
    args.row_step = rows.stride * bytes;
    if (R == Rows::two_axes) {
        args.run_gap = (p.reduced.axis[0].stride - rows.size * rows.stride) * bytes;
        args.by_run = Divisor::of(rows.size);
    }
    args.chunk_leaves = plan.chunk_leaves;
    args.chunks = plan.chunks;
    args.run_leaves = plan.run_leaves;
    args.rounds = int(plan.chunk_leaves / (int64_t(plan.run_leaves) * down));
    args.units_per_batch = ceil_div(columns.size, V);
    args.units = args.units_per_batch * (p.outputs / columns.size);
    args.by_batch = Divisor::of(args.units_per_batch);
    args.column_stride = columns.stride;
    args.column_out_stride = columns.out_stride;
    args.across_log2 = ceil_log2(plan.threads_across);
    args.results = results_of(p, b);
    args.batch = decltype(args.batch)::of(p.kept, p.kept.count - 1);
    if (R == Rows::scattered) args.rows = decltype(args.rows)::of(p.reduced, p.reduced.count);
    dim3 const grid(unsigned(plan.grid_x), unsigned(plan.grid_y));
    column_kernel<Op, V, R><<<grid, plan.threads, size_t(plan.shared_bytes), b.stream>>>(args, plan.counter_levels);
}

template <class Ops>
cudaError_t launch_column(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    bool const one = problem.reduced.count == 1, two = problem.reduced.count == 2 && problem.n < (int64_t(1) << 31);
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
                if (!one) return with(vectors, two_axes);
            return with(vectors, one_axis);
        }
        bool const few = problem.kept.count <= column_axes<Rows::two_axes>;
        if constexpr (Op::coverage != Coverage::basic) {
            if (one && few) return with(single, one_axis);
        }
        if constexpr (Op::coverage == Coverage::every)
            if (two && few) return with(single, two_axes);
        with(single, scattered);
    });
}

}  // namespace gpureduce::cuda
