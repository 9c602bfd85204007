// The norm of a list of tensors.
//
// Who owns what: a block owns a chunk of the list's leaves, whichever tensors they belong to; its warps take them in turn, two
// at a time, and leave their values in shared memory under their index. The block of the last chunk collects the others, those
// of earlier launches included. Valid: in thread 0. Moves: the tensors once, one accumulator a chunk out and in. Barriers: 3.
#include "block_row.cuh"
#include "list.cuh"

namespace gpureduce::cuda {
namespace {

template <int N>
struct NormArgs {
    ListShare<N> list;
    Letter* mailbox;
    void* norm;
    double* coefficient;  // null if it is not wanted
    double max_norm;
    DType norm_type;
};

// Of whole packs, zeros where there are none, so that two leaves' loads are in flight.
template <class E>
__device__ __forceinline__ Packs read_packs(ListLeaf<E> leaf, bool whole) {
    Packs packs;
    int const first = int(threadIdx.x) % kWarp * components<E>;
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
        int const e = first + k * kLanes * components<E>;
        packs.words[k] = load_vector_if(whole && e < leaf.count, leaf.start + e);
    }
    return packs;
}

// Any other leaf, element by element, folded. Out of line: few leaves come here.
template <class Op>
__device__ __noinline__ typename Op::acc ragged_leaf(const typename Op::element* start, int count) {
    using E = typename Op::element;
    int const lane = int(threadIdx.x) % kWarp;
    Spread<Op> sum;
#pragma unroll
    for (auto& component : sum.of) component = Op::identity();
#pragma unroll 1
    for (int first = lane; first < count; first += kLanes * components<E>) {
        E value[components<E>];
#pragma unroll
        for (int c = 0; c < components<E>; ++c)
            if (first + c * kLanes < count) value[c] = load_element(start + first + c * kLanes);
#pragma unroll
        for (int c = 0; c < components<E>; ++c)
            if (first + c * kLanes < count) sum.of[c] = Op::combine(sum.of[c], Op::load(value[c]));
    }
    return fold_leaf<Op>(sum);
}

template <class Op>
__device__ __forceinline__ typename Op::acc value_of(ListLeaf<typename Op::element> leaf, bool whole,
                                                     const Packs& packs) {
    if (!whole) return ragged_leaf<Op>(leaf.start, leaf.count);
    return fold_leaf<Op>(lane_sum<Op>(packs));
}

template <class Op, int N>
__global__ void __launch_bounds__(kMaxThreads, kBlocksPerSm)
    list_norm_kernel(const __grid_constant__ NormArgs<N> args) {
    using E = typename Op::element;
    using A = typename Op::acc;
    __shared__ A value[kRowGroups];
    __shared__ A scratch[kWarp];

    int const warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp, warps = int(blockDim.x) / kWarp;
    int const chunk = int(args.list.first_chunk + blockIdx.x);
    uint32_t const first = uint32_t(chunk) * uint32_t(args.list.chunk_leaves);
    int const leaves = int(min(uint32_t(args.list.chunk_leaves), args.list.leaves - first));
    if (warp < leaves) {
        ListWalk<E, N> walk(args.list.table, first + warp);
#pragma unroll 1
        for (int i = warp; i < leaves; i += 2 * warps) {
            int const j = i + warps;
            ListLeaf<E> const leaf = walk.at(first + i);
            ListLeaf<E> next{leaf.start, 0};
            if (j < leaves) next = walk.at(first + j);
            bool const whole = leaf.whole(), next_whole = next.whole();
            Packs const packs = read_packs(leaf, whole), next_packs = read_packs(next, next_whole);
            A const sum = value_of<Op>(leaf, whole, packs);
            if (lane == 0) value[i] = sum;
            if (j < leaves) {
                A const other = value_of<Op>(next, next_whole, next_packs);
                if (lane == 0) value[j] = other;
            }
        }
    }
    __syncthreads();
    A total = fold_block<Op>(ArrayValues<A>{value, leaves, Op::identity()}, leaves, scratch);

    if (args.list.chunks > 1) {
        if (threadIdx.x == 0) send(args.mailbox + int64_t(chunk) * letters<A>, 1, total);
        if (chunk != args.list.chunks - 1) return;
        __syncthreads();  // before value is written again
        total = collect<Op>(args.mailbox, args.list.chunks, value);
    }
    if (threadIdx.x != 0) return;
    double const norm = Op::finish(total);
    store_converted(args.norm, 0, args.norm_type, norm);
    if (args.coefficient != nullptr) *args.coefficient = clip_coefficient(norm, args.max_norm);
}

template <int N>
cudaError_t launch(const ListProblem& p, const ListPlan& plan, const ListBuffers& b) {
    cudaError_t result = cudaErrorInvalidValue;
    visit_list_operator(p, [&](auto op) {
        result = for_each_share<N>(p, plan, [&](const ListShare<N>& share, unsigned blocks) {
            NormArgs<N> const args{share,      static_cast<Letter*>(b.mailbox), b.norm, b.coefficient, b.max_norm,
                                   b.norm_type};
            list_norm_kernel<decltype(op), N><<<blocks, plan.threads, 0, b.stream>>>(args);
        });
    });
    return result;
}

}  // namespace

cudaError_t run_list_norm(const ListProblem& problem, const ListPlan& plan, const ListBuffers& buffers) {
    if (plan.chunk_leaves > kRowGroups || plan.chunks > kMaxFold) return cudaErrorInvalidConfiguration;
    return problem.count <= kFewTensors ? launch<kFewTensors>(problem, plan, buffers)
                                        : launch<kManyTensors>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
