// One leaf: from what the lanes of a warp read to its value. Every fold is by index, as tree.h wants it.
#pragma once

#include "fold.cuh"
#include "row.cuh"

namespace gpureduce::cuda {

// What one lane contributes to a leaf: its components folded, or, of elements read side by side, one sum for each c.
template <class Op>
struct Spread {
    typename Op::acc of[components<typename Op::element>];
};

// Component by component, over the loads.
template <class Op, class Load>
__device__ __forceinline__ Spread<Op> sum_of_loads(const Packs& packs, Load load) {
    using E = typename Op::element;
    Spread<Op> sum;
#pragma unroll
    for (int c = 0; c < components<E>; ++c) {
        sum.of[c] = load(as_pack<E>(packs.words[0]).value[c]);
#pragma unroll
        for (int k = 1; k < kLoads; ++k) sum.of[c] = Op::combine(sum.of[c], load(as_pack<E>(packs.words[k]).value[c]));
    }
    return sum;
}

// From where the elements are in aligned packs to where they are in the leaf: `by` components down, across the lanes.
template <class Op>
__device__ __forceinline__ void shift_down(Spread<Op>& sum, int by) {
    constexpr int kComponents = components<typename Op::element>;
    int const next_lane = (threadIdx.x + 1) % kWarp;
#pragma unroll
    for (int c = 0; c + 1 < kComponents; ++c) {
        auto const next = shuffle_from(sum.of[c], next_lane);
        sum.of[c] = choose(c < by, next, sum.of[c]);
    }
#pragma unroll
    for (int step = 1; step < kComponents; step *= 2) {
        Spread<Op> moved;
#pragma unroll
        for (int c = 0; c < kComponents; ++c)
            moved.of[c] = choose(by & step, sum.of[(c + step) % kComponents], sum.of[c]);
#pragma unroll
        for (int c = 0; c < kComponents; ++c) sum.of[c] = moved.of[c];
    }
}

// For indexed operators, the best element and its offset from the lane's first.
template <class Op, class Load = OwnLoad<Op>>
__device__ __forceinline__ auto lane_sum(const Packs& packs, Load load = {}) {
    using E = typename Op::element;
    if constexpr (Op::indexed) {
        auto best = Op::first(as_pack<E>(packs.words[0]).value[0], 0);
#pragma unroll
        for (int k = 0; k < kLoads; ++k)
#pragma unroll
            for (int c = 0; c < components<E>; ++c)
                if (k + c > 0) Op::see(best, as_pack<E>(packs.words[k]).value[c], k * kLanes * components<E> + c);
        return best;
    } else if constexpr (has_pairs<Op>) {
        PairTotal<Op> total(packs.words[0].x);
#pragma unroll
        for (uint4 words : packs.words) total.add(words);
        return total.total();
    } else if constexpr (adds_words<Op>) {
        int total = 0;
#pragma unroll
        for (int k = 0; k < kLoads; ++k) total = add_words<typename Op::element>(total, packs.words[k]);
        return typename Op::acc(total);
    } else {
        auto sum = sum_of_loads<Op>(packs, load);
        return fold_pairwise<Op>(sum.of);
    }
}
// The loads are added before anything moves, so that what moves is a quarter of what was read.
template <class Op, class Load = OwnLoad<Op>>
__device__ __forceinline__ typename Op::acc lane_sum(const ShiftedPacks& packs, Load load = {}) {
    if constexpr (Op::order_free) {
        return lane_sum<Op>(static_cast<const Packs&>(packs));
    } else {
        auto sum = sum_of_loads<Op>(packs, load);
        shift_down<Op>(sum, packs.by);
        return fold_pairwise<Op>(sum.of);
    }
}
template <class Op, class Load = OwnLoad<Op>>
__device__ __forceinline__ auto lane_sum(const Elements<typename Op::element>& elements, Load load = {}) {
    constexpr int kComponents = components<typename Op::element>;
    if constexpr (Op::indexed) {
        auto best = Op::first(elements.value[0], 0);
#pragma unroll
        for (int j = 1; j < kLoads * kComponents; ++j) Op::see(best, elements.value[j], j * kLanes);
        return best;
    } else if constexpr (Op::order_free) {
        RowPart<Op> total(Op::identity());
#pragma unroll
        for (auto value : elements.value) total = join<Op>(total, RowPart<Op>(Op::load(value)));
        return typename Op::acc(total);
    } else {
        Spread<Op> sum;
#pragma unroll
        for (int c = 0; c < kComponents; ++c) {
            sum.of[c] = load(elements.value[c]);
#pragma unroll
            for (int k = 1; k < kLoads; ++k)
                sum.of[c] = Op::combine(sum.of[c], load(elements.value[c + k * kComponents]));
        }
        return sum;
    }
}

// The value of a leaf from the contributions of all lanes, in every lane.
template <class Op>
__device__ __forceinline__ typename Op::acc fold_leaf(typename Op::acc value) {
    return fold_lanes<Op>(value);
}
// Sum c of lane l stands at position l + 32 c of the pairwise tree. So the lanes fold first; as long as a lane has several
// sums it keeps half of them and gives the others to its partner. Bit 0 of a lane ends up with the highest bit of c.
template <class Op>
__device__ __forceinline__ typename Op::acc fold_leaf(Spread<Op> sum) {
    constexpr int kComponents = components<typename Op::element>;
    int const lane = threadIdx.x % kWarp;
#pragma unroll
    for (int step = 1; step < kComponents; step *= 2) {
        bool const upper = lane & step;
        int const half = kComponents / 2 / step;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            auto const kept = choose(upper, sum.of[i + half], sum.of[i]);
            auto const given = choose(upper, sum.of[i], sum.of[i + half]);
            sum.of[i] = Op::combine(kept, shuffle_xor(given, step));
        }
    }
#pragma unroll
    for (int step = kComponents; step < kWarp; step *= 2)
        sum.of[0] = Op::combine(sum.of[0], shuffle_xor(sum.of[0], step));
#pragma unroll
    for (int step = kComponents / 2; step > 0; step /= 2)
        sum.of[0] = Op::combine(sum.of[0], shuffle_xor(sum.of[0], step));
    return sum.of[0];
}

}  // namespace gpureduce::cuda
