// Few columns, many rows, no gaps: memory is one run, read coalesced through shared memory.
//
// Who owns what: a block owns chunk_leaves leaves (of 8 rows) and stages them in tiles of tile_leaves, kNarrowStages deep, so
// that some are on their way while one is added. A thread owns one column of one leaf; after kNarrowBatch
// tiles a warp owns a column and folds its leaves; batches fold by a binary counter in shared memory. The block of the last chunk collects the others. Valid: in
// lane 0 of the warp that owns the column. Needs: a 16-byte aligned base. Moves: the input once, one accumulator a column and
// chunk out and in. Barriers: 1 a tile, 1 a batch.
#include "launch.cuh"
#include "mailbox.cuh"

namespace gpureduce::cuda {
namespace {

struct NarrowArgs {
    const void* in;
    void* out;
    Letter* mailbox;
    int64_t n, leaves, chunk_leaves, chunks, out_stride;
    int columns, tile_leaves;
    int leaf_pitch;  // elements from one leaf to the next in shared memory
    Divisor by_columns, by_leaf_packs;
    DType out_type;
};

__device__ __forceinline__ void copy_async(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(unsigned(__cvta_generic_to_shared(shared))),
                 "l"(global));
#else
    *static_cast<uint4*>(shared) = load_vector(global);
#endif
}
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}
template <int Pending>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending));
#endif
}

// Starts the copy of elements [begin, end) into `stage`; begin is that of a leaf. The last elements, if they do not fill a
// pack, are copied at once. Leaves of a multiple of 128 bytes get a row between them: else all would start in one bank.
template <class E>
__device__ __forceinline__ void stage_elements(const NarrowArgs& args, int64_t begin, int64_t end, E* stage) {
    const E* const in = static_cast<const E*>(args.in) + begin;
    int const count = int(end - begin);
    int const packs = count / components<E>;
    int const gap = args.leaf_pitch - kColumnLeafRows * args.columns;
    for (int i = threadIdx.x; i < packs; i += kNarrowThreads) {
        int const leaf = gap == 0 ? 0 : int(args.by_leaf_packs.divide(unsigned(i)));
        copy_async(stage + i * components<E> + leaf * gap, in + i * components<E>);
    }
    for (int i = packs * components<E> + threadIdx.x; i < count; i += kNarrowThreads)
        stage[i + i / (kColumnLeafRows * args.columns) * gap] = load_element(in + i);
}

template <class Op>
__global__ void __launch_bounds__(kNarrowThreads, kNarrowBlocksPerSm)
    narrow_column_kernel(const __grid_constant__ NarrowArgs args) {
    using E = typename Op::element;
    using A = typename Op::acc;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    int const columns = args.columns, tile_leaves = args.tile_leaves;
    int const tile_elements = tile_leaves * kColumnLeafRows * columns;
    int const stage_elements_each = tile_leaves * args.leaf_pitch;
    E* const stage = reinterpret_cast<E*>(shared_bytes);  // kNarrowStages tiles
    A* const leaf_value =
        reinterpret_cast<A*>(shared_bytes + kNarrowStages * sizeof(E) * stage_elements_each);  // [column][leaf]
    A* const level = leaf_value + kNarrowBatch * tile_leaves * columns;  // [column][kNarrowLevels]

    int const warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    int64_t const first_row = blockIdx.x * args.chunk_leaves * kColumnLeafRows;
    int64_t const last_row = min(first_row + args.chunk_leaves * kColumnLeafRows, args.n);
    int64_t const end = last_row * columns;
    int const tile_rows = tile_leaves * kColumnLeafRows, batch_leaves = kNarrowBatch * tile_leaves;
    int const tiles = int((last_row - first_row + tile_rows - 1) / tile_rows);
    auto const start = [&](int tile) {
        int64_t const begin = first_row * columns + int64_t(tile) * tile_elements;
        if (tile < tiles)
            stage_elements(args, begin, min(begin + tile_elements, end),
                           stage + tile % kNarrowStages * stage_elements_each);
        commit_copies();
    };

    for (int tile = 0; tile < kNarrowStages - 1; ++tile) start(tile);
    for (int tile = 0; tile < tiles; ++tile) {
        wait_for_copies<kNarrowStages - 2>();
        __syncthreads();  // the tile is there, and the one before it has been added: its place can be filled
        start(tile + kNarrowStages - 1);
        int64_t const rows_left = last_row - first_row - int64_t(tile) * tile_rows;
        int const rows = int(min(rows_left, int64_t(tile_rows)));
        int const leaves = (rows + kColumnLeafRows - 1) / kColumnLeafRows;
        int const before = tile % kNarrowBatch * tile_leaves;  // leaves of the batch that earlier tiles had
        const E* const cells = stage + tile % kNarrowStages * stage_elements_each;
        for (int task = threadIdx.x; task < leaves * columns; task += kNarrowThreads) {
            int const leaf = int(args.by_columns.divide(unsigned(task))), column = task - leaf * columns;
            const E* const cell = cells + leaf * args.leaf_pitch + column;
            int const present = min(rows - leaf * kColumnLeafRows, kColumnLeafRows);
            A sum = Op::identity();
#pragma unroll
            for (int r = 0; r < kColumnLeafRows; ++r)
                if (r < present) sum = Op::combine(sum, Op::load(cell[r * columns]));
            leaf_value[column * batch_leaves + before + leaf] = sum;
        }
        if (tile % kNarrowBatch != kNarrowBatch - 1 && tile != tiles - 1) continue;
        __syncthreads();
        int const batch = tile / kNarrowBatch;
        for (int column = warp; column < columns; column += kNarrowThreads / kWarp) {
            ArrayValues<A> const values{leaf_value + column * batch_leaves, before + leaves, Op::identity()};
            A node = fold_warp<Op>(values, before + leaves);
            if (lane == 0) {
                int d = 0;
                for (; (batch >> d) & 1; ++d) node = Op::combine(level[column * kNarrowLevels + d], node);
                level[column * kNarrowLevels + d] = node;
            }
        }
    }

    int const batches = (tiles + kNarrowBatch - 1) / kNarrowBatch;
    for (int column = warp; column < columns; column += kNarrowThreads / kWarp) {
        A total = Op::identity();
        for (int d = 0; batches >> d; ++d)
            if ((batches >> d) & 1) total = Op::combine(level[column * kNarrowLevels + d], total);
        Letter* const boxes = args.mailbox + column * args.chunks * letters<A>;
        if (args.chunks > 1) {
            if (lane == 0) send(boxes + blockIdx.x * letters<A>, 1, total);
            if (blockIdx.x != args.chunks - 1) continue;
            total = fold_warp<Op>(Partials<Op>{boxes, int(args.chunks)}, int(args.chunks));
        }
        if (lane == 0) store_result<Op>(args.out, column * args.out_stride, args.out_type, total, args.n);
    }
}

}  // namespace

cudaError_t run_narrow_column(const Problem& p, const Plan& plan, const Buffers& b) {
    if (plan.chunks > kGroup * kWarp || plan.loader != Loader::vector) return cudaErrorInvalidConfiguration;
    NarrowArgs args{};
    Axis const columns = p.kept.last();
    args.in = b.in;
    args.out = b.out;
    args.mailbox = static_cast<Letter*>(b.mailbox);
    args.n = p.n;
    args.leaves = leaves_of(Family::column, dtype_info(p.in).bytes, p.n);
    args.chunk_leaves = plan.chunk_leaves;
    args.chunks = plan.chunks;
    args.out_stride = columns.out_stride;
    args.columns = int(columns.size);
    args.tile_leaves = plan.tile_leaves;
    args.by_columns = Divisor::of(columns.size);
    int const bytes = dtype_info(p.in).bytes;
    bool const padded = columns.size * bytes % kVectorBytes == 0;
    args.leaf_pitch = (kColumnLeafRows + (padded ? 1 : 0)) * args.columns;
    if (padded) args.by_leaf_packs = Divisor::of(kColumnLeafRows * columns.size / components_of(bytes));
    args.out_type = p.out;
    return dispatch(p, [&](auto op) {
        using Op = decltype(op);
        size_t const tile = size_t(args.tile_leaves) * args.columns;
        size_t const shared_bytes = kNarrowStages * args.tile_leaves * args.leaf_pitch * sizeof(typename Op::element) +
                                    (kNarrowBatch * tile + args.columns * kNarrowLevels) * sizeof(typename Op::acc);
        narrow_column_kernel<Op><<<unsigned(plan.grid_x), kNarrowThreads, shared_bytes, b.stream>>>(args);
    });
}

}  // namespace gpureduce::cuda
