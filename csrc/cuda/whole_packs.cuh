// What one lane contributes to a leaf of whole packs, which are in registers and some of which may be missing.
#pragma once

#include "fold.cuh"

namespace gpureduce::cuda {

// Those of its packs that are `mine`, with First the first in any case; integers were read as zeros where they are not.
// The first element of the first pack is element `first` of the row.
template <class Op, bool First, int Loads, class Load>
__device__ __forceinline__ RowPart<Op> whole_sum(const uint4 (&words)[Loads], const bool (&mine)[Loads], int first,
                                                 Load load) {
    using E = typename Op::element;
    if constexpr (Op::indexed) {
        auto best = Op::first(as_pack<E>(words[0]).value[0], first);
#pragma unroll
        for (int k = 0; k < Loads; ++k)
#pragma unroll
            for (int c = 0; c < components<E>; ++c)
                if (k + c > 0 && (k == 0 || mine[k]))
                    Op::see(best, as_pack<E>(words[k]).value[c], first + k * kLanes * components<E> + c);
        return First || mine[0] ? best : Op::none();
    } else if constexpr (has_pairs<Op>) {
        PairTotal<Op> total(words[0].x);
#pragma unroll
        for (int k = 0; k < Loads; ++k)
            if (k == 0 || mine[k]) total.add(words[k]);
        return First || mine[0] ? total.total() : Op::identity();
    } else if constexpr (adds_words<Op>) {
        int total = 0;
#pragma unroll
        for (uint4 pack : words) total = add_words<E>(total, pack);
        return total;
    } else {
        typename Op::acc sum[components<E>];
#pragma unroll
        for (int c = 0; c < components<E>; ++c) sum[c] = load(as_pack<E>(words[0]).value[c]);
        if constexpr (!Op::slow_load) {
#pragma unroll
            for (int c = 0; c < components<E>; ++c)
#pragma unroll
                for (int k = 1; k < Loads; ++k)
                    if (mine[k]) sum[c] = Op::combine(sum[c], load(as_pack<E>(words[k]).value[c]));
        } else {  // one branch a pack, so that its elements are computed side by side
#pragma unroll
            for (int k = 1; k < Loads; ++k)
                if (mine[k])
#pragma unroll
                    for (int c = 0; c < components<E>; ++c)
                        sum[c] = Op::combine(sum[c], load(as_pack<E>(words[k]).value[c]));
        }
        auto const total = fold_pairwise<Op>(sum);
        return First || mine[0] ? total : Op::identity();
    }
}

}  // namespace gpureduce::cuda
