// From registers to one value: components, lanes, warps, blocks. Every fold is by index, as tree.h wants it.
#pragma once

#include "../core/store.h"
#include "axes.cuh"
#include "load.cuh"

namespace gpureduce::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullWarp = 0xffffffffu;

// The operator that adds the elements of a leaf, and the way from its accumulator.
template <class Op, class = void>
struct LeafOf {
    using type = Op;
    static constexpr bool own = false;
};
template <class Op>
struct LeafOf<Op, std::void_t<typename Op::Leaf>> {
    using type = typename Op::Leaf;
    static constexpr bool own = true;
};
template <class Op>
using InLeaf = typename LeafOf<Op>::type;
template <class Op, class Value>
__device__ __forceinline__ auto widen(Value value) {
    if constexpr (LeafOf<Op>::own)
        return Op::widen(value);
    else
        return value;
}

// Blocks that must fit an SM: two leave 64 registers a thread, room for two leaves. With that bound the compiler converts
// float16 before all loads are on their way, so it gets more.
template <class Op>
inline constexpr bool takes_registers =
    sizeof(typename Op::element) == 2 ? sizeof(typename InLeaf<Op>::acc) > 8 && !Op::indexed && !Op::pivoted
                                      : Op::pivoted && sizeof(typename Op::element) == 8;
template <class Op>
inline constexpr int min_blocks = std::is_same_v<typename Op::element, Half> || takes_registers<Op> ? 1 : 2;

template <class A>
struct WordsOf {
    static_assert(sizeof(A) % 4 == 0, "shuffles move 4-byte words");
    unsigned word[sizeof(A) / 4];
};

template <class A, class Shuffle>
__device__ __forceinline__ A shuffle_words(A value, Shuffle shuffle) {
    auto words = bit_cast<WordsOf<A>>(value);
#pragma unroll
    for (unsigned& word : words.word) word = shuffle(word);
    return bit_cast<A>(words);
}
template <class A>
__device__ __forceinline__ A shuffle_xor(A value, int lane_mask) {
    return shuffle_words(value, [=](unsigned word) { return __shfl_xor_sync(kFullWarp, word, lane_mask); });
}
template <class A>
__device__ __forceinline__ A shuffle_from(A value, int lane) {
    return shuffle_words(value, [=](unsigned word) { return __shfl_sync(kFullWarp, word, lane); });
}

// yes ? a : b, word by word: of structs the compiler would choose the address, and keep both in memory.
template <class A>
__device__ __forceinline__ A choose(bool yes, A a, A b) {
    auto const from = bit_cast<WordsOf<A>>(a), other = bit_cast<WordsOf<A>>(b);
    WordsOf<A> words;
#pragma unroll
    for (int w = 0; w < int(sizeof(A) / 4); ++w) words.word[w] = yes ? from.word[w] : other.word[w];
    return bit_cast<A>(words);
}

// A warp's fold by its instructions for integers, where the order is free.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
template <class Op>
inline constexpr bool folds_at_once =
    std::is_same_v<typename Op::acc, Range<int32_t>> || std::is_same_v<typename Op::acc, Ranked<int32_t>> ||
    (Op::greatest && std::is_same_v<typename Op::acc, float>);
__device__ __forceinline__ Range<int32_t> fold_at_once(Range<int32_t> mine) {
    return {__reduce_min_sync(kFullWarp, mine.least), __reduce_max_sync(kFullWarp, mine.greatest)};
}
__device__ __forceinline__ Ranked<int32_t> fold_at_once(Ranked<int32_t> mine) {
    int32_t const rank = __reduce_max_sync(kFullWarp, mine.rank);
    uint32_t const high = __reduce_min_sync(kFullWarp, mine.rank == rank ? mine.high : ~0u);
    return {rank, __reduce_min_sync(kFullWarp, mine.rank == rank && mine.high == high ? mine.low : ~0u), high};
}
template <class Op>
__device__ __forceinline__ typename Op::Local fold_places(typename Op::Local mine) {
    int32_t const own = Op::MeritOf::rank(mine.merit), rank = __reduce_max_sync(kFullWarp, own);
    return {Op::MeritOf::of_rank(rank), __reduce_min_sync(kFullWarp, own == rank ? mine.place : Op::nowhere)};
}
__device__ __forceinline__ float fold_at_once(float mine) {
    using OrderOf = Order<float>;
    return OrderOf::value(__reduce_max_sync(kFullWarp, mine != mine ? highest_rank<int32_t> : OrderOf::rank(mine)));
}
#else
template <class Op>
inline constexpr bool folds_at_once = false;
template <class A>
__device__ A fold_at_once(A mine);
template <class Op>
__device__ typename Op::Local fold_places(typename Op::Local mine);
#endif

// Folds groups of `lanes` neighbouring lanes (a power of two); every lane of a group gets its total.
template <class Op>
__device__ __forceinline__ typename Op::acc fold_lanes(typename Op::acc value, int lanes = kWarp) {
    if constexpr (folds_at_once<Op>)
        if (lanes == kWarp) return fold_at_once(value);
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2)
        if (step < lanes) value = Op::combine(value, shuffle_xor(value, step));
    return value;
}

// Element -> accumulator: an operator's own way, and that of a pivoted one whose pivot is known.
template <class Op>
struct OwnLoad {
    __device__ __forceinline__ typename Op::acc operator()(typename Op::element x) const { return Op::load(x); }
};
template <class Op>
struct TermLoad {
    decltype(Op::pivot(Op::First::identity(), 0)) pivot;
    __device__ __forceinline__ typename Op::Terms::acc operator()(typename Op::element x) const {
        return Op::term(x, pivot);
    }
};

// Two floats of 16 bits at once: the greater ones, NaN if one is.
template <class E>
__device__ __forceinline__ unsigned greater_pair(unsigned a, unsigned b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned c;
    if constexpr (std::is_same_v<E, Half>)
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
    else
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
    return c;
#else
    auto const first = [](unsigned x, unsigned y) {
        float const u = to_float(E{uint16_t(x)}), v = to_float(E{uint16_t(y)});
        return v > u || v != v ? y : x;
    };
    return first(a & 0xffff, b & 0xffff) | first(a >> 16, b >> 16) << 16;
#endif
}

// Two floats of 16 bits at once, as integers that are ordered as they, or their magnitudes, are; and the way back of one.
template <class Op>
struct PairOrder {
    static constexpr bool exists = false;
};
template <class E>
struct PairOrder<Extremes<E>> {
    static constexpr bool exists = std::is_same_v<E, Half> || std::is_same_v<E, BFloat16>;
    static __device__ __forceinline__ unsigned ranks(unsigned pair) {
        unsigned signs;  // each over its 16 bits
        asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(signs) : "r"(pair));
        return pair ^ (signs & 0x7fff7fffu);
    }
    static __device__ __forceinline__ unsigned pair(unsigned ranks_of_two) { return ranks(ranks_of_two); }
};
template <class E>
struct PairOrder<ExtremeMagnitudes<E>> {
    static constexpr bool exists = PairOrder<Extremes<E>>::exists;
    static __device__ __forceinline__ unsigned ranks(unsigned pair) { return pair & 0x7fff7fffu; }
    static __device__ __forceinline__ unsigned pair(unsigned ranks_of_two) { return ranks_of_two; }
};

template <class Op>
inline constexpr bool has_pairs = PairOrder<Op>::exists || (Op::greatest && sizeof(typename Op::element) == 2);

// The total of some pairs.
template <class Op>
struct PairTotal {
    using E = typename Op::element;
    unsigned least, greatest;

    __device__ __forceinline__ explicit PairTotal(unsigned pair) {
        if constexpr (PairOrder<Op>::exists) least = pair = PairOrder<Op>::ranks(pair);
        greatest = pair;
    }
    __device__ __forceinline__ void add(unsigned pair) {
        if constexpr (PairOrder<Op>::exists) {
            unsigned const ranks = PairOrder<Op>::ranks(pair);
            least = __vmins2(least, ranks);
            greatest = __vmaxs2(greatest, ranks);
        } else {
            greatest = greater_pair<E>(greatest, pair);
        }
    }
    __device__ __forceinline__ void add(uint4 pairs) {
        for (unsigned pair : {pairs.x, pairs.y, pairs.z, pairs.w}) add(pair);
    }
    __device__ __forceinline__ typename Op::acc total() const {
        auto const either = [](unsigned pair) {
            return Op::combine(Op::load(E{uint16_t(pair)}), Op::load(E{uint16_t(pair >> 16)}));
        };
        if constexpr (PairOrder<Op>::exists)
            return Op::combine(either(PairOrder<Op>::pair(least)), either(PairOrder<Op>::pair(greatest)));
        else
            return either(greatest);
    }
};

// The value of `count` elements by a pivoted operator: sum_of(Sum{}, load) gives their sum as Sum, First or Terms, has it.
template <class Op, class SumOf>
__device__ __forceinline__ typename Op::acc look_twice(int count, SumOf sum_of) {
    using First = typename Op::First;
    auto const pivot = Op::pivot(sum_of(First{}, OwnLoad<First>{}), count);
    return Op::leaf(pivot, sum_of(typename Op::Terms{}, TermLoad<Op>{pivot}), count);
}

// What a lane holds of a short row.
template <class Op, bool Indexed = Op::indexed>
struct RowPartOf {
    using type = std::conditional_t<adds_words<Op>, int, typename Op::acc>;
};
template <class Op>
struct RowPartOf<Op, true> {
    using type = typename Op::Local;
};
template <class Op>
using RowPart = typename RowPartOf<Op>::type;
template <class Op>
__device__ __forceinline__ RowPart<Op> join(RowPart<Op> a, RowPart<Op> b) {
    if constexpr (adds_words<Op>)
        return a + b;
    else if constexpr (Op::indexed)
        return Op::better(a, b);
    else
        return Op::combine(a, b);
}

// Folds N rows at once, each in a group of `lanes` neighbouring lanes, as fold_lanes does.
template <class Op, int N>
__device__ __forceinline__ void fold_rows(RowPart<Op> (&part)[N], int lanes) {
    if constexpr (folds_at_once<Op>)
        if (lanes == kWarp) {
#pragma unroll
            for (auto& mine : part)
                if constexpr (Op::indexed)
                    mine = fold_places<Op>(mine);
                else
                    mine = fold_at_once(mine);
            return;
        }
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
        if (step >= lanes) return;
#pragma unroll
        for (auto& mine : part) mine = join<Op>(mine, shuffle_xor(mine, step));
    }
}

// Out of line: twelve output types in every kernel that writes one value.
template <class R>
__device__ __noinline__ void store_converted(void* out, int64_t i, DType type, R result) {
    store(out, i, type, result);
}

// The usual type is stored inline.
template <class Op, class Set = Assign>
__device__ __forceinline__ void store_finished(const Results& to, int64_t i, typename Op::result result, Set set = {}) {
    constexpr DType usual = info_of<typename Op::usual>.id;
    if (is_both<typename Op::result> && to.out == nullptr)
        ;
    else if (to.type == usual)
        store(to.out, i, usual, first_of(result), set);
    else
        store_converted(to.out, i, to.type, first_of(result));
    if constexpr (is_both<typename Op::result>)
        if (to.second != nullptr) store_converted(to.second, i, to.second_type, result.second);
}
template <class Op, class Set = Assign>
__device__ __forceinline__ void store_result(const Results& to, int64_t i, typename Op::acc total, Set set = {}) {
    store_finished<Op>(to, i, Op::finish(total, to.ending), set);
}

template <class E>
__device__ __forceinline__ int add_word(int total, unsigned word) {
    if constexpr (std::is_same_v<E, int8_t>) return __dp4a(int(word), 0x01010101, total);
    if constexpr (std::is_same_v<E, uint8_t>) return int(__dp4a(word, 0x01010101u, unsigned(total)));
    if constexpr (std::is_same_v<E, Bool>)
        return total + __popc((((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u);
    if constexpr (std::is_same_v<E, int16_t>) return __dp2a_lo(int(word), 0x0101, total);
}
template <class E>
__device__ __forceinline__ int add_words(int total, uint4 words) {
    for (unsigned word : {words.x, words.y, words.z, words.w}) total = add_word<E>(total, word);
    return total;
}

// ---- one block -----------------------------------------------------------------------------------------------------

inline constexpr int kEach = 4;               // values a lane folds before the lanes fold
inline constexpr int kGroup = kEach * kWarp;  // values a warp folds at once
static_assert(kMaxFold <= kGroup * kWarp * kWarp, "two levels of warps");

// Values in memory, as fold_warp and fold_block take them.
template <class A>
struct ArrayValues {
    const A* values;
    int count;
    A identity;
    __device__ __forceinline__ void operator()(int i, A (&value)[kEach]) const {
#pragma unroll
        for (int j = 0; j < kEach; ++j) value[j] = i + j < count ? values[i + j] : identity;
    }
};

// Folds `count` values by one warp, count <= kGroup * kWarp; values(i, v) sets v[j] to value i + j, or to the identity
// beyond the end. Valid in every lane.
template <class Op, class Values>
__device__ __forceinline__ typename Op::acc fold_warp(Values values, int count) {
    using A = typename Op::acc;
    int const lane = threadIdx.x % kWarp;
    A mine = Op::identity(), node = Op::identity();
    for (int group = 0; group * kGroup < count; ++group) {
        A value[kEach];
        values(group * kGroup + lane * kEach, value);
        node = fold_lanes<Op>(fold_pairwise<Op>(value));
        if (lane == group) mine = node;
    }
    return count <= kGroup ? node : fold_lanes<Op>(mine);
}

// The same by a block, count <= kMaxFold. Valid in warp 0, in every lane. `scratch` holds ceil(count / kGroup) values and
// may not be what `values` reads. One barrier, none if count <= kGroup.
template <class Op, class Values>
__device__ __forceinline__ typename Op::acc fold_block(Values values, int count, typename Op::acc* scratch) {
    using A = typename Op::acc;
    int const warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    int const groups = (count + kGroup - 1) / kGroup;
    A total = Op::identity();
    for (int g = warp; g < groups; g += warps) {
        A value[kEach];
        values(g * kGroup + lane * kEach, value);
        total = fold_lanes<Op>(fold_pairwise<Op>(value));
        if (groups > 1 && lane == 0) scratch[g] = total;
    }
    if (groups == 1) return total;
    __syncthreads();
    if (warp != 0) return total;
    return fold_warp<Op>(ArrayValues<A>{scratch, groups, Op::identity()}, groups);
}

}  // namespace gpureduce::cuda
