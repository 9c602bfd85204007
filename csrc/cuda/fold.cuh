// From registers to one value: components, lanes, warps, blocks. Every fold is by index, as tree.h wants it.
#pragma once

#include "../core/store.h"
#include "axes.cuh"
#include "load.cuh"

namespace gpureduce::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullWarp = 0xffffffffu;

// Blocks that must fit an SM: two leave 64 registers a thread, room for two leaves. With that bound the compiler converts
// float16 before all loads are on their way, so it gets more.
template <class Op>
inline constexpr bool takes_registers =
    sizeof(typename Op::element) == 2 ? Op::pivoted || (sizeof(typename Op::acc) > 8 && !Op::indexed)
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

// Folds groups of `lanes` neighbouring lanes (a power of two); every lane of a group gets its total.
template <class Op>
__device__ __forceinline__ typename Op::acc fold_lanes(typename Op::acc value, int lanes = kWarp) {
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

// The value of `count` elements by a pivoted operator: sum_of(Sum{}, load) gives their sum as Sum, First or Terms, has it.
template <class Op, class SumOf>
__device__ __forceinline__ typename Op::acc look_twice(int count, SumOf sum_of) {
    using First = typename Op::First;
    auto const pivot = Op::pivot(sum_of(First{}, OwnLoad<First>{}), count);
    return Op::leaf(pivot, sum_of(typename Op::Terms{}, TermLoad<Op>{pivot}), count);
}

// Integers of one or two bytes add to 32 bits, a word of them at a time and in any order. A lane adds at most 256 of them
// before the sum becomes 64 bits, and a short row has at most 2,048, so it fits.
template <class Op>
inline constexpr bool adds_words = Op::additive && Op::order_free && sizeof(typename Op::element) <= 2;

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
template <class Op>
__device__ __forceinline__ void store_finished(const Results& to, int64_t i, typename Op::result result) {
    constexpr DType usual = info_of<typename Op::usual>.id;
    if (is_both<typename Op::result> && to.out == nullptr)
        ;
    else if (to.type == usual)
        store(to.out, i, usual, first_of(result));
    else
        store_converted(to.out, i, to.type, first_of(result));
    if constexpr (is_both<typename Op::result>)
        if (to.second != nullptr) store_converted(to.second, i, to.second_type, result.second);
}
template <class Op>
__device__ __forceinline__ void store_result(const Results& to, int64_t i, typename Op::acc total) {
    store_finished<Op>(to, i, Op::finish(total, to.ending));
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
