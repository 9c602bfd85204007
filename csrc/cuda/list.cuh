// Lists of tensors on the device: a launch takes their addresses and sizes as arguments, so nothing is copied to the device
// and a captured launch keeps what it needs.
#pragma once

#include <algorithm>

#include "../core/list.h"
#include "leaf.cuh"
#include "run.h"

namespace gpureduce::cuda {

// The tensors of a launch, at most N. The leaves are numbered through the whole list.
template <int N>
struct ListTable {
    const void* data[N];
    uint32_t first_leaf[N + 1];  // of each, and then the one behind the last
    uint16_t rest[N];            // elements in its last leaf
    int count;
};

template <int N>
struct ListShare {
    ListTable<N> table;
    int chunk_leaves;
    uint32_t first_chunk, leaves;  // of this launch; of the whole list
    int chunks;                    // of the whole list
};
static_assert(sizeof(ListShare<kFewTensors>) <= 4096 - 64 && sizeof(ListShare<kManyTensors>) <= 32764 - 64,
              "limits of a launch's arguments");
static_assert(row_leaf_elements(1) < 1 << 16);

// What a warp reads of a leaf: the elements that are there, side by side.
template <class E>
struct ListLeaf {
    const E* start;
    int count;

    // Whether it consists of whole aligned packs.
    __device__ __forceinline__ bool whole() const {
        return count % components<E> == 0 && reinterpret_cast<uintptr_t>(start) % kVectorBytes == 0;
    }
};

// From leaf numbers, which must rise, to leaves.
template <class E, int N>
struct ListWalk {
    static constexpr int kLeaf = row_leaf_elements(int(sizeof(E)));
    const ListTable<N>& table;
    int tensor = 0;

    __device__ __forceinline__ ListWalk(const ListTable<N>& tensors, uint32_t first) : table(tensors) {
        int end = table.count;  // the tensor of `first` is in [tensor, end)
        while (end - tensor > 1) {
            int const middle = (tensor + end) / 2;
            if (table.first_leaf[middle] <= first)
                tensor = middle;
            else
                end = middle;
        }
    }
    __device__ __forceinline__ ListLeaf<E> at(uint32_t leaf) {
        while (leaf >= table.first_leaf[tensor + 1]) ++tensor;
        bool const last = leaf + 1 == table.first_leaf[tensor + 1];
        const E* const data = static_cast<const E*>(table.data[tensor]);
        return {data + int64_t(leaf - table.first_leaf[tensor]) * kLeaf, last ? int(table.rest[tensor]) : kLeaf};
    }
};

// Calls launch(share, blocks) for consecutive shares of the list's chunks, each of as many tensors as a table holds.
template <int N, class Launch>
cudaError_t for_each_share(const ListProblem& p, const ListPlan& plan, Launch&& launch) {
    int const leaf_elements = row_leaf_elements(dtype_info(p.in).bytes);
    int64_t tensor = 0, first_leaf = 0;  // of the tensor
    for (int64_t chunk = 0; chunk < plan.chunks;) {
        ListShare<N> share;
        share.chunk_leaves = int(plan.chunk_leaves);
        share.chunks = int(plan.chunks);
        share.leaves = uint32_t(p.leaves);
        share.first_chunk = uint32_t(chunk);
        int count = 0;
        int64_t leaf = first_leaf;
        for (; count < N && tensor + count < p.count; ++count) {
            Piece const piece = p.pieces[tensor + count];
            int64_t const leaves = (piece.n + leaf_elements - 1) / leaf_elements;
            share.table.data[count] = piece.data;
            share.table.first_leaf[count] = uint32_t(leaf);
            share.table.rest[count] = uint16_t(piece.n - (leaves - 1) * leaf_elements);
            leaf += leaves;
        }
        share.table.first_leaf[count] = uint32_t(leaf);
        share.table.count = count;
        bool const all = tensor + count == p.count;
        int64_t const end = all ? plan.chunks : leaf / plan.chunk_leaves;
        if (end <= chunk) return cudaErrorInvalidConfiguration;
        launch(share, unsigned(end - chunk));
        if (cudaError_t const error = cudaGetLastError(); error != cudaSuccess) return error;
        // The next share begins with the tensor in which its first leaf is.
        chunk = end;
        int done = 0;
        while (done < count && share.table.first_leaf[done + 1] <= chunk * plan.chunk_leaves) ++done;
        tensor += done;
        first_leaf = share.table.first_leaf[done];
    }
    return cudaSuccess;
}

}  // namespace gpureduce::cuda
