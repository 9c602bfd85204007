// Few columns, many rows: memory is one run, which every warp copies to shared memory piece by piece, as it lies there.
//
// Who owns what: a block owns chunk_leaves leaves (of 8 rows), each of its warps a quarter of them, which it takes in tiles of
// tile_leaves: while it adds one, the next is on its way. A lane owns one column of one leaf at a time; then some lanes
// own a column and fold the leaves of the tile, and the tiles by a binary counter. Warps share nothing before the end.
// Chunks join (join.cuh).
// Valid: in the thread of the column. Needs: nothing of the address. Moves: the input once, with what
// lies between the rows, one accumulator a column and chunk out and in. Barriers: 1, and those of a join.
#include "join.cuh"
#include "launch.cuh"
#include "staging.cuh"

namespace gpureduce::cuda {
namespace {

constexpr int kWarps = kNarrowThreads / kWarp;

struct NarrowArgs {
    const void *in, *in_end;
    Letter* mailbox;
    int64_t n, leaves, chunk_leaves, chunks, out_stride;
    int columns, columns_log2;
    int pitch;  // elements from row to row
    int tile_leaves, value_pitch, counter_levels;
    int stage_bytes;  // of one tile
    int lanes_log2;   // of the lanes that fold a column together
    Divisor by_columns;
    Results results;
};

// What a warp has in shared memory.
template <class Op>
struct WarpMemory {
    using A = typename Op::acc;
    A* leaf_value;         // [column][leaf of the tile]
    A* level;              // [column][counter_levels]
    unsigned char* stage;  // [kNarrowStages][stage_bytes]

    __device__ __forceinline__ WarpMemory(const NarrowArgs& args, unsigned char* shared, int warp) {
        int const stages = kWarps * kNarrowStages * args.stage_bytes;
        int const values = args.columns * (args.value_pitch + args.counter_levels);
        stage = shared + warp * kNarrowStages * args.stage_bytes;
        leaf_value = reinterpret_cast<A*>(shared + stages) + warp * values;
        level = leaf_value + args.columns * args.value_pitch;
    }
};

// Column by column, the sum of each of `leaves` leaves that hold `rows` rows; of the others, the identity.
template <class Op>
__device__ __forceinline__ void sum_leaves(const NarrowArgs& args, const typename Op::element* cells, int rows,
                                           typename Op::acc* leaf_value) {
    using A = typename Op::acc;
    for (int task = threadIdx.x % kWarp; task < args.tile_leaves * args.columns; task += kWarp) {
        int const leaf = int(args.by_columns.divide(unsigned(task))), column = task - leaf * args.columns;
        const auto* const cell = cells + leaf * kColumnLeafRows * args.pitch + column;
        int const present = rows - leaf * kColumnLeafRows;
        A sum = Op::identity();
        if (present >= kColumnLeafRows) {
#pragma unroll
            for (int r = 0; r < kColumnLeafRows; ++r) sum = Op::combine(sum, Op::load(cell[r * args.pitch]));
        } else {
#pragma unroll 1
            for (int r = 0; r < present; ++r) sum = Op::combine(sum, Op::load(cell[r * args.pitch]));
        }
        leaf_value[column * args.value_pitch + leaf] = sum;
    }
}

// The leaves of tile number `tile`, folded, onto the counter of each column.
template <class Op>
__device__ __forceinline__ void fold_tile(const NarrowArgs& args, const WarpMemory<Op>& memory, int tile) {
    using A = typename Op::acc;
    int const lane = threadIdx.x % kWarp, lanes = 1 << args.lanes_log2;
    int const share = lane & (lanes - 1), each = args.tile_leaves >> args.lanes_log2;
    for (int first = 0; first < args.columns; first += kWarp >> args.lanes_log2) {
        int const column = first + (lane >> args.lanes_log2);
        bool const exists = column < args.columns;
        const A* const own = memory.leaf_value + (exists ? column : 0) * args.value_pitch + share * each;
        A value[kNarrowEach];
#pragma unroll
        for (int i = 0; i < kNarrowEach; ++i) value[i] = i < each ? own[i] : Op::identity();
        A node = fold_lanes<Op>(fold_pairwise<Op>(value), lanes);
        if (share != 0 || !exists) continue;
        A* at = memory.level + column * args.counter_levels;
        if (Op::order_free && tile > 0) node = Op::combine(*at, node);
        for (int rest = Op::order_free ? 0 : tile; rest & 1; rest >>= 1, ++at) node = Op::combine(*at, node);
        *at = node;
    }
}

// The leaves [leaf, last) by one warp. Returns the number of tiles that are on the counters.
template <class Op>
__device__ __forceinline__ int reduce_run(const NarrowArgs& args, const WarpMemory<Op>& memory, int64_t leaf,
                                          int64_t last) {
    using E = typename Op::element;
    int64_t const rows = min(last * kColumnLeafRows, args.n) - leaf * kColumnLeafRows;
    int const tile_rows = args.tile_leaves * kColumnLeafRows;
    int const tiles = rows <= 0 ? 0 : int((rows + tile_rows - 1) / tile_rows);
    const E* const in = static_cast<const E*>(args.in) + leaf * kColumnLeafRows * args.pitch;
    auto const rows_of = [&](int tile) { return int(min(rows - int64_t(tile) * tile_rows, int64_t(tile_rows))); };
    auto const stage_of = [&](int tile) { return memory.stage + tile % kNarrowStages * args.stage_bytes; };
    auto const first_of = [&](int tile) { return in + int64_t(tile) * tile_rows * args.pitch; };
    auto const start = [&](int tile) {
        if (tile < tiles)
            stage_run(first_of(tile), (rows_of(tile) - 1) * args.pitch + args.columns, args.in, args.in_end,
                      stage_of(tile), threadIdx.x % kWarp, kWarp);
        commit_copies();
    };
    for (int tile = 0; tile < kNarrowStages - 1; ++tile) start(tile);
    for (int tile = 0; tile < tiles; ++tile) {
        start(tile + kNarrowStages - 1);
        wait_for_copies<kNarrowStages - 1>();
        __syncwarp();
        sum_leaves<Op>(args, staged_at(first_of(tile), stage_of(tile)), rows_of(tile), memory.leaf_value);
        __syncwarp();
        fold_tile<Op>(args, memory, tile);
        __syncwarp();
    }
    return tiles;
}

template <class Op>
__global__ void __launch_bounds__(kNarrowThreads, kNarrowBlocksPerSm)
    narrow_column_kernel(const __grid_constant__ NarrowArgs args) {
    using A = typename Op::acc;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    A* const total = reinterpret_cast<A*>(shared_bytes);                             // [column]
    auto* const scratch = reinterpret_cast<Values<Op, 1>*>(total + kNarrowThreads);  // [thread]
    unsigned char* const rest = shared_bytes + 2 * kNarrowThreads * sizeof(A);
    int const warp = threadIdx.x / kWarp;
    WarpMemory<Op> const memory(args, rest, warp);
    int64_t const run = args.chunk_leaves / kWarps, first = blockIdx.x * args.chunk_leaves + warp * run;
    int const tiles = reduce_run<Op>(args, memory, first, min(first + run, args.leaves));
    for (int column = threadIdx.x % kWarp; column < args.columns; column += kWarp) {
        A node = Op::identity();
        const A* at = memory.level + column * args.counter_levels;
        for (int left = Op::order_free ? tiles > 0 : tiles; left != 0; left >>= 1, ++at)
            if (left & 1) node = Op::combine(*at, node);
        memory.leaf_value[column * args.value_pitch] = node;  // in the place of its first leaf
    }
    __syncthreads();
    int const column = threadIdx.x;  // at most kNarrowThreads of them
    if (column < args.columns) {
        A of[kWarps];
#pragma unroll
        for (int w = 0; w < kWarps; ++w) of[w] = WarpMemory<Op>(args, rest, w).leaf_value[column * args.value_pitch];
        total[column] = fold_pairwise<Op>(of);
    }
    if (args.chunks > 1) {
        Join<Op> join{args.mailbox, args.columns, args.columns, args.columns_log2};
        if (column < args.columns) join.give(blockIdx.x, column, total[column]);
        if (!join.run(blockIdx.x, int(args.chunks), total, scratch)) return;
    }
    if (column < args.columns) store_result<Op>(args.results, column * args.out_stride, total[column]);
}

}  // namespace

cudaError_t run_narrow_column(const Problem& p, const Plan& plan, const Buffers& b) {
    NarrowArgs args{};
    Axis const columns = p.kept.last();
    args.in = b.in;
    args.in_end = end_of(p, b.in);
    args.mailbox = static_cast<Letter*>(b.mailbox);
    args.n = p.n;
    args.leaves = leaves_of(Family::column, dtype_info(p.in).bytes, p.n);
    args.chunk_leaves = plan.chunk_leaves;
    args.chunks = plan.chunks;
    args.out_stride = columns.out_stride;
    args.columns = int(columns.size);
    args.columns_log2 = ceil_log2(columns.size);
    args.pitch = int(p.reduced.last().stride);
    args.tile_leaves = plan.tile_leaves;
    args.value_pitch = plan.value_pitch;
    args.counter_levels = plan.counter_levels;
    args.stage_bytes = plan.stage_bytes;
    args.lanes_log2 = ceil_log2(plan.lanes_per_column);
    args.by_columns = Divisor::of(columns.size);
    args.results = results_of(p, b);
    return dispatch<CoveredSums>(p, [&](auto op) {
        narrow_column_kernel<decltype(op)>
            <<<unsigned(plan.grid_x), kNarrowThreads, size_t(plan.shared_bytes), b.stream>>>(args);
    });
}

}  // namespace gpureduce::cuda
