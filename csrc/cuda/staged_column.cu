// Columns of odd width: memory is runs of rows, which every warp copies to shared memory leaf by leaf, as they lie there.
//
// Who owns what: block (chunk, batch) owns chunk_leaves leaves (of 8 rows) of all columns of a batch, each of its warps a run of
// them, one after the other: while it adds one leaf, the next is on its way. Lane i of a warp owns columns i, i + 32, ...: it adds
// 8 rows of each and pushes the sum to the column's counter, in shared memory. Then each thread folds the warps' nodes of its
// columns. Warps share nothing before the end. Chunks join (join.cuh).
// Valid: in the thread of the column. Needs: rows side by side, or nearly, with gaps between runs of them at whole leaves only.
// Moves: the input once, with what lies between the rows, one accumulator a column and chunk out and in. Barriers: 1, and those
// of a join.
#include "join.cuh"
#include "launch.cuh"
#include "staging.cuh"

namespace gpureduce::cuda {
namespace {

struct StagedArgs {
    const void *in, *in_end;
    int rows, columns;
    int pitch;  // elements from row to row
    int stage_bytes, run_leaves, counter_levels;
    Divisor by_run;     // rows of a run
    int64_t run_gap;    // elements that the step between two runs has more than one between rows
    AxisMap<4> places;  // of batches
    Letter* mailbox;
    int64_t outputs;
    int chunks, columns_log2;
    int64_t column_out_stride;
    Results results;
};

// Columns that a lane adds at once: one alone would wait for each of its additions.
constexpr int kTogether = 4;
template <class Op>
using Sums = typename Op::acc[kTogether];

// Column `first`, and those that are 32 columns from each other behind it; where there is none, the first one again.
struct LaneColumns {
    int of[kTogether];
    int count;  // that there are

    __device__ __forceinline__ LaneColumns(int first, int columns) : count(0) {
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
            bool const exists = first + k * kWarp < columns;
            of[k] = exists ? first + k * kWarp : first;
            count += exists;
        }
    }
};

// The sums of columns of a leaf. Narrow integers are added as int, which eight of them cannot overflow.
template <class Op>
__device__ __forceinline__ void add_rows(const typename Op::element* cells, const LaneColumns& columns, int pitch,
                                         int rows, Sums<Op>& sum) {
    using Cell = std::conditional_t<adds_words<Op>, int, typename Op::acc>;
    Cell cell[kTogether];
#pragma unroll
    for (Cell& c : cell) c = Cell(Op::identity());
    auto const add_row = [&](int r) {
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
            auto const x = Op::load(cells[r * pitch + columns.of[k]]);
            if constexpr (adds_words<Op>)
                cell[k] += int(x);
            else
                cell[k] = Op::combine(cell[k], x);
        }
    };
    if (rows == kColumnLeafRows) {
#pragma unroll
        for (int r = 0; r < kColumnLeafRows; ++r) add_row(r);
    } else {
#pragma unroll 1
        for (int r = 0; r < rows; ++r) add_row(r);
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k) sum[k] = cell[k];
}

// A counter over the leaves of a run for every column, level by level.
template <class Op>
struct ColumnCounters {
    using A = typename Op::acc;
    A* level;
    int columns;

    // Leaf number `index`.
    __device__ __forceinline__ void push(int index, const LaneColumns& lane, Sums<Op>& node) const {
        A* at = level;
        auto const add = [&] {
#pragma unroll
            for (int k = 0; k < kTogether; ++k) node[k] = Op::combine(at[lane.of[k]], node[k]);
        };
        if (Op::order_free && index > 0) add();
#pragma unroll 1
        for (int rest = Op::order_free ? 0 : index; rest & 1; rest >>= 1, at += columns) add();
#pragma unroll
        for (int k = 0; k < kTogether; ++k)
            if (k < lane.count) at[lane.of[k]] = node[k];
    }
    __device__ __forceinline__ A total(int count, int column) const {
        A sum = Op::identity();
        const A* at = level + column;
#pragma unroll 1
        for (int left = Op::order_free ? count > 0 : count; left != 0; left >>= 1, at += columns)
            if (left & 1) sum = Op::combine(*at, sum);
        return sum;
    }
};

// The run of a warp from leaf `first` on. Returns its leaves.
template <class Op>
__device__ __forceinline__ int reduce_run(const StagedArgs& args, const typename Op::element* in, int first,
                                          unsigned char* stages, const ColumnCounters<Op>& counters) {
    using E = typename Op::element;
    int const lane = threadIdx.x % kWarp;
    int const leaves = max(0, min(args.run_leaves, (args.rows - 1) / kColumnLeafRows + 1 - first));
    auto const rows_of = [&](int leaf) { return min(args.rows - leaf * kColumnLeafRows, kColumnLeafRows); };
    auto const memory_of = [&](int leaf) {
        int const row = leaf * kColumnLeafRows;
        return in + int64_t(row) * args.pitch + args.by_run.divide(unsigned(row)) * args.run_gap;
    };
    auto const stage_of = [&](int leaf) { return stages + leaf % kStagedColumnStages * args.stage_bytes; };
    auto const start = [&](int leaf) {
        if (leaf < first + leaves)
            stage_run(memory_of(leaf), (rows_of(leaf) - 1) * args.pitch + args.columns, args.in, args.in_end,
                      stage_of(leaf), lane, kWarp);
        commit_copies();
    };
    for (int ahead = 0; ahead < kStagedColumnStages - 1; ++ahead) start(first + ahead);
#pragma unroll 1
    for (int leaf = first; leaf < first + leaves; ++leaf) {
        start(leaf + kStagedColumnStages - 1);
        wait_for_copies<kStagedColumnStages - 1>();
        __syncwarp();
        const E* const cells = staged_at(memory_of(leaf), stage_of(leaf));
#pragma unroll 1
        for (int column = lane; column < args.columns; column += kTogether * kWarp) {
            LaneColumns const columns(column, args.columns);
            Sums<Op> sum;
            add_rows<Op>(cells, columns, args.pitch, rows_of(leaf), sum);
            counters.push(leaf - first, columns, sum);
        }
        __syncwarp();
    }
    return leaves;
}

template <class Op>
__global__ void __launch_bounds__(kStagedColumnThreads) staged_column_kernel(const __grid_constant__ StagedArgs args) {
    using E = typename Op::element;
    using A = typename Op::acc;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    int const warps = int(blockDim.x) / kWarp, warp = int(threadIdx.x) / kWarp;
    unsigned char* const stages = shared_bytes + warp * kStagedColumnStages * args.stage_bytes;
    A* const level = reinterpret_cast<A*>(shared_bytes + warps * kStagedColumnStages * args.stage_bytes);
    int const values = args.counter_levels * args.columns;
    ColumnCounters<Op> const counters{level + warp * values, args.columns};
    Offset const place = args.places.at(blockIdx.y);
    int const first = (int(blockIdx.x) * warps + warp) * args.run_leaves;
    int const leaves = reduce_run<Op>(args, static_cast<const E*>(args.in) + place.in, first, stages, counters);
    for (int column = int(threadIdx.x) % kWarp; column < args.columns; column += kWarp)
        counters.level[column] = counters.total(leaves, column);
    __syncthreads();
    A* const total = reinterpret_cast<A*>(shared_bytes);  // [column], where nothing is staged any more
    Join<Op> join{args.mailbox + int64_t(blockIdx.y) * args.columns * letters<A>, args.outputs, args.columns,
                  args.columns_log2};
    for (int column = threadIdx.x; column < args.columns; column += blockDim.x) {
        A node[kStagedColumnThreads / kWarp];
#pragma unroll
        for (int w = 0; w < kStagedColumnThreads / kWarp; ++w)
            node[w] = w < warps ? level[w * values + column] : Op::identity();
        total[column] = fold_pairwise<Op>(node);
        if (args.chunks > 1) join.give(blockIdx.x, column, total[column]);
    }
    auto* const scratch = reinterpret_cast<Values<Op, 1>*>(total + args.columns);  // [thread]
    if (args.chunks > 1 && !join.run(blockIdx.x, args.chunks, total, scratch)) return;
    for (int column = threadIdx.x; column < args.columns; column += blockDim.x)
        store_result<Op>(args.results, place.out + column * args.column_out_stride, total[column]);
}

}  // namespace

cudaError_t run_staged_column(const Problem& p, const Plan& plan, const Buffers& b) {
    StagedArgs args{};
    Axis const columns = p.kept.last(), rows = p.reduced.last();
    args.in = b.in;
    args.in_end = end_of(p, b.in);
    args.rows = int(p.n);
    args.columns = int(columns.size);
    args.pitch = int(rows.stride);
    args.stage_bytes = plan.stage_bytes;
    args.run_leaves = plan.run_leaves;
    args.counter_levels = plan.counter_levels;
    args.by_run = Divisor::of(rows.size);
    if (p.reduced.count == 2) args.run_gap = p.reduced.axis[0].stride - rows.size * rows.stride;
    args.places = decltype(args.places)::of(p.kept, p.kept.count - 1);
    args.mailbox = static_cast<Letter*>(b.mailbox);
    args.outputs = p.outputs;
    args.chunks = int(plan.chunks);
    args.columns_log2 = std::min(ceil_log2(columns.size), ceil_log2(plan.threads));
    args.column_out_stride = columns.out_stride;
    args.results = results_of(p, b);
    dim3 const grid(unsigned(plan.grid_x), unsigned(plan.grid_y));
    return dispatch<CoveredSums>(p, [&](auto op) {
        staged_column_kernel<decltype(op)><<<grid, plan.threads, size_t(plan.shared_bytes), b.stream>>>(args);
    });
}

}  // namespace gpureduce::cuda
