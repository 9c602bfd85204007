// Rows that go down the columns of memory, as in the sum of all elements of a transposed or a channels_last tensor.
//
// Who owns what: block (tile, outer, row) owns the leaves that begin in a tile: some columns of memory, from one row of it to another.
// It copies the tile to shared memory as it lies there, and with it the elements in which its last leaves end: rows below, which
// are the first ones of the columns beside where memory ends, or of whole columns what follows in the row. Then a warp takes four
// leaves at a time, eight lanes each.
// The values of kTransposedGroup leaves are collected by the block of the last tile that they may begin in, and those of the groups
// by the last block. If there are more leaves than boxes, launches follow each other, and each leaves its groups' letters to the last.
// Valid: in thread 0. Moves: the input once, what is below tiles from the L2, one accumulator a leaf out and in.
// Barriers: 1, and 2 or 3 for each group that a block collects.
#pragma once

#include "../core/transposed.h"
#include "launch.cuh"
#include "mailbox.cuh"
#include "staging.cuh"

namespace gpureduce::cuda {

struct TransposedArgs {
    const void* in;
    int64_t pitch;              // elements from row to row of memory
    int rows, columns;          // of memory
    int width, starts;          // of a tile: columns, rows that its leaves begin in
    int depth;                  // its rows in shared memory
    int cell_columns;           // that are read at once
    int swap_shift, swap_mask;  // see TransposedTile::at
    int across_log2;            // of the threads side by side over a row
    int parts;                  // tiles one below the other
    Divisor by_parts, by_rows, by_columns;
    int64_t first_row;  // of this launch
    AxisMap<4> kept;
    AxisMap<2> outer;
    int64_t n;
    int leaves, groups;     // of a row
    int first_leaf, boxes;  // of this launch: the first leaf, how many have letters
    Letter* mailbox;
    Results results;
};

// Four leaves by a warp: lane l has every eighth element of leaf l % 4, from element l / 4 on.
inline constexpr int kLeavesOfWarp = 4, kLanesOfLeaf = kWarp / kLeavesOfWarp;

// Positions of a leaf that are folded together. Position p of a load stands for elements p + k * kLoad, which are added first.
template <class E>
struct LeafPositions {
    static constexpr int kLoad = kLanes * components<E>;
    static constexpr int kEach = 4;  // of a lane
    static constexpr int kChunk = kEach * kLanesOfLeaf, kChunks = kLoad / kChunk;
};

// Sum i of a lane stands at position lane / 4 + 8 i. So lanes fold first; as long as a lane has several sums it keeps half of them.
template <class Op, int N>
__device__ __forceinline__ typename Op::acc fold_positions(typename Op::acc (&sum)[N]) {
    int const lane = threadIdx.x % kWarp;
    int held = N;
#pragma unroll
    for (int step = kLeavesOfWarp; step < kWarp; step *= 2) {
        if (held > 1) {
            held /= 2;
            bool const upper = lane & step;
#pragma unroll
            for (int i = 0; i < N / 2; ++i) {
                if (i >= held) continue;
                auto const kept = choose(upper, sum[i + held], sum[i]), given = choose(upper, sum[i], sum[i + held]);
                sum[i] = Op::combine(kept, shuffle_xor(given, step));
            }
        } else {
            sum[0] = Op::combine(sum[0], shuffle_xor(sum[0], step));
        }
    }
#pragma unroll
    for (int step = kLeavesOfWarp * N / 2; step >= kLeavesOfWarp; step /= 2)
        sum[0] = Op::combine(sum[0], shuffle_xor(sum[0], step));
    return sum[0];
}

// The value of a lane's leaf, in each of its lanes. read(first, x) gets elements first, first + 8, ... behind the lane's first one.
template <class Op, class Read>
__device__ __forceinline__ typename Op::acc value_of_leaf(Read read) {
    using E = typename Op::element;
    using Of = LeafPositions<E>;
    constexpr int kLevels = ceil_log2(Of::kChunks);
    BinaryCounter<typename Op::acc, Op, kLevels> counter;
#pragma unroll 2  // not all, for the instruction cache
    for (int chunk = 0; chunk < Of::kChunks; ++chunk) {
        E x[kLoads][Of::kEach];
#pragma unroll
        for (int k = 0; k < kLoads; ++k) read(chunk * Of::kChunk + k * Of::kLoad, x[k]);
        typename Op::acc sum[Of::kEach];
#pragma unroll
        for (int j = 0; j < Of::kEach; ++j) {
            sum[j] = Op::load(x[0][j]);
#pragma unroll
            for (int k = 1; k < kLoads; ++k) sum[j] = Op::combine(sum[j], Op::load(x[k][j]));
        }
        counter.push(fold_positions<Op>(sum));
    }
    return counter.level[kLevels];
}

// A zero that adds nothing: of sums -0.0, whose load is the identity. Sums of squares, of magnitudes and of integers have no -0.0 once they
// have an element.
template <class E>
__device__ __forceinline__ E no_element() {
    if constexpr (info_of<E>.kind == Kind::integer)
        return E(0);
    else if constexpr (info_of<E>.kind == Kind::complex)
        return zero_of<E>();
    else if constexpr (sizeof(E) == 2)
        return E{0x8000};
    else
        return E(-0.0);
}

template <class E>
struct TransposedTile {
    static constexpr int kLeaf = row_leaf_elements(int(sizeof(E))), kEach = LeafPositions<E>::kEach;
    const TransposedArgs& args;
    const E* row;    // element 0 of the row
    const E* first;  // of the tile, in memory
    E* cells;        // in shared memory: `depth` rows, and a tail
    int64_t column;  // the first one, of all columns of the row
    int left, width, top;
    int there;      // rows of the tile that are in memory below each other
    int end;        // and with the first rows of the columns beside
    bool is_whole;  // in which columns are
    bool is_last;   // of its columns

    __device__ __forceinline__ TransposedTile(const TransposedArgs& a, const E* start, E* shared)
        : args(a), row(start), cells(shared) {
        int const strip = int(a.by_parts.divide(blockIdx.x)), part = int(blockIdx.x) - strip * a.parts;
        left = strip * a.width;
        column = int64_t(blockIdx.y) * a.columns + left;
        width = min(a.width, a.columns - left);
        top = part * a.starts;
        first = row + a.outer.at(blockIdx.y).in + left + top * a.pitch;
        there = min(a.depth, a.rows - top);
        is_whole = a.depth == a.rows && a.parts == 1;
        end = min(a.depth, there + kLeaf - 1);
        is_last = part == a.parts - 1;
    }
    __device__ __forceinline__ int64_t end_of_columns() const { return (column + width) * args.rows; }

    // Whether leaves that have letters in this launch may begin in its columns.
    __device__ __forceinline__ bool has_leaves_of_launch() const {
        int64_t const begin = int64_t(args.first_leaf) * kLeaf, behind = begin + int64_t(args.boxes) * kLeaf;
        return end_of_columns() > begin && column * args.rows < behind;
    }

    // Packs change places within a row, so that eight lanes down a column are in different banks.
    __device__ __forceinline__ int at(int r, int c) const {
        return r * args.width + (c ^ ((r >> args.swap_shift & args.swap_mask) * components<E>));
    }
    __device__ __forceinline__ E* tail() const { return cells + args.depth * args.width; }

    // Rows of memory from `from` on to rows [begin, end) of the tile.
    template <int Bytes>
    __device__ __forceinline__ void copy_rows(const E* from, int begin, int end) const {
        constexpr int kElements = Bytes / int(sizeof(E));
        int const across = 1 << args.across_log2, down = int(blockDim.x) >> args.across_log2;
        int const x = int(threadIdx.x) & (across - 1), y = int(threadIdx.x) >> args.across_log2;
#pragma unroll 1
        for (int c = x * kElements; c < width; c += across * kElements) {
            const E* source = from + c + y * args.pitch;
#pragma unroll 4
            for (int r = begin + y; r < end; r += down) {
                copy_cell_async<Bytes>(cells + at(r, c), source);
                source += down * args.pitch;
            }
        }
    }
    // What follows behind the columns of the tile; behind the row, nothing.
    __device__ __forceinline__ void copy_tail(int count) const {
        constexpr int kTogether = 4;
        int const threads = int(blockDim.x);
        int64_t const e = end_of_columns();
#pragma unroll 1
        for (int i = threadIdx.x; i < count; i += kTogether * threads) {
            E value[kTogether];
#pragma unroll
            for (int k = 0; k < kTogether; ++k) {
                int const behind = i + k * threads;
                value[k] = no_element<E>();
                if (behind < count && e + behind < args.n) value[k] = load_element(following(behind));
            }
#pragma unroll
            for (int k = 0; k < kTogether; ++k)
                if (i + k * threads < count) tail()[i + k * threads] = value[k];
        }
    }
    __device__ __forceinline__ const E* following(int behind) const {
        int const over = int(args.by_rows.divide(unsigned(behind))), c = left + width + over;
        int const outer = int(args.by_columns.divide(unsigned(c)));
        return row + args.outer.at(blockIdx.y + outer).in + (c - outer * args.columns) +
               (behind - over * args.rows) * args.pitch;
    }
    template <int Bytes>
    __device__ __forceinline__ void copy_cells() const {
        copy_rows<Bytes>(first, 0, there);
        if (there < end) copy_rows<Bytes>(first - top * args.pitch, there, end);
    }
    __device__ __forceinline__ void copy() const {
        constexpr int kLeast = sizeof(E) < 4 ? 4 : int(sizeof(E));
        if (args.cell_columns * int(sizeof(E)) == kVectorBytes)
            copy_cells<kVectorBytes>();
        else
            copy_cells<kLeast>();
        commit_copies();
        if (there < end) copy_tail(end - there);
        if (is_whole && end_of_columns() % kLeaf != 0) copy_tail(kLeaf);
        wait_for_copies<0>();
    }

    // The value of the lane's leaf, which begins in row r of column c, all of it in that column.
    template <class Op>
    __device__ __forceinline__ typename Op::acc value_in_column(int r, int c) const {
        int const lane = int(threadIdx.x) % kWarp / kLeavesOfWarp, pitch = args.width;
        const E* const start = cells + at(r + lane, c);  // whose other rows are a multiple of 8 away
        return widen<Op>(value_of_leaf<InLeaf<Op>>([&](int first, E(&x)[kEach]) {
#pragma unroll
            for (int j = 0; j < kEach; ++j) x[j] = start[(first + j * kLanesOfLeaf) * pitch];
        }));
    }
    // The same of one that may go on in the columns beside. Of whole columns, r is counted from the first of them, and c is 0. What a
    // lane reads at once is in two columns at most.
    template <class Op>
    __device__ __forceinline__ typename Op::acc value_across(int r, int c) const {
        int const lane = int(threadIdx.x) % kWarp / kLeavesOfWarp, step = kLanesOfLeaf * args.width;
        int const limit = is_whole ? args.rows : there, behind = is_whole ? width * limit : limit;
        return widen<Op>(value_of_leaf<InLeaf<Op>>([&](int first, E(&x)[kEach]) {
            int const e = r + lane + first, over = is_whole ? int(args.by_rows.divide(unsigned(e))) : e >= limit;
            int const own = is_whole ? e - over * limit : e, column_of = c + over;
            int const last = args.depth * args.width + (e - behind);  // in the tail
            bool const in_tail = column_of >= width, next_in_tail = column_of + 1 >= width;
            int const left_here = in_tail || (over > 0 && !is_whole) ? kLeaf : limit - own;
            const E* const here = cells + (in_tail ? last : at(own, column_of));
            const E* const beside = cells + (next_in_tail ? last : at(is_whole ? own - limit : own, column_of + 1));
            int const step_here = in_tail ? kLanesOfLeaf : step, step_beside = next_in_tail ? kLanesOfLeaf : step;
#pragma unroll
            for (int j = 0; j < kEach; ++j)
                x[j] = *(j * kLanesOfLeaf < left_here ? here + j * step_here : beside + j * step_beside);
        }));
    }

    // Calls give(leaf, value) for the leaves that begin here, in the lanes of each of them.
    template <class Op, class Give>
    __device__ __forceinline__ void for_each_leaf(Give give) const {
        int const warp = int(threadIdx.x) / kWarp, warps = int(blockDim.x) / kWarp;
        int const of_warp = threadIdx.x % kLeavesOfWarp;
        if (args.rows < kLeaf) {  // so columns are whole
            int64_t const begin = column * args.rows, leaf = (begin + kLeaf - 1) / kLeaf;
            int const count = int((end_of_columns() - 1) / kLeaf + 1 - leaf);
            int const stride = (count + kLeavesOfWarp - 1) / kLeavesOfWarp;
#pragma unroll 1
            for (int i = warp; i < stride; i += warps) {
                int const mine = min(i + of_warp * stride, count - 1);
                auto const value = value_across<Op>(int((leaf + mine) * kLeaf - begin), 0);
                if (i + of_warp * stride < count) give(leaf + mine, value);
            }
            return;
        }
        // Leaf number k of four columns side by side.
        int const starts = min(args.starts, there), quads = (width + kLeavesOfWarp - 1) / kLeavesOfWarp;
        int const items = quads * ((starts + kLeaf - 1) / kLeaf);
#pragma unroll 1
        for (int i = warp; i < items; i += warps) {
            int const k = i / quads, own = (i - k * quads) * kLeavesOfWarp + of_warp, c = min(own, width - 1);
            int64_t const begin = (column + c) * args.rows + top, leaf = (begin + kLeaf - 1) / kLeaf + k;
            int const r = int(leaf * kLeaf - begin);
            bool const is_here = own < width && r < starts;
            int const from = is_here ? r : 0;
            auto const value = __all_sync(kFullWarp, from + kLeaf <= there) ? value_in_column<Op>(from, c)
                               : is_whole                                   ? value_across<Op>(c * args.rows + from, 0)
                                                                            : value_across<Op>(from, c);
            if (is_here) give(leaf, value);
        }
    }
};

// Out of line, as in block_row.cuh.
template <class Op>
__device__ __noinline__ typename Op::acc collect_leaves(Letter* boxes, int count, typename Op::acc* scratch) {
    return fold_block<Op>(Partials<Op>{boxes, count}, count, scratch);
}

// Of the groups whose last leaf begins in elements [begin, end) of the row, collects those that this block has to, all of whose leaves
// begin in tiles before. True in the block that has the total.
template <class Op>
__device__ __forceinline__ bool collect_groups(const TransposedArgs& args, int64_t begin, int64_t end, Letter* boxes,
                                               typename Op::acc* scratch, typename Op::acc& total) {
    using A = typename Op::acc;
    constexpr int kLeaf = TransposedTile<typename Op::element>::kLeaf;
    Letter* const groups = boxes + int64_t(args.boxes) * letters<A>;
    int const first_group = max(args.first_leaf, int(begin / kLeaf)) / kTransposedGroup;
    int const end_group = min(args.groups, (args.first_leaf + args.boxes + kTransposedGroup - 1) / kTransposedGroup);
#pragma unroll 1
    for (int group = first_group; group < end_group; ++group) {
        int const first = group * kTransposedGroup, count = min(kTransposedGroup, args.leaves - first);
        int64_t const last = int64_t(first + count - 1) * kLeaf;
        if (last >= end) return false;
        if (last < begin) continue;
        __syncthreads();  // nobody reads `scratch` any more
        total = collect_leaves<Op>(boxes + int64_t(first - args.first_leaf) * letters<A>, count, scratch);
        if (args.groups == 1) return true;
        if (threadIdx.x == 0) send(groups + group * letters<A>, 1, total);
        if (group < args.groups - 1) continue;
        __syncthreads();
        total = collect_leaves<Op>(groups, args.groups, scratch);
        return true;
    }
    return false;
}

template <class Op>
__global__ void __launch_bounds__(kTransposedThreads, 2)
    transposed_row_kernel(const __grid_constant__ TransposedArgs args) {
    using E = typename Op::element;
    using A = typename Op::acc;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    __shared__ A scratch[kWarp];

    int64_t const row = args.first_row + blockIdx.z;
    Offset const place = args.kept.at(row);
    TransposedTile<E> const tile(args, static_cast<const E*>(args.in) + place.in, reinterpret_cast<E*>(shared_bytes));
    if (!tile.has_leaves_of_launch()) return;
    tile.copy();
    __syncthreads();
    Letter* const boxes = args.mailbox + int64_t(blockIdx.z) * (args.boxes + args.groups) * letters<A>;
    int const lane = threadIdx.x % kWarp;
    tile.template for_each_leaf<Op>([&](int64_t leaf, A value) {
        int const box = int(leaf - args.first_leaf);
        if (lane < kLeavesOfWarp && box >= 0 && box < args.boxes) send(boxes + box * letters<A>, 1, value);
    });
    if (!tile.is_last) return;
    A total = Op::identity();
    int64_t const begin = tile.column * args.rows;
    if (collect_groups<Op>(args, begin, tile.end_of_columns(), boxes, scratch, total) && threadIdx.x == 0)
        store_result<Op>(args.results, place.out, total);
}

template <class Ops>
cudaError_t launch_transposed_row(const Problem& p, const Plan& plan, const Buffers& b) {
    TransposedArgs args{};
    Axis const columns = p.reduced.axis[p.reduced.count - 2], rows = p.reduced.last();
    int const element_bytes = dtype_info(p.in).bytes;
    args.in = b.in;
    args.n = p.n;
    args.pitch = rows.stride;
    args.rows = int(rows.size);
    args.columns = int(columns.size);
    args.width = plan.tile_columns;
    args.starts = plan.tile_starts;
    args.depth = plan.tile_rows;
    args.cell_columns = plan.vector_columns;
    args.parts = int(ceil_div(rows.size, args.starts));
    args.across_log2 = std::min(ceil_log2(ceil_div(args.width, args.cell_columns)), ceil_log2(plan.threads));
    args.by_parts = Divisor::of(args.parts);
    args.by_rows = Divisor::of(rows.size);
    args.by_columns = Divisor::of(columns.size);
    int const packs = std::min(args.width * element_bytes / kVectorBytes, kLanesOfLeaf);
    args.swap_mask = packs - 1;
    args.swap_shift = ceil_log2(kLanesOfLeaf) - ceil_log2(packs);
    args.leaves = int(leaves_of(Family::row, element_bytes, p.n));
    args.groups = int(ceil_div(args.leaves, kTransposedGroup));
    args.boxes = int(std::min<int64_t>(args.leaves, plan.leaves_of_launch));
    args.mailbox = static_cast<Letter*>(b.mailbox);
    args.results = results_of(p, b);
    args.kept = decltype(args.kept)::of(p.kept, p.kept.count);
    args.outer = decltype(args.outer)::of(p.reduced, p.reduced.count - 2);
    bool found = false;
    cudaError_t const result = dispatch<Ops>(p, [&](auto op) {
        using Op = decltype(op);
        if constexpr (has_transposed_rows<Op>) {
            found = true;
            auto* const kernel = transposed_row_kernel<Op>;
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared_bytes);
            for (; args.first_row < p.outputs; args.first_row += plan.rows_of_launch)
                for (args.first_leaf = 0; args.first_leaf < args.leaves; args.first_leaf += args.boxes) {
                    int64_t const some = std::min(plan.rows_of_launch, p.outputs - args.first_row);
                    dim3 const grid(unsigned(plan.grid_x), unsigned(plan.grid_y), unsigned(some));
                    kernel<<<grid, plan.threads, size_t(plan.shared_bytes), b.stream>>>(args);
                }
        }
    });
    return found ? result : cudaErrorInvalidValue;
}

}  // namespace gpureduce::cuda
