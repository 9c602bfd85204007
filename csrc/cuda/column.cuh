// What a thread of column.cu does on its own: read the leaves of its columns and fold them, then fold with its neighbours.
#pragma once

#include "mailbox.cuh"

namespace gpureduce::cuda {

template <Loader L>
struct ColumnArgs {
    const void* in;
    void* out;
    Letter* mailbox;
    int64_t n, leaves;
    int chunk_leaves, chunks;
    int64_t columns, column_stride, column_out_stride, row_step;
    int64_t units_per_batch, units;
    int across_log2;  // of the threads side by side
    DType out_type;
    AxisMap<max_axes<L>> batch, rows;
};

// V accumulators side by side, folded as one value.
template <class Op, int V>
struct Side {
    using A = typename Op::acc;
    struct Values {
        A of[V];
    };
    static __device__ __forceinline__ Values identity() {
        Values values;
#pragma unroll
        for (A& value : values.of) value = Op::identity();
        return values;
    }
    static __device__ __forceinline__ Values combine(const Values& a, const Values& b) {
        Values sum;
#pragma unroll
        for (int v = 0; v < V; ++v) sum.of[v] = Op::combine(a.of[v], b.of[v]);
        return sum;
    }
};

constexpr int kRun = 1 << (kColumnLevels - 1);

// The perfect binary tree over values value_of(0), value_of(1), .. value_of(count - 1). The counter over kRun values is in
// shared memory, [level][thread], and the one over such runs, seldom touched, in local memory: in registers they would
// take those that the loads of the next leaf need.
template <class Op, int V, class ValueOf>
__device__ __forceinline__ typename Side<Op, V>::Values fold_run_in_order(ValueOf value_of, int count,
                                                                          typename Side<Op, V>::Values* shared) {
    using S = Side<Op, V>;
    using Values = typename S::Values;
    Values total = S::identity();
    int const pitch = blockDim.x;
    Values* const mine = shared + threadIdx.x;
    Values upper[28];
#pragma unroll 1
    for (int first = 0; first < count; first += kRun) {
        int const run = min(count - first, kRun);
#pragma unroll 1
        for (int i = 0; i < run; ++i) {
            Values node = value_of(first + i);
            int d = 0;
#pragma unroll 1
            for (; (i >> d) & 1; ++d) node = S::combine(mine[d * pitch], node);
            mine[d * pitch] = node;
        }
        total = S::identity();
#pragma unroll 1
        for (int d = 0; (run >> d) != 0; ++d)
            if ((run >> d) & 1) total = S::combine(mine[d * pitch], total);
        if (count <= kRun) return total;
        int d = 0;
#pragma unroll 1
        for (; (first / kRun >> d) & 1; ++d) total = S::combine(upper[d], total);
        upper[d] = total;
    }
    total = S::identity();
    int const runs = (count + kRun - 1) / kRun;
#pragma unroll 1
    for (int d = 0; (runs >> d) != 0; ++d)
        if ((runs >> d) & 1) total = S::combine(upper[d], total);
    return total;
}

template <class Op, int V, class ValueOf>
__device__ __forceinline__ typename Side<Op, V>::Values fold_run(ValueOf value_of, int count,
                                                                 typename Side<Op, V>::Values* shared) {
    if constexpr (Op::order_free) {
        auto total = Side<Op, V>::identity();
        for (int i = 0; i < count; ++i) total = Side<Op, V>::combine(total, value_of(i));
        return total;
    } else {
        return fold_run_in_order<Op, V>(value_of, count, shared);
    }
}

// Folds the threads of one x by y. Valid in y = 0. `shared` holds one Values a thread.
template <class Op, int V>
__device__ __forceinline__ typename Side<Op, V>::Values fold_down(typename Side<Op, V>::Values mine, int across_log2,
                                                                  typename Op::acc* shared) {
    using A = typename Op::acc;
    int const across = 1 << across_log2;
    int const x = threadIdx.x & (across - 1), y = threadIdx.x >> across_log2, down = blockDim.x >> across_log2;
    auto const slot = [&](int row, int v) -> A& { return shared[(row * V + v) * across + x]; };
    for (int step = 1; step < down; step *= 2) {
#pragma unroll
        for (int v = 0; v < V; ++v)
            if ((y & (2 * step - 1)) == step) slot(y, v) = mine.of[v];
        __syncthreads();
#pragma unroll
        for (int v = 0; v < V; ++v)
            if ((y & (2 * step - 1)) == 0) mine.of[v] = Op::combine(mine.of[v], slot(y + step, v));
    }
    return mine;
}

// The rows of one unit.
template <class Op, int V, Loader L>
struct ColumnReader {
    using E = typename Op::element;
    using S = Side<Op, V>;
    using Values = typename S::Values;
    struct Cells {
        E value[V];
    };
    // The narrow integers of a leaf are added as int, which they cannot overflow.
    static constexpr bool narrow = Op::order_free && sizeof(E) <= 2;
    using Cell = std::conditional_t<narrow, int, typename Op::acc>;

    const ColumnArgs<L>& args;
    const E* start;

    static __device__ __forceinline__ Cells read(const E* address) {
        if constexpr (V == 1)
            return {{load_element(address)}};
        else
            return bit_cast<Cells>(load_vector(address));
    }
    static __device__ __forceinline__ void add_to(Cell (&sum)[V], const Cells& cells) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if constexpr (narrow)
                sum[v] += int(Op::load(cells.value[v]));
            else
                sum[v] = Op::combine(sum[v], Op::load(cells.value[v]));
        }
    }

    __device__ __forceinline__ Values leaf(int64_t index) const {
        int64_t const first = index * kColumnLeafRows;
        Offset const top = args.rows.at(first);
        Cell sum[V];
#pragma unroll
        for (int v = 0; v < V; ++v) sum[v] = Cell(Op::identity());
        if (top.run >= kColumnLeafRows) {
            const E* const address = start + top.in;
            int64_t const step = args.row_step;
            Cells cells[kColumnLeafRows];
#pragma unroll
            for (int r = 0; r < kColumnLeafRows; ++r) cells[r] = read(address + r * step);
#pragma unroll
            for (int r = 0; r < kColumnLeafRows; ++r) add_to(sum, cells[r]);
        } else {  // rows that do not exist, or do not follow each other
#pragma unroll 1
            for (int64_t r = first; r < first + kColumnLeafRows && r < args.n; ++r)
                add_to(sum, read(start + args.rows.locate(r).in));
        }
        Values values;
#pragma unroll
        for (int v = 0; v < V; ++v) values.of[v] = sum[v];
        return values;
    }
};

}  // namespace gpureduce::cuda
