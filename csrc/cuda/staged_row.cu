// Rows of at most one leaf that vector loads cannot take: of odd length, or at an odd address. Memory is one run of rows,
// with gaps smaller than a row between them, read as such and added from shared memory.
//
// Who owns what: a block owns tile_rows rows, stages all of them, adds them and is done. A row has lanes_per_row neighbouring
// lanes (one, if it is of at most kPart elements), each of which adds kPart elements of it, or, of a row longer than one load
// a lane, an equal part of the positions and at each of them up to four elements; then the lanes fold. Valid: in the first
// lane of a row. Needs: addresses that are multiples of the element. Moves: the input once, gaps included.
// Barriers: 1.
#include "launch.cuh"
#include "staging.cuh"

namespace gpureduce::cuda {
namespace {

constexpr int kAtOnce = 8;     // elements that a lane reads before it adds
constexpr int kVeryShort = 4;  // elements

// The threads that an SM can hold: 1,024 on 7.5, 2,048 on 8.0, 9.0 and 10.0, 1,536 on the others.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kSmThreads = 1024;
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ % 100 != 0 || __CUDA_ARCH__ > 1000)
constexpr int kSmThreads = 1536;
#else
constexpr int kSmThreads = 2048;
#endif

// Blocks that must fit an SM, with registers for eight accumulators and the fold over them.
template <class Op>
constexpr int wanted_blocks = sizeof(typename Op::acc) <= 4 || adds_words<Op> ? 8
                              : sizeof(typename Op::acc) <= 8                 ? kStagedBlocksPerSm
                              : sizeof(typename Op::acc) <= 16                ? 4
                                                                              : 2;
template <class Op>
constexpr int staged_blocks = std::min(wanted_blocks<Op>, kSmThreads / kStagedThreads);
// Of longer rows: as many as their tiles leave room for on an SM of the H200, if the registers do.
template <class Op>
constexpr int leaf_blocks = sizeof(typename Op::acc) <= 4 || adds_words<Op> ? std::min(6, staged_blocks<Op>)
                            : sizeof(typename Op::acc) <= 8                 ? std::min(5, staged_blocks<Op>)
                                                                            : 2;

struct StagedArgs {
    const void *in, *in_end;
    int64_t outputs, n;
    int pitch;  // elements from one row to the next
    int tile_rows, lanes_log2;
    int part_elements;  // small integers of longer rows: that a lane adds
    Results results;
};

// The perfect binary tree over Size elements of which `count` exist, at least one.
template <class Op, int Size>
__device__ __forceinline__ typename Op::acc node_of(const typename Op::element* cell, int count) {
    using A = typename Op::acc;
    if constexpr (Size <= kAtOnce) {
        A value[Size];
#pragma unroll
        for (int j = 0; j < Size; ++j) value[j] = j < count ? Op::load(cell[j]) : Op::identity();
        return fold_pairwise<Op>(value);
    } else {
        A const low = node_of<Op, Size / 2>(cell, count);
        if (count <= Size / 2) return low;
        return Op::combine(low, node_of<Op, Size / 2>(cell + Size / 2, count - Size / 2));
    }
}

// Integers of one or two bytes, in any order: by words, the bytes before and behind the elements cleared.
template <class E>
__device__ __forceinline__ int add_narrow(const E* cell, int count) {
    int const before = int(reinterpret_cast<uintptr_t>(cell) % 4);
    const auto* const word = reinterpret_cast<const unsigned*>(reinterpret_cast<const char*>(cell) - before);
    int const end = before + count * int(sizeof(E)), last = (end - 1) / 4;  // bytes, word
    unsigned const first_mask = ~0u << (8 * before), last_mask = ~0u >> (8 * (3 - (end - 1) % 4));
    int total = add_word<E>(0, word[0] & (last == 0 ? first_mask & last_mask : first_mask));
#pragma unroll 8
    for (int i = 1; i < last; ++i) total = add_word<E>(total, word[i]);
    return last == 0 ? total : add_word<E>(total, word[last] & last_mask);
}

// What one lane adds of a row of row_elements: `count` of them, at most kPart. Very short rows have a tree of their own: with
// millions of them the instructions count.
template <class Op>
__device__ __forceinline__ RowPart<Op> part_sum(const typename Op::element* cell, int count, int row_elements) {
    if constexpr (adds_words<Op>)
        return count > 0 ? add_narrow(cell, count) : 0;
    else if (row_elements <= kVeryShort)
        return node_of<Op, kVeryShort>(cell, count);
    else
        return count > 0 ? node_of<Op, kPart>(cell, count) : Op::identity();
}

// Size positions of the perfect binary tree; at each of them up to Loads elements, which are one load of all lanes apart, are
// added first. `left` elements of the row are left from `cell` on; the first one of each position exists.
template <class Op, int Size, int Loads>
__device__ __forceinline__ typename Op::acc node_of_loads(const typename Op::element* cell, int left) {
    constexpr int kStep = kLanes * components<typename Op::element>;
    typename Op::acc value[Size];
#pragma unroll
    for (int j = 0; j < Size; ++j) value[j] = Op::load(cell[j]);
#pragma unroll
    for (int k = 1; k < Loads; ++k)
#pragma unroll
        for (int j = 0; j < Size; ++j)
            if (j + k * kStep < left) value[j] = Op::combine(value[j], Op::load(cell[j + k * kStep]));
    return fold_pairwise<Op>(value);
}

// The whole tree over Size positions: in a loop, since straight on it would be thousands of instructions, each for once. A
// counter keeps the nodes; without branches, so that it is in registers.
template <class Op, int Size, int Loads>
__device__ __forceinline__ typename Op::acc tree_of_loads(const typename Op::element* cell, int left) {
    using A = typename Op::acc;
    constexpr int kTurn = is_compensated<A> ? 8 : 16, kLevels = ceil_log2(Size / kTurn);
    A level[kLevels], node = Op::identity();
#pragma unroll
    for (auto& value : level) value = Op::identity();
#pragma unroll 1
    for (int turn = 0; turn < Size / kTurn; ++turn, cell += kTurn, left -= kTurn) {
        node = node_of_loads<Op, kTurn, Loads>(cell, left);
        bool full = true;
#pragma unroll
        for (int d = 0; d < kLevels; ++d) {
            bool const second = turn & (1 << d);
            A const both = Op::combine(level[d], node);
            level[d] = choose(full && !second, node, level[d]);
            full = full && second;
            node = choose(full, both, node);
        }
    }
    return node;
}

// What one lane, the part-th of its row, adds of a row longer than one load a lane.
template <class Op>
__device__ __forceinline__ RowPart<Op> leaf_part(const typename Op::element* row, int part, int row_elements,
                                                 int part_elements) {
    using E = typename Op::element;
    if constexpr (adds_words<Op>) {
        int const first = part * part_elements, count = min(row_elements - first, part_elements);
        return count > 0 ? add_narrow(row + first, count) : 0;
    } else {
        constexpr int kStep = kLanes * components<E>, kEach = kStep / staged_lanes(int(sizeof(E)), false);
        const E* const cell = row + part * kEach;
        int const left = row_elements - part * kEach;
        return row_elements <= 2 * kStep ? tree_of_loads<Op, kEach, 2>(cell, left)
                                         : tree_of_loads<Op, kEach, kLoads>(cell, left);
    }
}

// The rows of this block, in shared memory.
template <class E>
struct Tile {
    int64_t first;
    int rows;
    const E* cells;

    __device__ __forceinline__ Tile(const StagedArgs& args, unsigned char* shared) {
        first = int64_t(blockIdx.x) * args.tile_rows;
        rows = int(min(int64_t(args.tile_rows), args.outputs - first));
        const E* const start = static_cast<const E*>(args.in) + first * args.pitch;
        cells = stage_run(start, (rows - 1) * args.pitch + int(args.n), args.in, args.in_end, shared, threadIdx.x,
                          kStagedThreads);
        commit_copies();
        wait_for_copies<0>();
        __syncthreads();
    }
};

template <class Op>
__global__ void __launch_bounds__(kStagedThreads, staged_blocks<Op>)
    staged_row_kernel(const __grid_constant__ StagedArgs args) {
    using E = typename Op::element;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    Tile<E> const tile(args, shared_bytes);
    int const row_elements = int(args.n);
    // tile_rows is a multiple of 32, so a warp takes part as a whole.
    int const lanes = 1 << args.lanes_log2;
#pragma unroll 1
    for (int task = threadIdx.x; task < args.tile_rows << args.lanes_log2; task += kStagedThreads) {
        int const row = task >> args.lanes_log2, part = (task & (lanes - 1)) * kPart;
        int const count = row < tile.rows ? min(row_elements - part, kPart) : 0;
        RowPart<Op> sum[1] = {part_sum<Op>(tile.cells + row * args.pitch + part, count, row_elements)};
        fold_rows<Op>(sum, lanes);
        if (part == 0 && row < tile.rows) store_result<Op>(args.results, tile.first + row, sum[0], Stream{});
    }
}

template <class Op>
__global__ void __launch_bounds__(kStagedThreads, leaf_blocks<Op>)
    staged_leaf_kernel(const __grid_constant__ StagedArgs args) {
    using E = typename Op::element;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    Tile<E> const tile(args, shared_bytes);
    constexpr int kTaskLanes = staged_lanes(int(sizeof(E)), Op::order_free);
    // Warps take part as a whole: lanes without a row add the last one, and store nothing.
    int const tasks = (tile.rows * kTaskLanes + kWarp - 1) / kWarp * kWarp;
#pragma unroll 1
    for (int task = threadIdx.x; task < tasks; task += kStagedThreads) {
        int const row = task / kTaskLanes, part = task % kTaskLanes;
        const E* const start = tile.cells + min(row, tile.rows - 1) * args.pitch;
        RowPart<Op> sum[1] = {leaf_part<Op>(start, part, int(args.n), args.part_elements)};
        fold_rows<Op>(sum, kTaskLanes);
        if (part == 0 && row < tile.rows) store_result<Op>(args.results, tile.first + row, sum[0], Stream{});
    }
}

}  // namespace

cudaError_t run_staged_row(const Problem& p, const Plan& plan, const Buffers& b) {
    int const element_bytes = dtype_info(p.in).bytes;
    bool const longer = p.n > kLanes * components_of(element_bytes);
    if (p.kept.count != 1 || plan.tile_rows < 1) return cudaErrorInvalidConfiguration;
    if (!longer && plan.tile_rows % kWarp != 0) return cudaErrorInvalidConfiguration;
    StagedArgs args{};
    args.in = b.in;
    args.in_end = end_of(p, b.in);
    args.outputs = p.outputs;
    args.n = p.n;
    args.pitch = int(p.kept.last().stride);
    args.tile_rows = plan.tile_rows;
    args.lanes_log2 = ceil_log2(plan.lanes_per_row);
    // An odd number of words, so that neighbouring lanes read from different banks.
    args.part_elements = int((ceil_div(p.n * element_bytes, 4 * plan.lanes_per_row) | 1) * 4 / element_bytes);
    args.results = results_of(p, b);
    size_t const shared_bytes = size_t(staged_bytes(int64_t(args.tile_rows) * args.pitch * element_bytes));
    return dispatch<CoveredSums>(p, [&](auto op) {
        auto const launch = [&](auto kernel) {
            kernel<<<unsigned(plan.grid_x), kStagedThreads, shared_bytes, b.stream>>>(args);
        };
        longer ? launch(staged_leaf_kernel<decltype(op)>) : launch(staged_row_kernel<decltype(op)>);
    });
}

}  // namespace gpureduce::cuda
