// Rows of two or three elements, without gaps between them: a thread has as many of them as are whole packs.
//
// Who owns what: a thread owns C rows of N elements, C being the elements of 16 bytes: N packs. Threads side by side own runs of
// memory side by side, so what a load of a warp skips, its next ones read, through the L1. Valid: in every thread. Needs: a first
// row at a 16-byte boundary. Moves: the input once. Barriers: none.
#include "launch.cuh"
#include "store_columns.cuh"

namespace gpureduce::cuda {
namespace {

struct ThreadRowArgs {
    const void* in;
    int64_t rows;
    Results results;
    static constexpr int64_t column_out_stride = 1;
};

// The pairwise tree over elements [0, N).
template <class Op, int N>
__device__ __forceinline__ typename Op::acc row_sum(const typename Op::element* element) {
    static_assert(N == 2 || N == 3);
    auto const pair = Op::combine(Op::load(element[0]), Op::load(element[1]));
    return N == 2 ? pair : Op::combine(pair, Op::load(element[2]));
}

template <class Op, int N>
__global__ void __launch_bounds__(kThreadRowThreads) thread_row_kernel(const __grid_constant__ ThreadRowArgs args) {
    using E = typename Op::element;
    constexpr int C = components<E>;
    int64_t const first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * C;
    const E* const row = static_cast<const E*>(args.in) + first * N;
    if (first + C <= args.rows) {
        struct alignas(kVectorBytes) {
            E element[N * C];
        } rows;
        auto* const packs = reinterpret_cast<uint4*>(&rows);
#pragma unroll
        for (int i = 0; i < N; ++i) packs[i] = load_cached_vector(row + i * C);
        Values<Op, C> total;
#pragma unroll
        for (int r = 0; r < C; ++r) total.of[r] = row_sum<Op, N>(rows.element + r * N);
        return store_columns<Op, C>(args, first, total, Stream{});
    }
#pragma unroll 1
    for (int r = 0; first + r < args.rows; ++r) {
        E element[N];
#pragma unroll
        for (int i = 0; i < N; ++i) element[i] = load_element(row + r * N + i);
        store_result<Op>(args.results, first + r, row_sum<Op, N>(element));
    }
}

}  // namespace

cudaError_t run_thread_row(const Problem& p, const Plan& plan, const Buffers& b) {
    return dispatch<CoveredSums>(p, [&](auto op) {
        using Op = decltype(op);
        ThreadRowArgs const args{b.in, p.outputs, results_of(p, b)};
        auto const launch = [&](auto kernel) { kernel<<<unsigned(plan.grid_x), plan.threads, 0, b.stream>>>(args); };
        if (p.n == 2) return launch(thread_row_kernel<Op, 2>);
        launch(thread_row_kernel<Op, 3>);
    });
}

}  // namespace gpureduce::cuda
