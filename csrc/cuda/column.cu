// Columns: a kept index moves fastest, so threads side by side own columns side by side.
//
// Who owns what: a unit is V columns of one batch (16 bytes, or one column). Block (tile, chunk) owns threads_across units
// and chunk_leaves leaves (of 8 rows) of them. Thread (x, y) owns one unit and a run of chunk_leaves / threads_down leaves,
// 8 loads in flight. Threads of one x fold through shared memory by y; the block of a tile's last chunk collects the others
// and folds them the same way. Valid: in y = 0. Moves: the input once, `chunks` accumulators a column out and in. Barriers:
// log2(threads_down) a fold, 1 to join.
#include "column.cuh"
#include "launch.cuh"

namespace gpureduce::cuda {
namespace {

template <class Op, int V>
constexpr int min_column_blocks = column_blocks_per_sm(V * int(sizeof(typename Op::acc)));

// The chunks [8 i, 8 i + 8) of one unit, as far as they are below `chunks`, waited for and folded. Letters lie unit by
// unit: [chunk][column of the unit][letter][unit].
// Out of line, so that the blocks that only send pay nothing for it.
template <class Op, int V>
__device__ __noinline__ typename Side<Op, V>::Values collect_eight(Letter* boxes, int64_t units, int64_t i,
                                                                   int64_t chunks) {
    using A = typename Op::acc;
    constexpr int kAtOnce = V < 2 ? 1 : 2;  // columns
    typename Side<Op, V>::Values total;
#pragma unroll
    for (int first = 0; first < V; first += kAtOnce) {
        Letter* box[8 * kAtOnce];
        bool exists[8 * kAtOnce];
        A value[8 * kAtOnce];
#pragma unroll
        for (int j = 0; j < 8 * kAtOnce; ++j) {
            int const c = j % 8, v = first + j / 8;
            box[j] = boxes + int64_t((i * 8 + c) * V + v) * letters<A> * units;
            exists[j] = i * 8 + c < chunks;
        }
        receive<A>(box, exists, units, value);
#pragma unroll
        for (int v = 0; v < kAtOnce; ++v) {
            A column[8];
#pragma unroll
            for (int c = 0; c < 8; ++c) column[c] = exists[v * 8 + c] ? value[v * 8 + c] : Op::identity();
            total.of[first + v] = fold_pairwise<Op>(column);
        }
    }
    return total;
}

// Which unit a thread owns, and which share of its rows.
template <int V>
struct Place {
    int y, down;
    bool exists;
    int64_t unit, batch, column;

    template <class Args>
    __device__ __forceinline__ explicit Place(const Args& args) {
        unsigned thread, block;
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
        int const across = 1 << args.across_log2;
        y = int(thread) >> args.across_log2;
        down = int(blockDim.x) >> args.across_log2;
        unit = int64_t(block) * across + (int(thread) & (across - 1));
        exists = unit < args.units;
        if (!exists) unit = 0;
        batch = args.units == args.units_per_batch ? 0
                : args.units < (int64_t(1) << 31)  ? uint32_t(unit) / uint32_t(args.units_per_batch)
                                                   : unit / args.units_per_batch;
        column = (unit - batch * args.units_per_batch) * V;
    }
    template <class Args>
    __device__ __forceinline__ int64_t in(const Args& args) const {
        return args.batch.at(batch).in + column * args.column_stride;
    }
    template <class Args>
    __device__ __forceinline__ int64_t out(const Args& args) const {
        return args.batch.at(batch).out + column * args.column_out_stride;
    }
};

// Side by side in the type that torch would give them, in 16-byte stores; else one by one.
template <class Op, int V, Loader L>
__device__ __forceinline__ void store_columns(const ColumnArgs<L>& args, int64_t first,
                                              const typename Side<Op, V>::Values& total) {
    using Usual = usual_result<Op>;
    if constexpr (V * sizeof(Usual) % kVectorBytes == 0) {
        auto* const out = static_cast<Usual*>(args.out) + first;
        if (args.out_type == info_of<Usual>.id && args.column_out_stride == 1 &&
            reinterpret_cast<uintptr_t>(out) % kVectorBytes == 0) {
            struct alignas(kVectorBytes) {
                Usual value[V];
            } results;
#pragma unroll
            for (int v = 0; v < V; ++v) store(results.value, v, info_of<Usual>.id, Op::finish(total.of[v], args.n));
            auto const* const vectors = reinterpret_cast<const uint4*>(&results);
#pragma unroll
            for (int i = 0; i < int(V * sizeof(Usual) / kVectorBytes); ++i)
                reinterpret_cast<uint4*>(out)[i] = vectors[i];
            return;
        }
    }
#pragma unroll
    for (int v = 0; v < V; ++v)
        store_result<Op>(args.out, first + v * args.column_out_stride, args.out_type, total.of[v], args.n);
}

template <class Op, int V, Loader L>
__global__ void __launch_bounds__(kColumnThreads, min_column_blocks<Op, V>)
    column_kernel(const __grid_constant__ ColumnArgs<L> args) {
    using E = typename Op::element;
    using A = typename Op::acc;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    A* const shared = reinterpret_cast<A*>(shared_bytes);
    auto* const levels = reinterpret_cast<typename Side<Op, V>::Values*>(shared_bytes);
    typename Side<Op, V>::Values mine;

    Place<V> const place(args);
    {
        const E* const start = static_cast<const E*>(args.in) + place.in(args);
        ColumnReader<Op, V, L> const reader{args, start};
        int const each = args.chunk_leaves >> (31 - __clz(place.down));
        int64_t const first = int64_t(blockIdx.y) * args.chunk_leaves + int64_t(place.y) * each;
        int const count = place.exists ? int(max(int64_t(0), min(int64_t(each), args.leaves - first))) : 0;
        auto const total = fold_run<Op, V>([&](int i) { return reader.leaf(first + i); }, count, levels);
        if (place.down > 1) __syncthreads();
        mine = fold_down<Op, V>(total, args.across_log2, shared);
    }

    // Read anew, so that nothing of the place was in registers while the leaves were read.
    Place<V> const here(args);
    if (args.chunks > 1) {
        Letter* const boxes = args.mailbox + here.unit;
        if (here.y == 0 && here.exists)
#pragma unroll
            for (int v = 0; v < V; ++v)
                send(boxes + (int64_t(blockIdx.y) * V + v) * letters<A> * args.units, args.units, mine.of[v]);
        if (blockIdx.y != args.chunks - 1) return;
        int const run = int(next_power_of_two(ceil_div(args.chunks, here.down)));
        int const begin = here.y * run;
        int const chunks = here.exists ? max(0, min(run, args.chunks - begin)) : 0;
        Letter* const own = boxes + int64_t(begin) * V * letters<A> * args.units;
        auto const eight = [&](int i) { return collect_eight<Op, V>(own, args.units, i, chunks); };
        __syncthreads();
        auto const total = fold_run<Op, V>(eight, (chunks + 7) / 8, levels);
        __syncthreads();
        mine = fold_down<Op, V>(total, args.across_log2, shared);
    }
    if (here.y == 0 && here.exists) store_columns<Op, V>(args, here.out(args), mine);
}

template <class Op, int V, Loader L>
void launch(const Problem& p, const Plan& plan, const Buffers& b) {
    ColumnArgs<L> args{};
    Axis const columns = p.kept.last();
    args.in = b.in;
    args.out = b.out;
    args.mailbox = static_cast<Letter*>(b.mailbox);
    args.n = p.n;
    args.leaves = leaves_of(Family::column, dtype_info(p.in).bytes, p.n);
    args.chunk_leaves = int(plan.chunk_leaves);
    args.chunks = int(plan.chunks);
    args.columns = columns.size;
    args.column_stride = columns.stride;
    args.column_out_stride = columns.out_stride;
    args.row_step = p.reduced.last().stride;
    args.units_per_batch = ceil_div(columns.size, V);
    args.units = args.units_per_batch * (p.outputs / columns.size);
    args.across_log2 = ceil_log2(plan.threads_across);
    args.out_type = p.out;
    args.batch = decltype(args.batch)::of(p.kept, p.kept.count - 1);
    args.rows = decltype(args.rows)::of(p.reduced, p.reduced.count);
    size_t const shared_bytes =
        size_t(plan.threads) * V * sizeof(typename Op::acc) * (Op::order_free ? 1 : kColumnLevels);
    dim3 const grid(unsigned(plan.grid_x), unsigned(plan.grid_y));
    column_kernel<Op, V, L><<<grid, plan.threads, shared_bytes, b.stream>>>(args);
}

}  // namespace

cudaError_t run_column(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return dispatch(problem, plan, [&](auto op, auto tag) {
        using Op = decltype(op);
        if constexpr (decltype(tag)::loader == Loader::vector)
            launch<Op, components<typename Op::element>, Loader::vector>(problem, plan, buffers);
        else
            launch<Op, 1, Loader::gather>(problem, plan, buffers);
    });
}

}  // namespace gpureduce::cuda
