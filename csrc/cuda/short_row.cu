// Rows of at most one 16-byte load a lane.
//
// Who owns what: a group of lanes_per_row lanes owns a row; each lane one 16-byte pack of it. A block owns rows_per_group
// rows for each of its groups, reads all of them at once and is done; a group's rows are one stride of all groups apart, so
// neighbouring groups read neighbouring rows. Valid: in the first lane of a group. Moves: the input once. Barriers: none.
//
// Two kernels: `whole` for rows of whole aligned packs along one axis, which most are, and one for all others.
#include "launch.cuh"

namespace gpureduce::cuda {
namespace {

constexpr int kInFlight = kMaxRowsPerGroup;

template <Loader L>
struct ShortArgs {
    RowArgs<L> row;
    int lanes_log2;
    int block_rows;
};

template <class Op>
constexpr int short_blocks = sizeof(typename Op::acc) <= 16 ? kBlocksPerSm : 1;  // for four packs of accumulators

// Which rows a thread has a part in: first + i * step of its block, as far as they are below `rows`.
struct Share {
    int lane, first, step, rows;
    int64_t block_first;

    template <Loader L>
    __device__ __forceinline__ explicit Share(const ShortArgs<L>& args) {
        lane = int(threadIdx.x) & ((1 << args.lanes_log2) - 1);
        first = int(threadIdx.x) >> args.lanes_log2;
        step = int(blockDim.x) >> args.lanes_log2;
        block_first = int64_t(blockIdx.x) * args.block_rows;
        rows = int(min(int64_t(args.block_rows), args.row.outputs - block_first));
    }
    __device__ __forceinline__ bool has(int i) const { return first + i * step < rows; }
};

// What one lane contributes to a row: the first `count` elements of its pack; with Whole, all or none.
template <class Op, bool Whole>
__device__ __forceinline__ RowPart<Op> pack_sum(uint4 words, int count) {
    using E = typename Op::element;
    if constexpr (adds_words<Op>) {
        uint4 const zeros{0, 0, 0, 0};  // as what is not read
        return add_words<E>(0, Whole ? words : select_bits(bytes_below(count * int(sizeof(E))), words, zeros));
    } else {
        Pack<E> const pack = as_pack<E>(words);
        typename Op::acc sum[components<E>];
#pragma unroll
        for (int c = 0; c < components<E>; ++c) sum[c] = Whole || c < count ? Op::load(pack.value[c]) : Op::identity();
        auto const total = fold_pairwise<Op>(sum);
        return count > 0 ? total : Op::identity();
    }
}

template <class Op, bool Whole, Loader L>
__device__ __forceinline__ void add_and_store(const ShortArgs<L>& args, const Share& share,
                                              const uint4 (&words)[kInFlight], int count) {
    RowPart<Op> part[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) part[i] = pack_sum<Op, Whole>(words[i], count);
    fold_rows<Op>(part, 1 << args.lanes_log2);
    if (share.lane != 0) return;
    constexpr DType usual = info_of<usual_result<Op>>.id;
    bool const convert = args.row.out_type != usual;
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
        int64_t const row = share.block_first + share.first + i * share.step;
        auto const result = Op::finish(part[i], args.row.n);
        if (!share.has(i)) continue;
        if (convert)
            store_converted(args.row.out, row, args.row.out_type, result);
        else
            store(args.row.out, row, usual, result);
    }
}

template <class Op>
__global__ void __launch_bounds__(kMaxThreads, short_blocks<Op>)
    whole_row_kernel(const __grid_constant__ ShortArgs<Loader::vector> args) {
    using E = typename Op::element;
    Share const share(args);
    int const e = share.lane * components<E>;
    bool const mine = e < int(args.row.n);
    int64_t const stride = args.row.kept.stride[0];
    const E* address = static_cast<const E*>(args.row.in) + (share.block_first + share.first) * stride + e;
    uint4 words[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
        words[i] = load_vector_if(mine && share.has(i), address);
        address += share.step * stride;
    }
    add_and_store<Op, true>(args, share, words, mine ? components<E> : 0);
}

template <class Op, Loader L>
__global__ void __launch_bounds__(kMaxThreads, short_blocks<Op>)
    short_row_kernel(const __grid_constant__ ShortArgs<L> args) {
    using E = typename Op::element;
    using Reader = RowReader<E, L>;
    Share const share(args);
    int const e = share.lane * components<E>;
    int const count = int(args.row.n) - e;  // elements of this lane's pack; not positive if it has none
    const E* row[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
        int64_t const index = share.block_first + (share.has(i) ? share.first + i * share.step : 0);
        row[i] = static_cast<const E*>(args.row.in) + args.row.kept.at(index).in;
    }
    typename Reader::From::Raw raw[kInFlight];
    bool inside[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
        Reader const reader(args.row, row[i]);
        auto const from = reader.source(count > 0 ? e : 0);
        inside[i] = share.has(i) && count > 0 && reader.inside(from);
        raw[i] = from.fetch_if(inside[i]);
    }
    uint4 words[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
        Reader const reader(args.row, row[i]);
        words[i] = bit_cast<uint4>(reader.source(e).template pack<E>(raw[i]));
        if (!inside[i] && share.has(i) && count > 0) words[i] = bit_cast<uint4>(reader.read_elements(e));
    }
    add_and_store<Op, false>(args, share, words, count);
}

}  // namespace

cudaError_t run_short_row(const Problem& p, const Plan& plan, const Buffers& b) {
    bool const whole = p.kept.count <= 1 && p.n % components_of(dtype_info(p.in).bytes) == 0;
    return dispatch(p, plan, [&](auto op, auto tag) {
        using Op = decltype(op);
        constexpr Loader loader = decltype(tag)::loader;
        ShortArgs<loader> args{};
        args.row = row_args<loader>(p, plan, b);
        args.lanes_log2 = ceil_log2(plan.lanes_per_row);
        args.block_rows = plan.threads / plan.lanes_per_row * plan.rows_per_group;
        auto const launch = [&](auto kernel) { kernel<<<unsigned(plan.grid_x), plan.threads, 0, b.stream>>>(args); };
        if constexpr (loader == Loader::vector)
            if (whole) return launch(whole_row_kernel<Op>);
        launch(short_row_kernel<Op, loader>);
    });
}

}  // namespace gpureduce::cuda
