// Three columns in many batches, as of points: a thread a leaf.
//
// Who owns what: thread y of `down` owns leaf y of a batch, 8 rows of 3 columns, which are whole packs side by side; a block has as
// many batches as fit. The threads of a batch fold by shuffles, beyond a warp through shared memory. Valid: in y = 0. Needs: batches
// of whole packs at 16-byte boundaries, without gaps between rows, of no more leaves than a block has threads. Moves: the input
// once; what a load of a warp skips, its next ones read, through the L1. Barriers: 1, none if a batch has a warp or less.
#include "column_reader.cuh"
#include "launch.cuh"

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

}  // namespace

cudaError_t run_batch_column(const Problem& p, const Plan& plan, const Buffers& b) {
    bool found = false;
    cudaError_t const result = dispatch<CoveredSums>(p, [&](auto op) {
        using Op = decltype(op);
        if constexpr (has_batch_columns(int(sizeof(typename Op::element)), Op::key.accumulate)) {
            found = true;
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
    });
    return found ? result : cudaErrorInvalidValue;
}

}  // namespace gpureduce::cuda
