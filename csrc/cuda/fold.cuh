// From registers to one value: components, lanes, warps, blocks. Every fold is by index, as tree.h wants it.
#pragma once

#include "../core/store.h"
#include "load.cuh"

namespace gpureduce::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullWarp = 0xffffffffu;

// Blocks that must fit an SM: two leave 64 registers a thread, room for two leaves. With that bound the compiler converts
// float16 before all loads are on their way, so it gets more.
template <class Op>
inline constexpr int min_blocks = std::is_same_v<typename Op::element, Half> ? 1 : 2;

template <class A>
__device__ __forceinline__ A shuffle_xor(A value, int lane_mask) {
    static_assert(sizeof(A) % 4 == 0, "shuffles move 4-byte words");
    struct Words {
        unsigned word[sizeof(A) / 4];
    } words = bit_cast<Words>(value);
#pragma unroll
    for (unsigned& word : words.word) word = __shfl_xor_sync(kFullWarp, word, lane_mask);
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

// Integers of one or two bytes add to 32 bits, a word of them at a time and in any order. A lane adds at most 256 of them
// before the sum becomes 64 bits, and a short row has at most 512, so it fits.
template <class Op>
inline constexpr bool adds_words = Op::order_free && sizeof(typename Op::element) <= 2;

// What a lane holds of a short row.
template <class Op>
using RowPart = std::conditional_t<adds_words<Op>, int, typename Op::acc>;

// Folds N rows at once, each in a group of `lanes` neighbouring lanes, as fold_lanes does.
template <class Op, int N>
__device__ __forceinline__ void fold_rows(RowPart<Op> (&part)[N], int lanes) {
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
        if (step >= lanes) return;
#pragma unroll
        for (auto& mine : part) {
            auto const other = shuffle_xor(mine, step);
            if constexpr (adds_words<Op>)
                mine += other;
            else
                mine = Op::combine(mine, other);
        }
    }
}

// Out of line: twelve output types in every kernel that writes one value.
template <class R>
__device__ __noinline__ void store_converted(void* out, int64_t i, DType type, R result) {
    store(out, i, type, result);
}

// The type that torch gives the result when none is asked for.
template <class Op>
using usual_result =
    std::conditional_t<info_of<typename Op::element>.kind == Kind::integer, int64_t, typename Op::element>;

// The usual type is stored inline.
template <class Op>
__device__ __forceinline__ void store_result(void* out, int64_t i, DType type, typename Op::acc total, int64_t n) {
    constexpr DType usual = info_of<usual_result<Op>>.id;
    auto const result = Op::finish(total, n);
    if (type == usual)
        store(out, i, usual, result);
    else
        store_converted(out, i, type, result);
}

// ---- one lane ------------------------------------------------------------------------------------------------------

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

// What one lane contributes to a leaf, from the words of its packs.
template <class Op>
__device__ __forceinline__ typename Op::acc sum_of_packs(const uint4 (&words)[kLoads]) {
    using E = typename Op::element;
    if constexpr (Op::order_free && sizeof(E) <= 2) {
        int total = 0;
#pragma unroll
        for (int k = 0; k < kLoads; ++k) total = add_words<E>(total, words[k]);
        return total;
    } else {
        typename Op::acc sum[components<E>];
#pragma unroll
        for (int c = 0; c < components<E>; ++c) {
            sum[c] = Op::load(as_pack<E>(words[0]).value[c]);
#pragma unroll
            for (int k = 1; k < kLoads; ++k) sum[c] = Op::combine(sum[c], Op::load(as_pack<E>(words[k]).value[c]));
        }
        return fold_pairwise<Op>(sum);
    }
}

// What one lane contributes to any leaf, also one that is not plain: load by load, which needs few registers.
template <class Op, class Reader>
__device__ __forceinline__ typename Op::acc guarded_lane_sum(const Reader& row, int64_t leaf) {
    using E = typename Op::element;
    int64_t const n = row.args.n;
    int64_t e = (leaf * kLoads * kLanes + int(threadIdx.x % kWarp)) * components<E>;
    typename Op::acc sum[components<E>];
#pragma unroll
    for (auto& component : sum) component = Op::identity();
#pragma unroll 1
    for (int k = 0; k < kLoads && e < n; ++k, e += Reader::kStep) {
        auto const from = row.source(e);
        Pack<E> const pack = row.inside(from) ? from.template pack<E>(from.fetch()) : row.read_elements(e);
        int const count = int(min(n - e, int64_t(components<E>)));
#pragma unroll
        for (int c = 0; c < components<E>; ++c)
            if (c < count) sum[c] = Op::combine(sum[c], Op::load(pack.value[c]));
    }
    return fold_pairwise<Op>(sum);
}

// Of `leaves` leaves from `first` on, those that fall to `worker` of `workers` warps: calls take(i, value of leaf first + i),
// for integers take(0, what this lane has of all of them). Plain leaves come first, two in flight, in a loop with few live
// registers; who takes which leaf, and when, is free.
template <class Op, class Reader, class Take>
__device__ __forceinline__ void for_each_leaf(const Reader& row, int64_t first, int leaves, int worker, int workers,
                                              Take take) {
    using E = typename Op::element;
    using A = typename Op::acc;
    LeafRange const plain = row.plain_leaves();
    int const begin = int(max(int64_t(0), min(int64_t(leaves), plain.first - first)));
    int const end = int(max(int64_t(begin), min(int64_t(leaves), plain.last - first)));
    auto const tile = row.from_leaf(first);
    int const lane = threadIdx.x % kWarp;
    A all = Op::identity();
    auto const deliver = [&](int i, A value) {
        if constexpr (Op::order_free)
            all = Op::combine(all, value);
        else
            take(i, fold_lanes<Op>(value));
    };
    auto const position = [&](int i) { return (i * (kLoads * kLanes) + lane) * components<E>; };
    int i = begin + worker;
#pragma unroll 1
    for (; i + workers < end; i += 2 * workers) {
        uint4 words[kLoads], next[kLoads];
        tile.read_leaf(position(i), words);
        tile.read_leaf(position(i + workers), next);
        A value = sum_of_packs<Op>(words), other = sum_of_packs<Op>(next);
        deliver(i, value);
        deliver(i + workers, other);
    }
    if (i < end) {
        uint4 words[kLoads];
        tile.read_leaf(position(i), words);
        deliver(i, sum_of_packs<Op>(words));
    }
    if (begin > 0 || end < leaves) {
#pragma unroll 1
        for (i = worker; i < leaves; i += workers)
            if (i < begin || i >= end) deliver(i, guarded_lane_sum<Op>(row, first + i));
    }
    if constexpr (Op::order_free) take(0, all);
}

// The leaves [first, first + leaves), at most kMaxGroup, by one warp: lane i keeps the i-th value of 32 and, when those are
// folded, the i-th of the nodes. Valid in every lane.
static_assert(kMaxGroup == kWarp * kWarp, "one value a lane, twice");
template <class Op, class Reader>
__device__ __forceinline__ typename Op::acc fold_group(const Reader& row, int64_t first, int leaves) {
    using A = typename Op::acc;
    int const lane = threadIdx.x % kWarp;
    A node = Op::identity(), mine = Op::identity();
    for (int done = 0; done < leaves; done += kWarp) {
        mine = Op::identity();
        for_each_leaf<Op>(row, first + done, min(leaves - done, kWarp), 0, 1, [&](int i, A value) {
            if (Op::order_free || lane == i) mine = value;
        });
        if (leaves <= kWarp) break;
        mine = fold_lanes<Op>(mine);
        if (lane == done / kWarp) node = mine;
    }
    return fold_lanes<Op>(leaves <= kWarp ? mine : node);
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
