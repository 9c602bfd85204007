// Columns of few rows, where each thread has enough to do with columns of its own.
//
// Who owns what: a unit is V columns of one batch (16 bytes, or one column). A thread owns kUnits units, a block's width apart,
// and walks all their rows: it has a leaf (8 rows) of each of them in flight, or the kFewRows rows that there are, and the
// nodes of the tree in registers. A block is done when its threads are; nobody shares anything.
// Valid: in every thread. Needs: rows along one axis, at most kThreadRows; for V > 1 aligned 16-byte columns. Moves: the input
// once. Barriers: none.
#include "launch.cuh"
#include "store_columns.cuh"

namespace gpureduce::cuda {
namespace {

constexpr int kLevels = ceil_log2(kThreadRows / kColumnLeafRows);

struct ThreadArgs {
    const void* in;
    int64_t n;
    int64_t row_step;  // bytes
    unsigned units;
    bool in_order;  // outputs lie in the order of the units
    int64_t column_out_stride;
    Results results;
    AxisMap<column_axes<Rows::one_axis>> places;  // of units
};

// What a thread does, with R rows of each unit in flight: a leaf, or all rows of the column.
template <class Op, int V, int R, Rows Near>
struct ColumnWalk {
    using E = typename Op::element;
    using Reader = ColumnReader<Op, V, Near>;
    using Loaded = typename Reader::Loaded;
    using Cells = typename Reader::Cells;
    static constexpr int kUnits = thread_units(V * int(sizeof(E)), R);

    const ThreadArgs& args;
    const char* row[kUnits];  // the next ones

    __device__ __forceinline__ explicit ColumnWalk(const ThreadArgs& a) : args(a) {
        auto const start = [&](int64_t place) {
            return static_cast<const char*>(args.in) + place * int64_t(sizeof(E));
        };
        if (args.places.count <= 1) {
#pragma unroll
            for (int u = 0; u < kUnits; ++u) row[u] = start(read_unit(u) * args.places.stride[0]);
        } else {
#pragma unroll
            for (int u = 0; u < kUnits; ++u) row[u] = start(args.places.at(read_unit(u)).in);
        }
    }
    static __device__ __forceinline__ unsigned unit(int u) {
        return (blockIdx.x * kUnits + u) * blockDim.x + threadIdx.x;
    }
    // The same, or, in the last block, one that exists.
    __device__ __forceinline__ int64_t read_unit(int u) const { return min(unit(u), args.units - 1); }
    static __device__ __forceinline__ Loaded load_if(bool wanted, const char* address) {
        if constexpr (V == 1)
            return {{load_element_if(wanted, reinterpret_cast<const E*>(address))}};
        else
            return bit_cast<Loaded>(R > kFewRows && Near == Rows::one_axis ? load_vector_if(wanted, address)
                                                                           : load_cached_vector_if(wanted, address));
    }

    static __device__ __forceinline__ void clear(Cells (&sum)[kUnits]) {
#pragma unroll
        for (auto& cells : sum) cells = Reader::none();
    }

    // Adds the next R rows of each unit, of which `count` exist, or, if Whole, all.
    template <bool Whole>
    __device__ __forceinline__ void read(Cells (&sum)[kUnits], int count) {
        Loaded rows[kUnits][R];
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int u = 0; u < kUnits; ++u) {
                const char* const address = row[u] + r * args.row_step;
                rows[u][r] = Whole ? Reader::load(address) : load_if(r < count, address);
            }
#pragma unroll
        for (int r = 0; r < R; ++r)
            if (Whole || r < count)
#pragma unroll
                for (int u = 0; u < kUnits; ++u) Reader::add_to(sum[u], rows[u][r]);
#pragma unroll
        for (int u = 0; u < kUnits; ++u) row[u] += R * args.row_step;
    }
};

// The binary counter over leaves that are not the last. All threads take the same branches, and none of them an index, so it
// is in registers.
template <class Op, int V, int Units>
struct Nodes {
    using Node = Values<Op, V>;
    Node level[kLevels][Units];

    template <int D = 0>
    __device__ __forceinline__ void push(int index, Node (&node)[Units]) {
        if constexpr (D < kLevels) {
            if (index & (1 << D)) {
#pragma unroll
                for (int u = 0; u < Units; ++u) node[u] = combine<Op, V>(level[D][u], node[u]);
                push<D + 1>(index, node);
            } else {
#pragma unroll
                for (int u = 0; u < Units; ++u) level[D][u] = node[u];
            }
        }
    }
    // With the last one, number `index`.
    __device__ __forceinline__ void finish(int index, Node (&node)[Units]) const {
#pragma unroll
        for (int d = 0; d < kLevels; ++d)
            if (index & (1 << d))
#pragma unroll
                for (int u = 0; u < Units; ++u) node[u] = combine<Op, V>(level[d][u], node[u]);
    }
};

// All rows of a thread's units.
template <class Op, int V, int R, Rows Near>
__device__ __forceinline__ void walk_all(ColumnWalk<Op, V, R, Near>& walk,
                                         Values<Op, V> (&total)[ColumnWalk<Op, V, R, Near>::kUnits]) {
    using Walk = ColumnWalk<Op, V, R, Near>;
    int const rows = int(walk.args.n), last = R == kColumnLeafRows ? (rows - 1) / R : 0;  // number of the last leaf
    typename Walk::Cells sum[Walk::kUnits];
    Nodes<Op, V, Walk::kUnits> nodes;
    Walk::clear(sum);
#pragma unroll 1
    for (int i = 0; i < last; ++i) {
        walk.template read<true>(sum, R);
        if constexpr (!Op::order_free) {
            nodes.push(i, sum);
            Walk::clear(sum);
        }
    }
    walk.template read<false>(sum, rows - last * R);
    if constexpr (!Op::order_free) nodes.finish(last, sum);
#pragma unroll
    for (int u = 0; u < Walk::kUnits; ++u)
#pragma unroll
        for (int v = 0; v < V; ++v) total[u].of[v] = sum[u].of[v];
}

// Blocks that must fit an SM, by the bytes of a thread's nodes: the levels of the counter take registers. Two of them still
// have 64 KB in flight.
template <class Op, int V>
constexpr int node_bytes =
    V * int(sizeof(typename Op::acc)) * thread_units(V * int(sizeof(typename Op::element)), kColumnLeafRows);
constexpr int thread_blocks(int bytes) { return bytes <= 16 ? 4 : bytes <= 32 ? 3 : 2; }

template <class Op, int V, int R, Rows Near>
__global__ void __launch_bounds__(kColumnThreads, thread_blocks(node_bytes<Op, V>))
    thread_column_kernel(const __grid_constant__ ThreadArgs args) {
    ColumnWalk<Op, V, R, Near> walk(args);
    constexpr int kUnits = ColumnWalk<Op, V, R, Near>::kUnits;
    Values<Op, V> total[kUnits];
    walk_all(walk, total);
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
        unsigned const unit = walk.unit(u);
        if (unit >= args.units) continue;
        int64_t const out = args.in_order ? int64_t(unit) * V : args.places.at(unit).out;
        store_columns<Op, V>(args, out, total[u], Stream{});
    }
}

template <class Op, int V, int R>
void launch_thread_columns(const Problem& p, const Plan& plan, const Buffers& b) {
    Axis const columns = p.kept.last();
    ThreadArgs args{};
    args.in = b.in;
    args.n = p.n;
    args.row_step = p.reduced.last().stride * int64_t(sizeof(typename Op::element));
    args.units = unsigned(p.outputs / V);
    args.in_order = columns.out_stride == 1;
    args.column_out_stride = columns.out_stride;
    args.results = results_of(p, b);
    args.places = decltype(args.places)::of_units(p.kept, V);
    auto const launch = [&](auto kernel) { kernel<<<unsigned(plan.grid_x), plan.threads, 0, b.stream>>>(args); };
    if constexpr (R > kFewRows)
        if (share_lines(args.row_step)) return launch(thread_column_kernel<Op, V, R, Rows::two_axes>);
    launch(thread_column_kernel<Op, V, R, Rows::one_axis>);
}

}  // namespace

cudaError_t run_thread_column(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    bool const fits = problem.n <= kThreadRows && problem.reduced.count == 1 && problem.outputs < int64_t(1) << 31;
    if (!fits) return cudaErrorInvalidConfiguration;
    return dispatch<CoveredSums>(problem, [&](auto op) {
        using Op = decltype(op);
        constexpr int V = components<typename Op::element>;
        bool const few = problem.n <= kFewRows, vector = plan.loader == Loader::vector;
        if (vector && few) return launch_thread_columns<Op, V, kFewRows>(problem, plan, buffers);
        if (vector) return launch_thread_columns<Op, V, kColumnLeafRows>(problem, plan, buffers);
        if (few) return launch_thread_columns<Op, 1, kFewRows>(problem, plan, buffers);
        launch_thread_columns<Op, 1, kColumnLeafRows>(problem, plan, buffers);
    });
}

}  // namespace gpureduce::cuda
