// The leaves of a row, by one warp or by those of a block.
#pragma once

#include "guarded_leaf.cuh"

namespace gpureduce::cuda {

// Makes the first use of a leaf wait until the loads of the next one are on their way: else, of 16-bit elements, the compiler puts
// the last of them behind that use, and a warp waits twice. A branch that is never taken does it, since blocks have one row of
// threads, which the compiler cannot know. H200, 16,777,216 bf16: 11.4 -> 11.0 us.
template <class E, class Read>
__device__ __forceinline__ void keep_together(const Read& last) {
    if constexpr (sizeof(E) == 2 && std::is_same_v<Read, Packs>)
        if (threadIdx.y != 0) asm volatile("prefetch.global.L2 [%0];" ::"l"(uint64_t(last.words[kLoads - 1].w)));
}

// Of `leaves` leaves from `first` on, those that fall to `worker` of `workers` warps: calls take(i, value of leaf first + i),
// for integers take(0, what this lane has of all of them). Plain leaves come first, two in flight, in a loop with few live
// registers; who takes which leaf, and when, is free. WithLast: a single plain leaf and one in which the row ends go
// together. It pays in warps that have one row each; the registers and instructions for it made those of block_row.cu slower.
template <class Op, bool WithLast, class Reader, class Take>
__device__ __forceinline__ void for_each_leaf(const Reader& row, typename Reader::Leaves first, int leaves, int worker,
                                              int workers, Take take) {
    using A = typename Op::acc;
    // Wide sums that are shifted take the registers of a second leaf.
    constexpr bool kWide = Reader::loader == Loader::unaligned && sizeof(Spread<InLeaf<Op>>) > 32 && !Op::order_free;
    constexpr int kInFlight = kWide || (Op::pivoted && sizeof(typename Op::element) == 2) ? 1 : Reader::kInFlight;
    using Leaves = typename Reader::Leaves;
    auto const plain = row.plain_leaves();
    constexpr bool kPlainFromStart = Reader::loader != Loader::unaligned;
    int const begin = kPlainFromStart ? 0 : int(max(Leaves(0), min(Leaves(leaves), plain.first - first)));
    int const end = max(begin, int(min(Leaves(leaves), plain.last - first)));
    auto const tile = row.from_leaf(first);
    A all = Op::identity();
    auto const reduced = [](const auto& read) {
        if constexpr (Op::pivoted)
            return look_twice<Op>(Reader::kLeaf, [&](auto sum, auto load) {
                using Sum = decltype(sum);
                return fold_leaf<Sum>(lane_sum<Sum>(read, load));
            });
        else
            return lane_sum<InLeaf<Op>>(read);
    };
    auto const deliver = [&](int i, auto sum) {
        if constexpr (Op::pivoted)
            take(i, sum);
        else if constexpr (Op::indexed)
            all = Op::combine(all, Op::at(sum, int64_t(first + i) * Reader::kLeaf + Reader::lane_first()));
        else if constexpr (Op::order_free)
            all = Op::combine(all, widen<Op>(sum));
        else
            take(i, widen<Op>(fold_leaf<InLeaf<Op>>(sum)));
    };
    int i = begin + worker;
#pragma unroll 1
    for (; kInFlight == 2 && i + workers < end; i += 2 * workers) {
        auto const read = tile.read_leaf(i), next = tile.read_leaf(i + workers);
        keep_together<typename Op::element>(next);
        auto const sum = reduced(read);
        auto const other = reduced(next);
        deliver(i, sum);
        deliver(i + workers, other);
    }
    int rest = end;  // first of the leaves that are not done yet
    constexpr bool kNarrow =
        sizeof(A) <= 8 && !Op::indexed && !Op::pivoted && (Op::order_free || sizeof(Spread<Op>) <= 32);  // others spill
    if constexpr (WithLast && kInFlight == 2 && kNarrow && ends_in_packs<Reader>) {
        // If the row ends in a whole pack.
        if (i < end && i + workers == end && end < leaves && ends_whole(row)) {
            auto const read = tile.read_leaf(i);
            WholePacks<InLeaf<Op>> const last(row, first + end);
            typename InLeaf<Op>::acc const sum = lane_sum<InLeaf<Op>>(read), other = last.sum();
            deliver(i, sum);
            deliver(end, other);
            rest = end + 1;
            i = end;
        }
    }
    if constexpr (kInFlight == 2)
        if (i < end) deliver(i, reduced(tile.read_leaf(i)));
    if constexpr (kInFlight == 1)
#pragma unroll 1
        for (; i < end; i += workers) deliver(i, reduced(tile.read_leaf(i)));
    if (begin > 0 || rest < leaves) {
#pragma unroll 1
        for (i = worker; i < leaves; i += workers)
            if (i < begin || i >= rest) deliver(i, guarded_sum<Op>(row, first + i));
    }
    if constexpr (Op::order_free) take(0, all);
}

// A row of at most kMaxGroup leaves by one warp: lane i keeps the i-th value of 32 and, when those are folded, the i-th of
// the nodes. Valid in lane 0.
static_assert(kMaxGroup == kWarp * kWarp, "one value a lane, twice");
template <class Op, class Reader>
__device__ __forceinline__ typename Op::acc fold_all_leaves(const Reader& row) {
    using A = typename Op::acc;
    int const leaves = int(row.leaves());
    int const lane = threadIdx.x % kWarp;
    A node = Op::identity(), mine = Op::identity();
    if constexpr (Op::order_free) {
        for_each_leaf<Op, true>(row, 0, leaves, 0, 1, [&](int, A value) { mine = value; });
    } else {
        for (int done = 0; done < leaves; done += kWarp) {
            mine = Op::identity();
            for_each_leaf<Op, true>(row, done, min(leaves - done, kWarp), 0, 1, [&](int i, A value) {
                if (lane == i) mine = value;
            });
            if (leaves <= kWarp) break;
            mine = fold_lanes<Op>(mine);
            if (lane == done / kWarp) node = mine;
        }
    }
    if (Op::order_free) return fold_lanes<Op>(mine);
    if (leaves > kWarp) return fold_lanes<Op>(node);
    return fold_lanes<Op>(mine, 1 << (kWarp - __clz(leaves - 1)));  // as many as have a value
}

}  // namespace gpureduce::cuda
