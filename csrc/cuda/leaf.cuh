// From a row's leaves to one value, by one warp. Every fold is by index, as tree.h wants it.
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
template <class Op>
__device__ __forceinline__ Spread<Op> sum_of_loads(const Packs& packs) {
    using E = typename Op::element;
    Spread<Op> sum;
#pragma unroll
    for (int c = 0; c < components<E>; ++c) {
        sum.of[c] = Op::load(as_pack<E>(packs.words[0]).value[c]);
#pragma unroll
        for (int k = 1; k < kLoads; ++k)
            sum.of[c] = Op::combine(sum.of[c], Op::load(as_pack<E>(packs.words[k]).value[c]));
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

template <class Op>
__device__ __forceinline__ typename Op::acc lane_sum(const Packs& packs) {
    if constexpr (adds_words<Op>) {
        int total = 0;
#pragma unroll
        for (int k = 0; k < kLoads; ++k) total = add_words<typename Op::element>(total, packs.words[k]);
        return total;
    } else {
        auto sum = sum_of_loads<Op>(packs);
        return fold_pairwise<Op>(sum.of);
    }
}
// The loads are added before anything moves, so that what moves is a quarter of what was read.
template <class Op>
__device__ __forceinline__ typename Op::acc lane_sum(const ShiftedPacks& packs) {
    if constexpr (Op::order_free) {
        return lane_sum<Op>(static_cast<const Packs&>(packs));
    } else {
        auto sum = sum_of_loads<Op>(packs);
        shift_down<Op>(sum, packs.by);
        return fold_pairwise<Op>(sum.of);
    }
}
template <class Op>
__device__ __forceinline__ auto lane_sum(const Elements<typename Op::element>& elements) {
    constexpr int kComponents = components<typename Op::element>;
    if constexpr (Op::order_free) {
        RowPart<Op> total = 0;
#pragma unroll
        for (auto value : elements.value) total = join<Op>(total, RowPart<Op>(Op::load(value)));
        return typename Op::acc(total);
    } else {
        Spread<Op> sum;
#pragma unroll
        for (int c = 0; c < kComponents; ++c) {
            sum.of[c] = Op::load(elements.value[c]);
#pragma unroll
            for (int k = 1; k < kLoads; ++k)
                sum.of[c] = Op::combine(sum.of[c], Op::load(elements.value[c + k * kComponents]));
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

// Packs as they are read, and elements likewise: value c of one load is element e + c * apart.
template <class E, class Reader>
__device__ __forceinline__ Pack<E> guarded_read(const Reader& row, int64_t e, int count) {
    if constexpr (Reader::loader == Loader::strided) {
        Pack<E> pack;
#pragma unroll
        for (int c = 0; c < components<E>; ++c)
            if (c * Reader::kApart < count) pack.value[c] = load_element(row.address(e + c * Reader::kApart));
        return pack;
    } else {
        auto const from = row.source(e);
        return row.inside(from) ? from.template pack<E>(from.fetch()) : row.read_elements(e);
    }
}

// What one lane contributes to any leaf, also one that is not plain: load by load, which needs few registers.
template <class Op, class Reader>
__device__ __forceinline__ auto guarded_lane_sum(const Reader& row, int64_t leaf) {
    using E = typename Op::element;
    int64_t const n = row.args.n;
    int64_t e = leaf * Reader::kLeaf + int(threadIdx.x % kWarp) * (Reader::kApart == 1 ? components<E> : 1);
    Spread<Op> sum;
    RowPart<Op> all = RowPart<Op>(Op::identity());  // of integers
#pragma unroll
    for (auto& component : sum.of) component = Op::identity();
#pragma unroll 1
    for (int k = 0; k < kLoads && e < n; ++k, e += Reader::kStep) {
        int const count = int(min(n - e, int64_t(Reader::kStep)));
        Pack<E> const pack = guarded_read<E>(row, e, count);
#pragma unroll
        for (int c = 0; c < components<E>; ++c) {
            if (c * Reader::kApart >= count) continue;
            if constexpr (Op::order_free)
                all = join<Op>(all, RowPart<Op>(Op::load(pack.value[c])));
            else
                sum.of[c] = Op::combine(sum.of[c], Op::load(pack.value[c]));
        }
    }
    if constexpr (Op::order_free)
        return typename Op::acc(all);
    else if constexpr (Reader::kApart > 1)
        return sum;
    else
        return fold_pairwise<Op>(sum.of);
}

// Of `leaves` leaves from `first` on, those that fall to `worker` of `workers` warps: calls take(i, value of leaf first + i),
// for integers take(0, what this lane has of all of them). Plain leaves come first, two in flight, in a loop with few live
// registers; who takes which leaf, and when, is free.
template <class Op, class Reader, class Take>
__device__ __forceinline__ void for_each_leaf(const Reader& row, int64_t first, int leaves, int worker, int workers,
                                              Take take) {
    using A = typename Op::acc;
    // Wide sums that are shifted take the registers of a second leaf.
    constexpr bool kWide = Reader::loader == Loader::unaligned && sizeof(Spread<Op>) > 32 && !Op::order_free;
    constexpr int kInFlight = kWide ? 1 : Reader::kInFlight;
    LeafRange const plain = row.plain_leaves();
    int const begin = int(max(int64_t(0), min(int64_t(leaves), plain.first - first)));
    int const end = int(max(int64_t(begin), min(int64_t(leaves), plain.last - first)));
    auto const tile = row.from_leaf(first);
    A all = Op::identity();
    auto const deliver = [&](int i, auto sum) {
        if constexpr (Op::order_free)
            all = Op::combine(all, sum);
        else
            take(i, fold_leaf<Op>(sum));
    };
    int i = begin + worker;
#pragma unroll 1
    for (; kInFlight == 2 && i + workers < end; i += 2 * workers) {
        auto const read = tile.read_leaf(i), next = tile.read_leaf(i + workers);
        auto const sum = lane_sum<Op>(read), other = lane_sum<Op>(next);
        deliver(i, sum);
        deliver(i + workers, other);
    }
    if constexpr (kInFlight == 2)
        if (i < end) deliver(i, lane_sum<Op>(tile.read_leaf(i)));
    if constexpr (kInFlight == 1)
#pragma unroll 1
        for (; i < end; i += workers) deliver(i, lane_sum<Op>(tile.read_leaf(i)));
    if (begin > 0 || end < leaves) {
#pragma unroll 1
        for (i = worker; i < leaves; i += workers)
            if (i < begin || i >= end) deliver(i, guarded_lane_sum<Op>(row, first + i));
    }
    if constexpr (Op::order_free) take(0, all);
}

// A row of at most kMaxGroup leaves by one warp: lane i keeps the i-th value of 32 and, when those are folded, the i-th of
// the nodes. Valid in every lane.
static_assert(kMaxGroup == kWarp * kWarp, "one value a lane, twice");
template <class Op, class Reader>
__device__ __forceinline__ typename Op::acc fold_all_leaves(const Reader& row, int leaves) {
    using A = typename Op::acc;
    int const lane = threadIdx.x % kWarp;
    A node = Op::identity(), mine = Op::identity();
    if constexpr (Op::order_free) {
        for_each_leaf<Op>(row, 0, leaves, 0, 1, [&](int, A value) { mine = value; });
    } else {
        for (int done = 0; done < leaves; done += kWarp) {
            mine = Op::identity();
            for_each_leaf<Op>(row, done, min(leaves - done, kWarp), 0, 1, [&](int i, A value) {
                if (lane == i) mine = value;
            });
            if (leaves <= kWarp) break;
            mine = fold_lanes<Op>(mine);
            if (lane == done / kWarp) node = mine;
        }
    }
    return fold_lanes<Op>(Op::order_free || leaves <= kWarp ? mine : node);
}

}  // namespace gpureduce::cuda
