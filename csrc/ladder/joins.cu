// two_pass, slots, atomic_per_block, atomic_per_element, kahan, double: how blocks join, and in what they add.
//
// Who owns what: see walk.cuh; in atomic_per_element a thread owns an element. Valid: in thread 0. Moves: 4 bytes an element in,
// one accumulator a block out and in. Barriers: 1 a block, 3 where it may be the last one. Alignment: any.
#include "walk.cuh"

namespace gpureduce::ladder {
namespace {

// The sum of what this thread owns of the slots: every 256th, 8 loads in flight. Order and owner depend on the index alone.
template <class A>
__device__ __forceinline__ A sum_slots(const A* slots, int count) {
    A sum = zero_of<A>();
#pragma unroll 8
    for (int i = int(threadIdx.x); i < count; i += kBlock) sum = add(sum, slots[i]);
    return sum;
}

template <class A>
__global__ void __launch_bounds__(kBlock)
    slots_kernel(const float* __restrict__ in, int64_t n, A* slots, unsigned* finished, float* __restrict__ out) {
    __shared__ bool last;
    A const sum = shuffle_sum(walk<A>(in, n));
    if (threadIdx.x == 0) {
        slots[blockIdx.x] = sum;
        __threadfence();  // whoever sees the ticket drawn sees the slot
        last = atomicAdd(finished, 1u) == gridDim.x - 1;
        __threadfence();  // and whoever drew the last one sees all of them
    }
    __syncthreads();
    if (!last) return;
    A const total = shuffle_sum(sum_slots(slots, int(gridDim.x)));
    if (threadIdx.x != 0) return;
    *out = float(result_of(total));
    *finished = 0;  // for the next launch
}

__global__ void __launch_bounds__(kBlock)
    atomic_per_block_kernel(const float* __restrict__ in, int64_t n, float* __restrict__ out) {
    float const sum = shuffle_sum(walk<float>(in, n));
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

__global__ void atomic_per_element_kernel(const float* __restrict__ in, int64_t n, float* __restrict__ out) {
    int64_t const i = int64_t(blockIdx.x) * kBlock + threadIdx.x;
    if (i < n) atomicAdd(out, in[i]);
}

static_assert(sizeof(Compensated<float>) == sizeof(double), "as Kahan's workspace takes it");

template <class A>
Error launch_slots(const SumArgs& args, const Launch& launch) {
    auto const blocks = unsigned(walking_blocks(args.n));
    slots_kernel<A><<<blocks, kBlock, 0, launch.stream>>>(args.in, args.n, static_cast<A*>(launch.workspace),
                                                          static_cast<unsigned*>(launch.mailbox), args.out);
    return cudaGetLastError();
}

Error zero(float* out, Stream stream) { return cudaMemsetAsync(out, 0, sizeof(float), stream); }

}  // namespace

Error TwoPass::launch(const SumArgs& args, const Launch& launch) {
    auto const blocks = unsigned(walking_blocks(args.n));
    auto* const results = static_cast<float*>(launch.workspace);
    walk_kernel<float><<<blocks, kBlock, 0, launch.stream>>>(args.in, args.n, blocks == 1 ? args.out : results);
    if (blocks > 1) walk_kernel<float><<<1, kBlock, 0, launch.stream>>>(results, blocks, args.out);
    return cudaGetLastError();
}

Error Slots::launch(const SumArgs& args, const Launch& launch) { return launch_slots<float>(args, launch); }
Error Kahan::launch(const SumArgs& args, const Launch& launch) {
    return launch_slots<Compensated<float>>(args, launch);
}
Error Double::launch(const SumArgs& args, const Launch& launch) { return launch_slots<double>(args, launch); }

Error AtomicPerBlock::launch(const SumArgs& args, const Launch& launch) {
    if (Error const error = zero(args.out, launch.stream); error != cudaSuccess) return error;
    auto const blocks = unsigned(walking_blocks(args.n));
    atomic_per_block_kernel<<<blocks, kBlock, 0, launch.stream>>>(args.in, args.n, args.out);
    return cudaGetLastError();
}

Error AtomicPerElement::launch(const SumArgs& args, const Launch& launch) {
    if (Error const error = zero(args.out, launch.stream); error != cudaSuccess) return error;
    auto const blocks = unsigned(blocks_for(args.n, kBlock));
    atomic_per_element_kernel<<<blocks, kBlock, 0, launch.stream>>>(args.in, args.n, args.out);
    return cudaGetLastError();
}

}  // namespace gpureduce::ladder
