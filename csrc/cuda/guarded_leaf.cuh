// A leaf in which the row ends, or that cannot be read as others are: what one lane contributes to it.
#pragma once

#include "leaf.cuh"
#include "whole_packs.cuh"

namespace gpureduce::cuda {

// What is added to: a sum for each component, or one of integers, or the best element of an indexed operator.
template <class Op, bool Indexed = Op::indexed>
struct SumsOf {
    using type = std::conditional_t<Op::order_free, RowPart<Op>, Spread<Op>>;
};
template <class Op>
struct SumsOf<Op, true> {
    using type = typename Op::Local;
};
template <class Op>
using Sums = typename SumsOf<Op>::type;

template <class Op>
__device__ __forceinline__ Sums<Op> no_sums() {
    if constexpr (Op::indexed) {
        return Op::none();
    } else if constexpr (Op::order_free) {
        return RowPart<Op>(Op::identity());
    } else {
        Spread<Op> sum;
#pragma unroll
        for (auto& component : sum.of) component = Op::identity();
        return sum;
    }
}
// Component c, `place` elements behind this lane's first.
template <class Op, class Load>
__device__ __forceinline__ void add_component(Sums<Op>& sum, int c, int place, typename Op::element value, Load load) {
    if constexpr (Op::indexed)
        Op::see_any(sum, value, place);
    else if constexpr (Op::order_free)
        sum = join<Op>(sum, RowPart<Op>(load(value)));
    else
        sum.of[c] = Op::combine(sum.of[c], load(value));
}
// The first `count` elements of a pack, `place` elements behind this lane's first.
template <class Op, class Load>
__device__ __forceinline__ void add_pack(Sums<Op>& sum, const Pack<typename Op::element>& pack, int count, int place,
                                         Load load) {
    using E = typename Op::element;
    if constexpr (adds_words<Op>) {
        sum = add_words<E>(sum, select_bits(bytes_below(count * int(sizeof(E))), bit_cast<uint4>(pack), uint4{}));
    } else {
#pragma unroll
        for (int c = 0; c < components<E>; ++c)
            if (c < count) add_component<Op>(sum, c, place + c, pack.value[c], load);
    }
}
template <class Op>
__device__ __forceinline__ auto total_of(Sums<Op>& sum) {
    if constexpr (Op::indexed)
        return sum;
    else if constexpr (Op::order_free)
        return typename Op::acc(sum);
    else
        return fold_pairwise<Op>(sum.of);
}

// Aligned packs: the whole ones together, then the one in which the row ends.
template <class Op, class Reader, class Load>
__device__ __forceinline__ auto guarded_packs(const Reader& row, int64_t e, Load load) {
    using E = typename Op::element;
    int64_t const n = row.args.n;
    int64_t const fitting = (n - e - components<E> + Reader::kStep) / Reader::kStep;
    int const whole = int(max(int64_t(0), min(fitting, int64_t(kLoads))));
    int64_t const behind = e + whole * Reader::kStep;
    bool const ends_here = whole < kLoads && behind < n;
    Packs packs;
#pragma unroll
    for (int k = 0; k < kLoads; ++k) packs.words[k] = load_vector_if(k < whole, row.address(e + k * Reader::kStep));
    Pack<E> end{};
    if (ends_here) end = row.read_elements(behind);
    Sums<Op> sum = no_sums<Op>();
    if constexpr (adds_words<Op>)
        sum = int(lane_sum<Op>(packs));  // what was not read is zero
    else
#pragma unroll
        for (int k = 0; k < kLoads; ++k)
            add_pack<Op>(sum, as_pack<E>(packs.words[k]), k < whole ? components<E> : 0, k * Reader::kStep, load);
    if (ends_here) add_pack<Op>(sum, end, int(n - behind), whole * Reader::kStep, load);
    return total_of<Op>(sum);
}

// A leaf in which a row of whole packs ends: its loads, which are on their way when this is made, and their sum.
template <class Reader>
inline constexpr bool ends_in_packs = Reader::loader == Loader::vector || Reader::loader == Loader::nested;
template <class Reader>
__device__ __forceinline__ bool ends_whole(const Reader& row) {
    return row.args.n % (Reader::kStep / kLanes) == 0;
}
template <class Op>
struct WholePacks {
    uint4 words[kLoads];
    bool mine[kLoads];

    template <class Reader>
    __device__ __forceinline__ WholePacks(const Reader& row, int64_t leaf) {
        int64_t const e = leaf * Reader::kLeaf + threadIdx.x % kLanes * components<typename Op::element>;
#pragma unroll
        for (int k = 0; k < kLoads; ++k) {
            mine[k] = e + k * Reader::kStep < row.args.n;
            words[k] = load_vector_if(mine[k], row.address(e + k * Reader::kStep));
        }
    }
    __device__ __forceinline__ RowPart<Op> sum() const { return whole_sum<Op, false>(words, mine, 0, OwnLoad<Op>{}); }
};

// Elements side by side, those of wide types all together.
template <class Op, class Reader, class Load>
__device__ __forceinline__ auto guarded_elements(const Reader& row, int64_t e, Load load) {
    using E = typename Op::element;
    constexpr int kAtOnce = sizeof(E) >= 4 ? kLoads : 1;
    Sums<Op> sum = no_sums<Op>();
    int const count = int(max(int64_t(0), min(row.args.n - e, int64_t(Reader::kLeaf))));
#pragma unroll kAtOnce
    for (int k = 0; k < kLoads; ++k) {
        int const first = k * Reader::kStep;
        E value[components<E>];
#pragma unroll
        for (int c = 0; c < components<E>; ++c)
            if (first + c * kLanes < count) value[c] = load_element(row.address(e + first + c * kLanes));
#pragma unroll
        for (int c = 0; c < components<E>; ++c)
            if (first + c * kLanes < count) add_component<Op>(sum, c, first + c * kLanes, value[c], load);
    }
    if constexpr (Op::order_free && !Op::indexed)
        return typename Op::acc(sum);
    else
        return sum;
}

// Packs that may have to be put together element by element, one after the other.
template <class Op, class Reader, class Load>
__device__ __forceinline__ auto guarded_gather(const Reader& row, int64_t e, Load load) {
    using E = typename Op::element;
    int64_t const n = row.args.n;
    Sums<Op> sum = no_sums<Op>();
#pragma unroll 1
    for (int k = 0; k < kLoads && e < n; ++k, e += Reader::kStep) {
        auto const from = row.source(e);
        Pack<E> const pack = row.inside(from) ? from.template pack<E>(from.fetch()) : row.read_elements(e);
        add_pack<Op>(sum, pack, int(min(n - e, int64_t(components<E>))), k * Reader::kStep, load);
    }
    return total_of<Op>(sum);
}

// As lane_sum of what is read of a plain leaf.
template <class Op, class Reader, class Load = OwnLoad<Op>>
__device__ __forceinline__ auto guarded_lane_sum(const Reader& row, int64_t leaf, Load load = {}) {
    int64_t const first = leaf * Reader::kLeaf;
    int const lane = threadIdx.x % kWarp;
    if constexpr (Reader::loader == Loader::strided || Reader::loader == Loader::unaligned)
        return guarded_elements<Op>(row, first + lane, load);
    else if constexpr (Reader::loader == Loader::gather)
        return guarded_gather<Op>(row, first + lane * components<typename Op::element>, load);
    else
        return guarded_packs<Op>(row, first + lane * components<typename Op::element>, load);
}
// The same, or of a pivoted operator the value of the leaf.
template <class Op, class Reader>
__device__ __forceinline__ auto guarded_sum(const Reader& row, int64_t leaf) {
    if constexpr (Op::pivoted)
        return look_twice<Op>(int(min(row.args.n - leaf * Reader::kLeaf, int64_t(Reader::kLeaf))),
                              [&](auto sum, auto load) {
                                  using Sum = decltype(sum);
                                  return fold_leaf<Sum>(guarded_lane_sum<Sum>(row, leaf, load));
                              });
    else
        return guarded_lane_sum<InLeaf<Op>>(row, leaf);
}

}  // namespace gpureduce::cuda
