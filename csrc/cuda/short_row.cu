// Rows of at most one 16-byte load a lane.
//
// Who owns what: a group of lanes_per_row lanes owns a row; each lane one 16-byte group of it. A group takes rows_per_group
// rows, kInFlight at a time, one stride of all groups of the block apart, so neighbouring groups read neighbouring rows.
// Valid: in the first lane of a group. Moves: the input once. Barriers: none.
#include "launch.cuh"

namespace gpureduce::cuda {
namespace {

template <Loader L>
constexpr int in_flight = L == Loader::gather ? 1 : 4;

// The bytes of elements [0, count) of a pack, zeros behind them.
template <class E>
__device__ __forceinline__ uint4 first_elements(Pack<E> pack, int count) {
    uint4 words = bit_cast<uint4>(pack);
    int bytes = count * int(sizeof(E));
#pragma unroll
    for (unsigned* word : {&words.x, &words.y, &words.z, &words.w}) {
        *word = bytes >= 4 ? *word : bytes <= 0 ? 0u : *word & ((1u << (8 * bytes)) - 1u);
        bytes -= 4;
    }
    return words;
}

// What one lane contributes to a row: the first `count` elements of its pack; with Whole, all or none.
template <class Op, bool Whole>
__device__ __forceinline__ auto pack_sum(Pack<typename Op::element> pack, int count) {
    using E = typename Op::element;
    if constexpr (Op::order_free && sizeof(E) <= 2) {
        return add_words<E>(0, Whole ? bit_cast<uint4>(pack) : first_elements(pack, count));  // not wanted: zeros
    } else {
        typename Op::acc sum[components<E>];
#pragma unroll
        for (int c = 0; c < components<E>; ++c) sum[c] = Whole || c < count ? Op::load(pack.value[c]) : Op::identity();
        auto const total = fold_pairwise<Op>(sum);
        return count > 0 ? total : Op::identity();
    }
}

// One round of rows: first, first + groups, .. as far as they are below `rows`.
template <class Op, bool Whole, Loader L>
__device__ __forceinline__ void reduce_rows(const RowArgs<L>& args, int64_t first, int groups, int rows, int lane) {
    using E = typename Op::element;
    using Reader = RowReader<E, L>;
    constexpr int kInFlight = in_flight<L>;
    int const e = lane * components<E>;
    int const count = int(args.n) - e;  // elements of this lane's pack; not positive if it has none
    const E* const in = static_cast<const E*>(args.in);
    const E* row[kInFlight];
    if (args.kept.count <= 1) {
        const E* const start = in + first * args.kept.stride[0];
        int64_t const step = groups * args.kept.stride[0];
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) row[i] = start + i * step;
    } else {
#pragma unroll
        for (int i = 0; i < kInFlight; ++i) row[i] = in + args.kept.locate(i < rows ? first + i * groups : 0).in;
    }
    typename Reader::From::Raw raw[kInFlight];
    bool inside[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
        Reader const reader(args, row[i]);
        auto const from = reader.source(count > 0 ? e : 0);
        inside[i] = i < rows && count > 0 && ((Whole && L == Loader::vector) || reader.inside(from));
        raw[i] = from.fetch_if(inside[i]);
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
        Reader const reader(args, row[i]);
        Pack<E> pack = reader.source(e).template pack<E>(raw[i]);
        if (!(Whole && L == Loader::vector) && !inside[i] && i < rows && count > 0) pack = reader.read_elements(e);
        auto const total = fold_row<Op>(pack_sum<Op, Whole>(pack, count), args.lanes_per_row);
        if (lane == 0 && i < rows) store_result<Op>(args.out, first + i * groups, args.out_type, total, args.n);
    }
}

template <class Op, Loader L>
__global__ void __launch_bounds__(kMaxThreads, 2) short_row_kernel(const __grid_constant__ RowArgs<L> args) {
    using E = typename Op::element;
    int const lanes = args.lanes_per_row;
    int const groups = int(blockDim.x) / lanes;
    int const group = int(threadIdx.x) / lanes, lane = int(threadIdx.x) % lanes;
    int64_t first = int64_t(blockIdx.x) * groups * args.rows_per_group + group;
    bool const whole = args.n % components<E> == 0 && args.n > 0;
    for (int round = 0; round < args.rows_per_group; round += in_flight<L>) {
        int64_t const below = args.outputs > first ? (args.outputs - first + groups - 1) / uint32_t(groups) : 0;
        int const rows = int(min(below, int64_t(args.rows_per_group - round)));
        if (L == Loader::vector && whole)
            reduce_rows<Op, true>(args, first, groups, rows, lane);
        else
            reduce_rows<Op, false>(args, first, groups, rows, lane);
        first += int64_t(in_flight<L>) * groups;
    }
}

}  // namespace

cudaError_t run_short_row(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return dispatch(problem, plan, [&](auto op, auto tag) {
        constexpr Loader loader = decltype(tag)::loader;
        short_row_kernel<decltype(op), loader>
            <<<unsigned(plan.grid_x), plan.threads, 0, buffers.stream>>>(row_args<loader>(problem, plan, buffers));
    });
}

}  // namespace gpureduce::cuda
