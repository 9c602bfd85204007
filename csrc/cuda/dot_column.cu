// Dot products of columns, as column.cu adds them: threads side by side own columns side by side.
//
// Who owns what: a unit is V columns of one batch (16 bytes, or one column). Block (tile, chunk) owns threads_across units and
// chunk_leaves leaves (of 8 rows) of them. Thread (x, y) owns one unit and a run of run_leaves leaves, round after round.
// Threads of one x fold through shared memory by y; chunks join (join.cuh). Valid: in y = 0. Needs: for V > 1 aligned 16-byte
// columns of both inputs. Moves: both inputs once, `chunks` accumulators a column out and in.
// Barriers: one a fold, and one before the memory of a fold is used again.
#include "column.cuh"
#include "dot.cuh"

namespace gpureduce::cuda {
namespace {

struct DotColumnArgs {
    const void* x;
    const void* y;
    int64_t units, n;
    int64_t step_x, step_y;  // from row to row, elements
    int across_log2, chunk_leaves;
    int run_leaves, rounds;  // a chunk is `rounds` times run_leaves leaves of every thread down
    Letter* mailbox;
    int chunks;
    bool conjugate;
    int64_t column_out_stride;
    Results results;
};
template <int V>
struct DotTiles : DotColumnArgs {
    PairMap<pair_axes<(V > 1)>> places;  // of units
};

// With Splat, y is the same along the columns of a unit.
template <class Op, int V, bool Splat>
struct DotColumns {
    using E = typename Op::element;
    static constexpr int kLeaves =
        column_leaves_in_flight(V * int(sizeof(E)), V* int(sizeof(typename Op::acc)), is_heavy<Op>);
    static constexpr int kRows = kLeaves * kColumnLeafRows;
    static constexpr int kAtOnce = V > 1 ? kColumnLeafRows / 2 : kColumnLeafRows;  // rows in flight
    struct Loaded {
        E value[V];
    };

    const DotColumnArgs& args;
    const E* x;
    const E* y;

    static __device__ __forceinline__ Loaded load(const E* address) { return load_words<Loaded>(address); }
    static __device__ __forceinline__ Loaded load_y(const E* address) {
        if constexpr (!Splat) return load(address);
        Loaded all;
        E const one = load_element(address);
#pragma unroll
        for (E& each : all.value) each = one;
        return all;
    }
    __device__ __forceinline__ void add_row(Values<Op, V>& sum, const Loaded& a, const Loaded& b) const {
#pragma unroll
        for (int v = 0; v < V; ++v)
            sum.of[v] = Op::combine(sum.of[v], Op::product(a.value[v], b.value[v], args.conjugate));
    }
    // All rows of a leaf exist.
    __device__ __forceinline__ Values<Op, V> leaf(int64_t row) const {
        auto sum = no_values<Op, V>();
        const E* const first_x = x + row * args.step_x;
        const E* const first_y = y + row * args.step_y;
#pragma unroll
        for (int part = 0; part < kColumnLeafRows; part += kAtOnce) {
            Loaded a[kAtOnce], b[kAtOnce];
#pragma unroll
            for (int r = 0; r < kAtOnce; ++r) {
                a[r] = load(first_x + (part + r) * args.step_x);
                b[r] = load_y(first_y + (part + r) * args.step_y);
            }
#pragma unroll
            for (int r = 0; r < kAtOnce; ++r) add_row(sum, a[r], b[r]);
        }
        return sum;
    }
    // The next kRows rows, which all exist.
    __device__ __forceinline__ Values<Op, V> whole(int64_t row) const {
        Values<Op, V> value[kLeaves];
#pragma unroll
        for (int i = 0; i < kLeaves; ++i) value[i] = leaf(row + i * kColumnLeafRows);
#pragma unroll
        for (int step = 1; step < kLeaves; step *= 2)
#pragma unroll
            for (int i = 0; i < kLeaves; i += 2 * step) value[i] = combine<Op, V>(value[i], value[i + step]);
        return value[0];
    }
};

// Like whole(), where rows are missing. Out of line: few threads come here.
template <class Op, int V, bool Splat>
__device__ __noinline__ Values<Op, V> ragged_dot(const DotColumnArgs& args, const typename Op::element* x,
                                                 const typename Op::element* y, int64_t row) {
    using Columns = DotColumns<Op, V, Splat>;
    Columns const columns{args, x, y};
    Values<Op, V> value[Columns::kLeaves];
#pragma unroll
    for (int i = 0; i < Columns::kLeaves; ++i, row += kColumnLeafRows) {
        value[i] = no_values<Op, V>();
#pragma unroll 1
        for (int64_t r = row; r < row + kColumnLeafRows && r < args.n; ++r)
            columns.add_row(value[i], Columns::load(x + r * args.step_x), Columns::load_y(y + r * args.step_y));
    }
#pragma unroll
    for (int step = 1; step < Columns::kLeaves; step *= 2)
#pragma unroll
        for (int i = 0; i < Columns::kLeaves; i += 2 * step) value[i] = combine<Op, V>(value[i], value[i + step]);
    return value[0];
}

// One round: the run of this thread from `row` on.
template <class Op, int V, bool Splat>
__device__ __forceinline__ Values<Op, V> dot_run(const DotColumns<Op, V, Splat>& columns, int64_t row,
                                                 SharedCounter<Op, V> counter) {
    constexpr int kRows = DotColumns<Op, V, Splat>::kRows;
    auto const& args = columns.args;
    int const rows = rows_of_run(args, row);
    int const whole = rows / kRows;
    bool const rest = rows % kRows != 0;
#pragma unroll 1
    for (int i = 0; i < whole; ++i, row += kRows) counter.push(i, columns.whole(row));
    if (rest) counter.push(whole, ragged_dot<Op, V, Splat>(args, columns.x, columns.y, row));
    return counter.total(whole + rest);
}

template <class Op, int V, bool Splat>
__global__ void __launch_bounds__(kColumnThreads, min_column_blocks<Op, V>)
    dot_column_kernel(const __grid_constant__ DotTiles<V> args, int levels) {
    using E = typename Op::element;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    auto* const shared = reinterpret_cast<Values<Op, V>*>(shared_bytes);
    int const across = 1 << args.across_log2, x = int(threadIdx.x) & (across - 1);
    ColumnShare const share(args);
    PairOffset const place = args.places.at(share.unit);
    DotColumns<Op, V, Splat> const columns{args, static_cast<const E*>(args.x) + place.x,
                                           static_cast<const E*>(args.y) + place.y};
    SharedCounter<Op, V> const counter{shared + threadIdx.x, int(blockDim.x)};
    SharedCounter<Op, V> const rounds{shared + levels * int(blockDim.x) + x, across};
    int64_t row = start_row(args, share.y);
    auto node = no_values<Op, V>();
#pragma unroll 1
    for (int round = 0; round < args.rounds; ++round, row += round_rows(args, share)) {
        if (round > 0) __syncthreads();
        node = dot_run<Op, V, Splat>(columns, row, counter);
        node = fold_down<Op, V>(node, args.across_log2, shared);
        if (args.rounds > 1 && share.y == 0) {
            rounds.push(round, node);
            if (round + 1 == args.rounds) node = rounds.total(args.rounds);
        }
    }
    if (args.chunks > 1) return join_tile<Op, V>(args, node, shared);
    if (share.y == 0 && share.exists) store_columns<Op, V>(args, place.out, node);
}

template <class Op, int V, bool Splat = false>
void launch(const DotProblem& p, const Plan& plan, const DotBuffers& b) {
    DotTiles<V> args{};
    set_tiles(args, plan, p.n, p.outputs, p.kept, V, b);
    args.x = b.x;
    args.y = b.y;
    args.step_x = p.step[0];
    args.step_y = p.step[1];
    args.conjugate = p.conjugate;
    args.results = {b.out, nullptr, p.in, p.in, ending_of(p)};
    dim3 const grid(unsigned(plan.grid_x), unsigned(plan.grid_y));
    dot_column_kernel<Op, V, Splat>
        <<<grid, plan.threads, size_t(plan.shared_bytes), b.stream>>>(args, plan.counter_levels);
}

// x and y change places, so that y is the one that is the same along columns. Products of real numbers do not mind.
DotProblem exchanged(DotProblem p) {
    std::swap(p.step[0], p.step[1]);
    for (int d = 0; d < p.kept.count; ++d) std::swap(p.kept.axis[d].stride[0], p.kept.axis[d].stride[1]);
    return p;
}

template <class Op>
void launch_vectors(const DotProblem& p, const Plan& plan, const DotBuffers& b) {
    constexpr int kColumns = unit_columns<Op>;
    if (is_same_along_columns(p, 1)) return launch<Op, kColumns, true>(p, plan, b);
    if constexpr (Op::kind == Kind::real)
        if (is_same_along_columns(p, 0))
            return launch<Op, kColumns, true>(exchanged(p), plan, {b.y, b.x, b.out, b.mailbox, b.stream});
    launch<Op, kColumns>(p, plan, b);
}

}  // namespace

cudaError_t run_dot_column(const DotProblem& problem, const Plan& plan, const DotBuffers& buffers) {
    bool found = false;
    cudaError_t const result = dispatch_dot(problem, [&](auto op) {
        using Op = decltype(op);
        if constexpr (Op::has_columns) {
            constexpr int kColumns = unit_columns<Op>;
            found = true;
            if constexpr (kColumns > 1)
                if (plan.loader == Loader::vector) return launch_vectors<Op>(problem, plan, buffers);
            launch<Op, 1>(problem, plan, buffers);
        }
    });
    return found ? result : cudaErrorInvalidValue;
}

}  // namespace gpureduce::cuda
