// Global memory -> shared memory without registers in between (cp.async, from sm_80 on; loads and stores before).
#pragma once

#include "load.cuh"

namespace gpureduce::cuda {

// 16 bytes, both addresses aligned to them.
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(unsigned(__cvta_generic_to_shared(shared))),
                 "l"(global)
                 : "memory");
#else
    *static_cast<uint4*>(shared) = load_vector(global);
#endif
}
// The same of 4, 8 or 16 bytes, through the L1 if less than 16.
template <int Bytes>
__device__ __forceinline__ void copy_cell_async(void* shared, const void* global) {
    if constexpr (Bytes == kVectorBytes) {
        copy_async(shared, global);
    } else {
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(unsigned(__cvta_generic_to_shared(shared))),
                     "l"(global), "n"(Bytes)
                     : "memory");
#else
        using Cell = std::conditional_t<Bytes == 8, unsigned long long, unsigned>;
        *static_cast<Cell*>(shared) = load_element(static_cast<const Cell*>(global));
#endif
    }
}
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Until at most `Pending` of this thread's groups of copies are on their way. Other threads see them after a barrier.
template <int Pending>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

// Where stage_run puts the element at `first`: as far behind a 16-byte boundary as in global memory.
template <class E>
__device__ __forceinline__ E* staged_at(const E* first, unsigned char* shared) {
    return reinterpret_cast<E*>(shared + int(reinterpret_cast<uintptr_t>(first) % kVectorBytes));
}

// Copies the contiguous elements [first, first + count) to shared memory by `threads` threads, of which this is `thread`, and returns
// where the first of them comes to lie (staged_at). They go by copy_async, to be committed and waited for by the caller, in whole
// packs, with what else these hold of the tensor, whose memory is [begin, end). Where a pack would leave it, what is in it goes
// element by element: that waits for memory, so it is left to the tensor's ends. `shared` is 16-byte aligned, with room for
// staged_bytes; at least 16 threads take part.
template <class E>
__device__ __forceinline__ const E* stage_run(const E* first, int count, const void* begin, const void* end,
                                              unsigned char* shared, int thread, int threads) {
    constexpr int kPack = components<E>;
    int const before = int(reinterpret_cast<uintptr_t>(first) % kVectorBytes);
    int const bytes = (before + count * int(sizeof(E)) + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
    const char* const packs = reinterpret_cast<const char*>(first) - before;
    E* const place = staged_at(first, shared);
    if (packs >= begin && packs + bytes <= end) {
#pragma unroll 1
        for (int i = thread * kVectorBytes; i < bytes; i += threads * kVectorBytes) copy_async(shared + i, packs + i);
        return place;
    }
    int const head = min(count, (kVectorBytes - before) % kVectorBytes / int(sizeof(E)));
    int const packed = head + (count - head) / kPack * kPack;
#pragma unroll 1
    for (int i = head + thread * kPack; i < packed; i += threads * kPack) copy_async(place + i, first + i);
    if (thread < head) place[thread] = load_element(first + thread);
    if (packed + thread < count) place[packed + thread] = load_element(first + packed + thread);
    return place;
}

}  // namespace gpureduce::cuda
