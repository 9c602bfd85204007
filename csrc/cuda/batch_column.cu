// Three columns, as of points: a thread a leaf, 8 rows of 3 columns, which are whole packs side by side.
//
// Short batches. Who owns what: thread y of `down` owns leaf y of a batch; a block has as many batches as fit. The threads of a batch
// fold by shuffles, beyond a warp through shared memory. Valid: in y = 0. Needs: batches of whole packs at 16-byte boundaries,
// without gaps between rows, of no more leaves than a block has threads. Moves: the input once; what a load of a warp skips, its
// next ones read, through the L1. Barriers: 1, none if a batch has a warp or less.
//
// Long ones. Who owns what: block (batch, chunk) owns chunk_leaves leaves, each of its warps a run of them, which it takes in rounds:
// a leaf a lane, which fold by shuffles. Lane i keeps the node of round i, so that the tree above is one more fold of lanes, and then
// of warps (fold_down). Chunks join (join.cuh). Valid: in thread 0. Needs: batches at 16-byte boundaries, no more rounds than lanes.
// Moves: the input once, `chunks` accumulators a column out and in. Barriers: one, and those of a join.
#include "column.cuh"

namespace gpureduce::cuda {
namespace {

constexpr int kColumns = kBatchColumns;

struct BatchArgs {
    const void* in;
    int64_t batches;
    int rows, down_log2;
    int64_t column_out_stride;
    Results results;
    AxisMap<4> places;  // of batches
};

using LongArgs = ColumnArgs<Rows::one_axis>;

template <class Op>
using Node = Values<Op, kColumns>;

// A leaf, of which `rows` rows exist.
template <class Op>
__device__ __forceinline__ Node<Op> leaf_of(const typename Op::element* first, int rows) {
    using E = typename Op::element;
    struct alignas(kVectorBytes) {
        E element[kColumnLeafRows * kColumns];
    } leaf;
    auto* const packs = reinterpret_cast<uint4*>(&leaf);
#pragma unroll
    for (int i = 0; i < kColumnLeafRows * kColumns / components<E>; ++i)
        packs[i] = load_cached_vector_if(i * components<E> < rows * kColumns, first + i * components<E>);
    auto node = no_values<Op, kColumns>();
#pragma unroll
    for (int r = 0; r < kColumnLeafRows; ++r)
        if (r < rows)
#pragma unroll
            for (int c = 0; c < kColumns; ++c)
                node.of[c] = Op::combine(node.of[c], Op::load(leaf.element[r * kColumns + c]));
    return node;
}

template <class Op>
__global__ void __launch_bounds__(kColumnThreads) batch_column_kernel(const __grid_constant__ BatchArgs args) {
    using E = typename Op::element;
    __shared__ Node<Op> of_warp[kColumnThreads / kWarp];
    int const thread = threadIdx.x, down = 1 << args.down_log2, y = thread & (down - 1);
    int64_t const batch = int64_t(blockIdx.x) * (int(blockDim.x) >> args.down_log2) + (thread >> args.down_log2);
    bool const exists = batch < args.batches;
    Offset const place = args.places.at(exists ? batch : 0);
    int const first_row = y * kColumnLeafRows;
    auto node = leaf_of<Op>(static_cast<const E*>(args.in) + place.in + first_row * kColumns,
                            exists ? args.rows - first_row : 0);
#pragma unroll 1
    for (int step = 1; step < min(down, kWarp); step *= 2)
        node = combine<Op, kColumns>(node, shuffle_values<Op, kColumns>(node, step));
    if (down > kWarp) {
        if (thread % kWarp == 0) of_warp[thread / kWarp] = node;
        __syncthreads();
        const Node<Op>* const parts = of_warp + thread / kWarp;
        if (y == 0)
            node = down == 2 * kWarp   ? fold_parts<Op, kColumns, 2>(parts, 1)
                   : down == 4 * kWarp ? fold_parts<Op, kColumns, 4>(parts, 1)
                                       : fold_parts<Op, kColumns, 8>(parts, 1);
    }
    if (y > 0 || !exists) return;
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
        store_result<Op>(args.results, place.out + c * args.column_out_stride, node.of[c]);
}

// Leaf number `leaf`, which is the last one if rows are missing.
template <class Op>
__device__ __forceinline__ Node<Op> any_leaf(const LongArgs& args, const typename Op::element* in, int64_t leaf) {
    int64_t const row = leaf * kColumnLeafRows;
    const auto* const first = in + row * kColumns;
    if (row + kColumnLeafRows <= args.n) return leaf_of<Op>(first, kColumnLeafRows);
    auto node = no_values<Op, kColumns>();
#pragma unroll 1
    for (int i = 0; i < int(args.n - row) * kColumns; i += kColumns)
#pragma unroll
        for (int c = 0; c < kColumns; ++c) node.of[c] = Op::combine(node.of[c], Op::load(load_element(first + i + c)));
    return node;
}

template <class Op>
__global__ void __launch_bounds__(kColumnThreads, min_column_blocks<Op, kColumns>)
    long_batch_kernel(const __grid_constant__ LongArgs args) {
    using E = typename Op::element;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    auto* const shared = reinterpret_cast<Node<Op>*>(shared_bytes);
    int const warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
    Offset const place = args.places.at(blockIdx.x);
    const E* const in = static_cast<const E*>(args.in) + place.in;
    int64_t leaf = int64_t(int(blockIdx.y)) * args.chunk_leaves + warp * args.rounds * kWarp + lane;
    auto kept = no_values<Op, kColumns>();
#pragma unroll 1
    for (int round = 0; round < args.rounds; ++round, leaf += kWarp) {
        auto node = leaf * kColumnLeafRows < args.n ? any_leaf<Op>(args, in, leaf) : no_values<Op, kColumns>();
#pragma unroll
        for (int step = 1; step < kWarp; step *= 2)
            node = combine<Op, kColumns>(node, shuffle_values<Op, kColumns>(node, step));
        if (lane == round) kept = node;
    }
    auto const node = fold_down<Op, kColumns>(kept, 0, shared);
    if (args.chunks > 1) return join_tile<Op, kColumns>(args, node, shared);
    if (threadIdx.x == 0) store_columns<Op, kColumns>(args, place.out, node);
}

template <class Op>
void launch_batches(const Problem& p, const Plan& plan, const Buffers& b) {
    BatchArgs args{};
    args.in = b.in;
    args.batches = p.outputs / kColumns;
    args.rows = int(p.n);
    args.down_log2 = ceil_log2(plan.threads / plan.tile_batches);
    args.column_out_stride = p.kept.last().out_stride;
    args.results = results_of(p, b);
    args.places = decltype(args.places)::of(p.kept, p.kept.count - 1);
    batch_column_kernel<Op><<<unsigned(plan.grid_x), plan.threads, 0, b.stream>>>(args);
}

template <class Op>
void launch_long_batches(const Problem& p, const Plan& plan, const Buffers& b) {
    LongArgs args{};
    set_tiles(args, plan, p.n, p.outputs, p.kept, kColumns, b);
    args.in = b.in;
    args.results = results_of(p, b);
    dim3 const grid(unsigned(plan.grid_x), unsigned(plan.grid_y));
    long_batch_kernel<Op><<<grid, plan.threads, size_t(plan.shared_bytes), b.stream>>>(args);
}

}  // namespace

cudaError_t run_batch_column(const Problem& p, const Plan& plan, const Buffers& b) {
    bool found = false;
    cudaError_t const result = dispatch<CoveredSums>(p, [&](auto op) {
        using Op = decltype(op);
        if constexpr (has_batch_columns(int(sizeof(typename Op::element)), Op::key.accumulate)) {
            found = true;
            if (plan.tile_batches > 0)
                launch_batches<Op>(p, plan, b);
            else
                launch_long_batches<Op>(p, plan, b);
        }
    });
    return found ? result : cudaErrorInvalidValue;
}

}  // namespace gpureduce::cuda
