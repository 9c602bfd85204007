// Rows of at most one leaf: one 16-byte load a lane, or, of whole aligned packs, up to four.
//
// Who owns what: a group of lanes_per_row lanes owns a row; each lane one 16-byte pack of it, or, of a row longer than one
// load of all lanes, the packs that are a load of all lanes apart. A block owns rows_per_group rows for each of its groups,
// reads all of them at once and is done; a group's rows are one stride of all groups apart, so neighbouring groups read
// neighbouring rows. Valid: in the first lane of a group. Moves: the input once. Barriers: none.
//
// Two kernels: `whole` for rows of whole aligned packs along one axis, which most are, and one for all others.
#pragma once

#include "launch.cuh"
#include "whole_packs.cuh"

namespace gpureduce::cuda {

template <Loader L>
struct ShortArgs {
    int lanes_log2;
    int block_rows;
    RowArgs<L> row;
};

template <class Op>
constexpr int short_blocks = sizeof(typename Op::acc) <= 16 ? kBlocksPerSm : 1;  // for four packs of accumulators

// Which rows a thread has a part in: first + i * step of its block, as far as they are below `rows`.
struct RowShare {
    int lane, first, step, rows;
    int64_t block_first;

    template <Loader L>
    __device__ __forceinline__ RowShare(const ShortArgs<L>& args, int lanes_log2) {
        lane = int(threadIdx.x) & ((1 << lanes_log2) - 1);
        first = int(threadIdx.x) >> lanes_log2;
        step = int(blockDim.x) >> lanes_log2;
        block_first = int64_t(blockIdx.x) * args.block_rows;
        rows = int(min(int64_t(args.block_rows), args.row.outputs - block_first));
    }
    __device__ __forceinline__ bool has(int i) const { return first + i * step < rows; }
};

// What one lane contributes to a row: the first `count` elements of its pack, whose first is element `first` of the row.
template <class Op, class Load>
__device__ __forceinline__ RowPart<Op> pack_sum(uint4 words, int count, int first, Load load) {
    using E = typename Op::element;
    if constexpr (Op::indexed) {
        Pack<E> const pack = as_pack<E>(words);
        auto best = Op::first(pack.value[0], first);
#pragma unroll
        for (int c = 1; c < components<E>; ++c)
            if (c < count) Op::see(best, pack.value[c], first + c);
        return count > 0 ? best : Op::none();
    } else if constexpr (adds_words<Op>) {
        return add_words<E>(0, select_bits(bytes_below(count * int(sizeof(E))), words, uint4{}));
    } else {
        Pack<E> const pack = as_pack<E>(words);
        typename Op::acc sum[components<E>];
#pragma unroll
        for (int c = 0; c < components<E>; ++c) sum[c] = c < count ? load(pack.value[c]) : Op::identity();
        auto const total = fold_pairwise<Op>(sum);
        return count > 0 ? total : Op::identity();
    }
}

template <class Op>
__device__ __forceinline__ typename Op::result finished(RowPart<Op> part, const Ending& ending) {
    if constexpr (Op::indexed)
        return Op::finish(Op::at(part, 0), ending);
    else
        return Op::finish(part, ending);
}

// Rows of `count` elements by a group of lanes; sum_of(Sum{}, i, load) is what this lane has of row i.
template <class Op, int Rows, class SumOf>
__device__ __forceinline__ void reduce_rows(RowPart<Op> (&part)[Rows], int lanes, int count, SumOf sum_of) {
    if constexpr (Op::pivoted) {
        using First = typename Op::First;
        using Terms = typename Op::Terms;
        typename First::acc first[Rows];
        reduce_rows<First>(first, lanes, count, sum_of);
        typename Terms::acc terms[Rows];
#pragma unroll
        for (int i = 0; i < Rows; ++i) terms[i] = sum_of(Terms{}, i, TermLoad<Op>{Op::pivot(first[i], count)});
        fold_rows<Terms>(terms, lanes);
#pragma unroll
        for (int i = 0; i < Rows; ++i) part[i] = Op::leaf(Op::pivot(first[i], count), terms[i], count);
    } else if constexpr (LeafOf<Op>::own) {
        typename InLeaf<Op>::acc inner[Rows];
        reduce_rows<InLeaf<Op>>(inner, lanes, count, sum_of);
#pragma unroll
        for (int i = 0; i < Rows; ++i) part[i] = Op::widen(inner[i]);
    } else {
#pragma unroll
        for (int i = 0; i < Rows; ++i) part[i] = sum_of(Op{}, i, OwnLoad<Op>{});
        fold_rows<Op>(part, lanes);
    }
}

// Spread: lane i does it for row i, where that is much to do.
template <class Op, bool Spread = false, Loader L, int Rows>
__device__ __forceinline__ void store_rows(const ShortArgs<L>& args, const RowShare& share,
                                           const RowPart<Op> (&part)[Rows]) {
    if constexpr (Spread) {
        auto mine = part[0];
#pragma unroll
        for (int i = 1; i < Rows; ++i) mine = choose(share.lane == i, part[i], mine);
        if (share.lane < Rows && share.has(share.lane))
            store_result<Op>(args.row.results, share.block_first + share.first + share.lane * share.step, mine);
        return;
    }
    if (share.lane != 0) return;
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
        auto const result = finished<Op>(part[i], args.row.results.ending);
        if (share.has(i))
            store_finished<Op>(args.row.results, share.block_first + share.first + i * share.step, result, Stream{});
    }
}

template <class Op, int Loads>
__global__ void __launch_bounds__(kMaxThreads, short_blocks<Op>)
    whole_row_kernel(const __grid_constant__ ShortArgs<Loader::vector> args) {
    using E = typename Op::element;
    constexpr int kRows = short_rows_at_once(Loads), kStep = kLanes * components<E>;
    int const lanes_log2 = Loads > 1 ? ceil_log2(kLanes) : args.lanes_log2;
    RowShare const share(args, lanes_log2);
    int const e = share.lane * components<E>;
    bool mine[Loads];
#pragma unroll
    for (int k = 0; k < Loads; ++k) mine[k] = e + k * kStep < int(args.row.n);
    int64_t const stride = args.row.kept.stride[0];
    const E* address = static_cast<const E*>(args.row.in) + (share.block_first + share.first) * stride + e;
    uint4 words[kRows][Loads];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int k = 0; k < Loads; ++k) words[i][k] = load_vector_if(share.has(i) && mine[k], address + k * kStep);
        address += share.step * stride;
    }
    RowPart<Op> part[kRows];
    reduce_rows<Op>(part, 1 << lanes_log2, int(args.row.n), [&](auto sum, int i, auto load) {
        return whole_sum<decltype(sum), (Loads > 1)>(words[i], mine, e, load);
    });
    store_rows<Op, Op::pivoted && (Loads > 1)>(args, share, part);
}

template <class Op, Loader L>
__global__ void __launch_bounds__(kMaxThreads, short_blocks<Op>)
    short_row_kernel(const __grid_constant__ ShortArgs<L> args) {
    using E = typename Op::element;
    using Reader = RowReader<E, L>;
    constexpr int kRows = short_rows_at_once(1);
    RowShare const share(args, args.lanes_log2);
    int const e = share.lane * components<E>;
    int const count = int(args.row.n) - e;  // elements of this lane's pack; not positive if it has none
    const E* row[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        int64_t const index = share.block_first + (share.has(i) ? share.first + i * share.step : 0);
        row[i] = static_cast<const E*>(args.row.in) + args.row.kept.at(index).in;
    }
    typename Reader::From::Raw raw[kRows];
    bool inside[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        Reader const reader(args.row, row[i]);
        auto const from = reader.source(count > 0 ? e : 0);
        inside[i] = share.has(i) && count > 0 && reader.inside(from);
        raw[i] = from.fetch_if(inside[i]);
    }
    uint4 words[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        Reader const reader(args.row, row[i]);
        words[i] = bit_cast<uint4>(reader.source(e).template pack<E>(raw[i]));
        if (!inside[i] && share.has(i) && count > 0) words[i] = bit_cast<uint4>(reader.read_elements(e));
    }
    RowPart<Op> part[kRows];
    reduce_rows<Op>(part, 1 << args.lanes_log2, int(args.row.n),
                    [&](auto sum, int i, auto load) { return pack_sum<decltype(sum)>(words[i], count, e, load); });
    store_rows<Op>(args, share, part);
}

template <class Ops>
cudaError_t launch_short_row(const Problem& p, const Plan& plan, const Buffers& b) {
    bool const whole = is_whole_row(p, plan.loader);
    if (!whole && plan.lane_loads > 1) return cudaErrorInvalidConfiguration;
    return dispatch_short<Ops>(p, plan, [&](auto op, auto tag) {
        using Op = decltype(op);
        constexpr Loader loader = decltype(tag)::loader;
        ShortArgs<loader> args{};
        args.row = row_args<loader>(p, plan, b);
        args.lanes_log2 = ceil_log2(plan.lanes_per_row);
        args.block_rows = plan.threads / plan.lanes_per_row * plan.rows_per_group;
        auto const launch = [&](auto kernel) { kernel<<<unsigned(plan.grid_x), plan.threads, 0, b.stream>>>(args); };
        constexpr bool every = Op::coverage == Coverage::every;
        if constexpr (loader == Loader::vector)
            if (whole) {
                if (plan.lane_loads == 1) return launch(whole_row_kernel<Op, 1>);
                if constexpr (every)
                    if (plan.lane_loads == 2) return launch(whole_row_kernel<Op, 2>);
                if constexpr (every || Op::key.accumulate == Accumulate::native)
                    return launch(whole_row_kernel<Op, kLoads>);
            }
        if constexpr (loader != Loader::vector || every) launch(short_row_kernel<Op, loader>);
    });
}

}  // namespace gpureduce::cuda
