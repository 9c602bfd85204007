// What a thread of column.cu does on its own: read the rows of its columns, leaf by leaf, and fold the leaves.
#pragma once

#include "mailbox.cuh"

namespace gpureduce::cuda {

// How the rows of a column lie in memory.
enum class Rows : uint8_t {
    one_axis,   // one step from each to the next
    two_axes,   // runs of rows with a gap between them; fewer than 2^31 rows
    scattered,  // through any number of axes
};

// Rows along one axis are read past the L1, but where they share a line of it, which the next ones then find there: as rows of two
// axes with no gap. H200, (4194304, 8) dim 0 36.2 us, past the L1 43.1; but (64, 1024, 1024) dim 1 62.1 and 61.3.
constexpr bool share_lines(int64_t row_step) { return row_step > -128 && row_step < 128; }

template <Rows R>
inline constexpr int column_axes = R == Rows::scattered ? kMaxDims : 4;

// In the order of their use, as RowArgs.
template <Rows R>
struct ColumnArgs {
    const void* in;
    int64_t units, n;
    int across_log2, chunk_leaves;
    int run_leaves, rounds;  // a chunk is `rounds` times run_leaves leaves of every thread down
    int64_t row_step;        // bytes
    Letter* mailbox;
    int chunks;
    Results results;
    AxisMap<column_axes<R>> places;  // of units
    int64_t column_out_stride;
    int64_t run_gap;  // bytes that the step between two runs has more than one between rows
    Divisor by_run;   // rows of a run
    AxisMap<R == Rows::scattered ? kMaxDims : 1> rows;
};

// V accumulators side by side, folded as one value.
template <class A>
inline constexpr size_t own_alignment = (sizeof(A) & (sizeof(A) - 1)) == 0 ? sizeof(A) : alignof(A);
template <class A, int V>
struct alignas(V * sizeof(A) % kVectorBytes == 0 ? kVectorBytes : own_alignment<A>) Side {
    A of[V];
};
template <class Op, int V>
using Values = Side<typename Op::acc, V>;

template <class Op, int V>
__device__ __forceinline__ Values<Op, V> no_values() {
    Values<Op, V> values;
#pragma unroll
    for (auto& value : values.of) value = Op::identity();
    return values;
}
template <class Op, int V>
__device__ __forceinline__ Values<Op, V> combine(const Values<Op, V>& a, const Values<Op, V>& b) {
    Values<Op, V> sum;
#pragma unroll
    for (int v = 0; v < V; ++v) sum.of[v] = Op::combine(a.of[v], b.of[v]);
    return sum;
}

// The rows of one unit. A thread has kLeaves leaves in flight: 8 loads of 16 bytes, or up to 32 of one element.
template <class Op, int V, Rows R>
struct ColumnReader {
    using E = typename Op::element;
    static constexpr int kLeaves =
        column_leaves_in_flight(V * int(sizeof(E)), V* int(sizeof(typename Op::acc)), is_heavy<Op>);
    static constexpr int kRows = kLeaves * kColumnLeafRows;
    // Narrow integers are added as int, which a run cannot overflow (kMaxFreeRun).
    using Cell = std::conditional_t<adds_words<Op>, int, typename Op::acc>;
    using Cells = Side<Cell, V>;
    struct Loaded {
        E value[V];
    };

    const ColumnArgs<R>& args;
    const char* start;

    __device__ __forceinline__ const char* row_at(int64_t row) const {
        if constexpr (R == Rows::scattered) return start + args.rows.locate(row).in * int64_t(sizeof(E));
        return start + row * args.row_step + gaps_before(row);
    }
    __device__ __forceinline__ int64_t gaps_before(int64_t row) const {
        return R == Rows::two_axes ? args.by_run.divide(uint32_t(row)) * args.run_gap : 0;
    }
    static __device__ __forceinline__ Loaded load(const char* address) {
        return load_words<Loaded, R == Rows::one_axis>(address);
    }
    static __device__ __forceinline__ void add_to(Cells& sum, const Loaded& row) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if constexpr (std::is_same_v<Cell, int>)
                sum.of[v] += int(Op::load(row.value[v]));
            else if constexpr (!Op::indexed && !Op::pivoted)
                sum.of[v] = Op::combine(sum.of[v], Op::load(row.value[v]));
        }
    }
    static __device__ __forceinline__ void join(Cells& sum, const Cells& more) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if constexpr (std::is_same_v<Cell, int>)
                sum.of[v] += more.of[v];
            else
                sum.of[v] = Op::combine(sum.of[v], more.of[v]);
        }
    }
    static __device__ __forceinline__ Cells none() {
        Cells cells;
#pragma unroll
        for (Cell& cell : cells.of) cell = Cell(Op::identity());
        return cells;
    }

    // Of rows in memory that follow each other, for indexed operators.
    template <int Count>
    static __device__ __forceinline__ Cells best_of(const Loaded (&rows)[Count], int64_t row) {
        Cells best;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            auto local = Op::first(rows[0].value[v], 0);
#pragma unroll
            for (int r = 1; r < Count; ++r) Op::see(local, rows[r].value[v], r);
            best.of[v] = Op::at(local, row);
        }
        return best;
    }

    // Eight rows of bytes, side by side: in 16-bit lanes, signed ones with a bias; of bool in 8-bit lanes, as ones and zeros.
    static __device__ __forceinline__ Cells sum_of_bytes(const Loaded (&rows)[kRows]) {
        static_assert(kRows == kColumnLeafRows && V == kVectorBytes, "8 * 255 fits 16 bits, 8 fits 8");
        constexpr bool kBool = std::is_same_v<E, Bool>;
        constexpr unsigned kBias = std::is_same_v<E, int8_t> ? 0x80 : 0, kEachBias = kBias * 0x01010101u;
        struct Words {
            unsigned word[V / 4];
        };
        Cells cells;
#pragma unroll
        for (int w = 0; w < V / 4; ++w) {
            unsigned even = 0, odd = 0;
#pragma unroll
            for (const Loaded& row : rows) {
                unsigned const x = bit_cast<Words>(row).word[w] ^ kEachBias;
                if constexpr (kBool) {
                    even += ((((x & 0x7f7f7f7fu) + 0x7f7f7f7fu) | x) >> 7) & 0x01010101u;
                } else {
                    even += x & 0x00ff00ffu;
                    odd += (x >> 8) & 0x00ff00ffu;
                }
            }
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                unsigned const sum = kBool ? even >> 8 * c & 0xffu : (c % 2 ? odd : even) >> 8 * (c & 2) & 0xffffu;
                cells.of[4 * w + c] = int(sum) - int(kRows * kBias);
            }
        }
        return cells;
    }

    // A leaf of `count` rows by an operator that has others for it; value(r, v) is column v of row r.
    static constexpr bool kOwnLeaf = Op::pivoted || LeafOf<Op>::own;
    template <class Value>
    static __device__ __forceinline__ Cells own_leaf(int count, Value value) {
        Cells leaf;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            auto const sum_of = [&](auto sum, auto load) {
                using Sum = decltype(sum);
                auto total = Sum::identity();
#pragma unroll
                for (int r = 0; r < kColumnLeafRows; ++r)
                    if (r < count) total = Sum::combine(total, load(value(r, v)));
                return total;
            };
            if constexpr (Op::pivoted)
                leaf.of[v] = look_twice<Op>(count, sum_of);
            else
                leaf.of[v] = widen<Op>(sum_of(InLeaf<Op>{}, OwnLoad<InLeaf<Op>>{}));
        }
        return leaf;
    }

    // The next kRows rows, which all exist, folded.
    __device__ __forceinline__ Cells whole(int64_t row) const {
        Loaded rows[kRows];
        const char* const first = start + row * args.row_step;
#pragma unroll
        for (int r = 0; r < kRows; ++r)
            rows[r] = load(R == Rows::scattered ? row_at(row + r) : first + r * args.row_step + gaps_before(row + r));
        if constexpr (Op::indexed) {
            return best_of(rows, row);
        } else if constexpr (adds_words<Op> && sizeof(E) == 1 && V > 1) {
            return sum_of_bytes(rows);
        } else {
            Cells leaf[kLeaves];
#pragma unroll
            for (int i = 0; i < kLeaves; ++i) {
                if constexpr (kOwnLeaf) {
                    leaf[i] =
                        own_leaf(kColumnLeafRows, [&](int r, int v) { return rows[i * kColumnLeafRows + r].value[v]; });
                } else {
                    leaf[i] = none();
#pragma unroll
                    for (int r = 0; r < kColumnLeafRows; ++r) add_to(leaf[i], rows[i * kColumnLeafRows + r]);
                }
            }
            return fold_leaves(leaf);
        }
    }
    // One leaf, of which rows may be missing.
    __device__ __forceinline__ Cells leaf(int64_t row) const {
        Cells sum = none();
        if (row + kColumnLeafRows <= args.n) {
            Loaded rows[kColumnLeafRows];
#pragma unroll
            for (int r = 0; r < kColumnLeafRows; ++r) rows[r] = load(row_at(row + r));
            if constexpr (Op::indexed)
                sum = best_of(rows, row);
            else if constexpr (kOwnLeaf)
                sum = own_leaf(kColumnLeafRows, [&](int r, int v) { return rows[r].value[v]; });
            else
#pragma unroll
                for (int r = 0; r < kColumnLeafRows; ++r) add_to(sum, rows[r]);
        } else if constexpr (Op::pivoted) {
            Loaded rows[kColumnLeafRows] = {};
            int const count = int(max(int64_t(0), args.n - row));
#pragma unroll
            for (int r = 0; r < kColumnLeafRows; ++r)
                if (r < count) rows[r] = load(row_at(row + r));
            sum = own_leaf(count, [&](int r, int v) { return rows[r].value[v]; });
        } else {
#pragma unroll 1
            for (; row < args.n; ++row) {
                Loaded const one[1] = {load(row_at(row))};
                if constexpr (Op::indexed)
                    sum = combine<Op, V>(sum, best_of(one, row));
                else
                    add_to(sum, one[0]);
            }
        }
        return sum;
    }
    static __device__ __forceinline__ Cells fold_leaves(Cells (&leaf)[kLeaves]) {
#pragma unroll
        for (int step = 1; step < kLeaves; step *= 2)
#pragma unroll
            for (int i = 0; i < kLeaves; i += 2 * step) join(leaf[i], leaf[i + step]);
        return leaf[0];
    }
};

// Like whole(), where rows are missing. Out of line: few threads come here.
template <class Op, int V, Rows R>
__device__ __noinline__ typename ColumnReader<Op, V, R>::Cells ragged(const ColumnArgs<R>& args, const char* start,
                                                                      int64_t row) {
    using Reader = ColumnReader<Op, V, R>;
    Reader const reader{args, start};
    typename Reader::Cells leaf[Reader::kLeaves];
#pragma unroll
    for (int i = 0; i < Reader::kLeaves; ++i) leaf[i] = reader.leaf(row + i * kColumnLeafRows);
    return Reader::fold_leaves(leaf);
}

// A binary counter over values that arrive in order, in shared memory, `pitch` values from level to level: in registers
// it would take those that the loads of the next leaf need.
template <class Op, int V>
struct SharedCounter {
    Values<Op, V>* level;
    int pitch;

    __device__ __forceinline__ void push(int index, Values<Op, V> node) const {
        Values<Op, V>* at = level;
#pragma unroll 1
        for (; index & 1; index >>= 1, at += pitch) node = combine<Op, V>(*at, node);
        *at = node;
    }
    __device__ __forceinline__ Values<Op, V> total(int count) const {
        auto sum = no_values<Op, V>();
        const Values<Op, V>* at = level;
#pragma unroll 1
        for (; count != 0; count >>= 1, at += pitch)
            if (count & 1) sum = combine<Op, V>(*at, sum);
        return sum;
    }
};

template <class Op, int V>
__device__ __forceinline__ Values<Op, V> shuffle_values(const Values<Op, V>& mine, int lane_mask) {
    Values<Op, V> values;
#pragma unroll
    for (int v = 0; v < V; ++v) values.of[v] = shuffle_xor(mine.of[v], lane_mask);
    return values;
}

// Folds N values in shared memory, `pitch` apart.
template <class Op, int V, int N>
__device__ __forceinline__ Values<Op, V> fold_parts(const Values<Op, V>* from, int pitch) {
    if constexpr (N == 1)
        return *from;
    else
        return combine<Op, V>(fold_parts<Op, V, N / 2>(from, pitch),
                              fold_parts<Op, V, N / 2>(from + N / 2 * pitch, pitch));
}

// Folds the threads of one x by y: those of a warp by shuffles, then the warps through shared memory, which groups of the first
// warp's lanes read. Valid in y = 0. `shared` holds a value a thread, and only that thread may have used it before. One barrier,
// none for a single warp.
template <class Op, int V>
__device__ __forceinline__ Values<Op, V> fold_down(Values<Op, V> mine, int across_log2, Values<Op, V>* shared) {
    static_assert(kColumnThreads / kWarp <= 8, "parts of one x");
    int const across = 1 << across_log2, wide = max(across, kWarp), parts = int(blockDim.x) / wide;
#pragma unroll 1
    for (int step = across; step < kWarp; step *= 2) mine = combine<Op, V>(mine, shuffle_values<Op, V>(mine, step));
    if (parts == 1) return mine;
    int const in_warp = int(threadIdx.x) % wide;
    if (in_warp < across) shared[threadIdx.x] = mine;
    __syncthreads();
    if (int(threadIdx.x) >= wide) return mine;
    int const groups = min(wide >> across_log2, parts), each = parts / groups;
    int const group = (in_warp >> across_log2) & (groups - 1);
    const Values<Op, V>* const from = shared + group * each * wide + (in_warp & (across - 1));
    mine = each == 1   ? fold_parts<Op, V, 1>(from, wide)
           : each == 2 ? fold_parts<Op, V, 2>(from, wide)
           : each == 4 ? fold_parts<Op, V, 4>(from, wide)
                       : fold_parts<Op, V, 8>(from, wide);
#pragma unroll 1
    for (int step = across; step < across * groups; step *= 2)
        mine = combine<Op, V>(mine, shuffle_values<Op, V>(mine, step));
    return mine;
}

}  // namespace gpureduce::cuda
