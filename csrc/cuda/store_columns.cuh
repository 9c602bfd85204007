// How the results of a unit, which is V columns of one batch, are stored.
#pragma once

#include "column_reader.cuh"

namespace gpureduce::cuda {

// Side by side in the type that torch would give them, in 16-byte stores; else one by one.
template <class Op, int V, class Args, class Set = Assign>
__device__ __forceinline__ void store_columns(const Args& args, int64_t first, const Values<Op, V>& total,
                                              Set set = {}) {
    using Usual = typename Op::usual;
    if constexpr (V * sizeof(Usual) % kVectorBytes == 0 && !is_both<typename Op::result>) {
        auto* const out = static_cast<Usual*>(args.results.out) + first;
        if (args.results.type == info_of<Usual>.id && args.column_out_stride == 1 &&
            reinterpret_cast<uintptr_t>(out) % kVectorBytes == 0) {
            struct alignas(kVectorBytes) {
                Usual value[V];
            } results;
#pragma unroll
            for (int v = 0; v < V; ++v)
                store(results.value, v, info_of<Usual>.id, Op::finish(total.of[v], args.results.ending));
            auto const* const vectors = reinterpret_cast<const uint4*>(&results);
#pragma unroll
            for (int i = 0; i < int(V * sizeof(Usual) / kVectorBytes); ++i)
                set(reinterpret_cast<uint4*>(out) + i, vectors[i]);
            return;
        }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) store_result<Op>(args.results, first + v * args.column_out_stride, total.of[v], set);
}

}  // namespace gpureduce::cuda
