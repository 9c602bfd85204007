// How the chunks of some columns join: in groups, the groups in groups, and so on, each time by the block of the last chunk.
#pragma once

#include "mailbox.cuh"

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

    __device__ __forceinline__ Letter* box(int64_t chunk, int column) const {
        return boxes + (chunk * pitch + column) * letters<A>;
    }

    // `value` has a node for every column in shared memory, all threads see them, and `scratch` has room for one a thread.
    // True in the one block that then has the totals in `value`, seen by all threads.
    __device__ __forceinline__ bool run(int64_t index, int64_t count, A* value, A* scratch) {
        int const down = max(1, int(blockDim.x) >> columns_log2), group = kChunks * down;
#pragma unroll 1
        while (count > 1) {
            for (int column = threadIdx.x; column < columns; column += blockDim.x)
                send(box(index, column), 1, value[column]);
            int64_t const first = index / group * group, end = min(first + group, count);
            if (index != end - 1) return false;
            for (int column = 0; column < columns; column += blockDim.x) collect(column, first, end, value, scratch);
            boxes += count * pitch * letters<A>;
            index /= group;
            count = (count + group - 1) / group;
        }
        return true;
    }

    // The chunks [first, end) of as many columns as there are threads side by side: every thread takes kChunks chunks, looked
    // at together, so that a level costs one way to the L2; then the threads of a column fold.
    __device__ __forceinline__ void collect(int first_column, int64_t first, int64_t end, A* value, A* scratch) const {
        int const y = threadIdx.x >> columns_log2, column = first_column + (threadIdx.x & ((1 << columns_log2) - 1));
        int64_t const own = first + y * kChunks;
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
        A mine = fold_pairwise<Op>(node);
        __syncthreads();  // the nodes sent have been read
        int const down = blockDim.x >> columns_log2;
#pragma unroll 1
        for (int step = 1; step < down; step *= 2) {
            if ((y & (2 * step - 1)) == step) scratch[threadIdx.x] = mine;
            __syncthreads();
            if ((y & (2 * step - 1)) == 0) mine = Op::combine(mine, scratch[threadIdx.x + (step << columns_log2)]);
        }
        if (y == 0 && column < columns) value[column] = mine;
        __syncthreads();
    }
};

}  // namespace gpureduce::cuda
