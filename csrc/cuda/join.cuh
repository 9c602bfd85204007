// How the chunks of some columns join: in groups, the groups in groups, and so on, each time by the block of the last chunk.
#pragma once

#include "column_reader.cuh"

namespace gpureduce::cuda {

// Letters lie [chunk][column], level after level; `pitch` columns from chunk to chunk.
template <class Op>
struct Join {
    using A = typename Op::acc;
    static constexpr int kChunks = join_chunks(int(sizeof(A)));
    Letter* boxes;  // of the first column of this block
    int64_t pitch;
    int columns;       // of this block, no power of two
    int columns_log2;  // of the threads side by side over them

    __device__ __forceinline__ Letter* box(int chunk, int column) const {
        return boxes + (chunk * pitch + column) * letters<A>;
    }

    // The node of chunk `index` for a column of this block.
    __device__ __forceinline__ void give(int index, int column, A node) const { send(box(index, column), 1, node); }

    // To be called when the nodes of chunk `index` of `count` are given. True in the one block that then has the totals in `value`:
    // thread i those of columns i, i + blockDim.x, ... `value` has room for every column, `scratch` for one a thread.
    __device__ __forceinline__ bool run(int index, int count, A* value, Values<Op, 1>* scratch) {
        int const down = max(1, int(blockDim.x) >> columns_log2), group = kChunks * down;
        for (;;) {
            int const first = index / group * group, end = min(first + group, count);
            if (index != end - 1) return false;
            __syncthreads();  // nobody reads `scratch` any more
            for (int column = 0; column < columns; column += blockDim.x) collect(column, first, end, value, scratch);
            boxes += count * pitch * letters<A>;
            index /= group;
            count = (count + group - 1) / group;
            if (count == 1) return true;
            for (int column = threadIdx.x; column < columns; column += blockDim.x) give(index, column, value[column]);
        }
    }

    // The chunks [first, end) of as many columns as there are threads side by side: every thread takes kChunks chunks, looked
    // at together, so that a level costs one way to the L2; then the threads of a column fold.
    __device__ __forceinline__ void collect(int first_column, int first, int end, A* value,
                                            Values<Op, 1>* scratch) const {
        int const y = threadIdx.x >> columns_log2, column = first_column + (threadIdx.x & ((1 << columns_log2) - 1));
        int const own = first + y * kChunks;
        Letter* from[kChunks];
        bool exists[kChunks];
        A node[kChunks];
#pragma unroll
        for (int j = 0; j < kChunks; ++j) {
            from[j] = box(own + j, column);
            exists[j] = column < columns && own + j < end;
        }
        receive<A>(from, exists, 1, node);
#pragma unroll
        for (int j = 0; j < kChunks; ++j)
            if (!exists[j]) node[j] = Op::identity();
        A const mine = fold_down<Op, 1>({fold_pairwise<Op>(node)}, columns_log2, scratch).of[0];
        if (y == 0 && column < columns) value[column] = mine;
    }
};

}  // namespace gpureduce::cuda
