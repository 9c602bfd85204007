// How blocks of one launch join: every block sends its accumulator, and the last one by index collects and folds them.
//
// A letter carries 4 bytes of an accumulator and a mark that it has arrived, in one 8-byte store, so neither a fence nor a
// counter is needed: one way to the L2 and one read, where a counter costs a fence, an atomic and a read, all in turn. The
// collector empties each box after reading it, so the mailbox is all zero again when the launch ends.
//
// The collector waits for blocks of lower index. It cannot wait in vain: blocks start in the order of their index, and none
// of the others waits for anything.
#pragma once

#include "fold.cuh"

namespace gpureduce::cuda {

using Letter = unsigned long long;
inline constexpr Letter kArrived = 1ull << 32;

template <class A>
inline constexpr int letters = int(sizeof(A) / 4);  // of one accumulator

__device__ __forceinline__ void put(Letter* box, Letter letter) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(box), "l"(letter) : "memory");
}
__device__ __forceinline__ Letter look(const Letter* box) {
    Letter letter;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(letter) : "l"(box) : "memory");
    return letter;
}

template <class A>
struct AccumulatorWords {
    unsigned word[letters<A>];
};

// `stride` boxes lie between the letters of one accumulator.
template <class A>
__device__ __forceinline__ void send(Letter* box, int64_t stride, A value) {
    auto const words = bit_cast<AccumulatorWords<A>>(value);
#pragma unroll
    for (int w = 0; w < letters<A>; ++w) put(box + w * stride, kArrived | words.word[w]);
}

// Waits for N accumulators, of which those with exists[i] will come, and empties their boxes. All are looked at together,
// so that the wait is that of the latest one.
template <class A, int N>
__device__ __forceinline__ void receive(Letter* const (&box)[N], const bool (&exists)[N], int64_t stride,
                                        A (&value)[N]) {
    Letter letter[N][letters<A>];
    bool missing;
    do {
        missing = false;
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int w = 0; w < letters<A>; ++w) letter[i][w] = exists[i] ? look(box[i] + w * stride) : kArrived;
#pragma unroll
        for (int i = 0; i < N; ++i)
#pragma unroll
            for (int w = 0; w < letters<A>; ++w) missing |= letter[i][w] < kArrived;
    } while (missing);
#pragma unroll
    for (int i = 0; i < N; ++i) {
        AccumulatorWords<A> words;
#pragma unroll
        for (int w = 0; w < letters<A>; ++w) {
            words.word[w] = unsigned(letter[i][w]);
            if (exists[i]) put(box[i] + w * stride, 0);
        }
        value[i] = bit_cast<A>(words);
    }
}

// The accumulators of all chunks, waited for, as fold_warp and fold_block take them.
template <class Op>
struct Partials {
    using A = typename Op::acc;
    Letter* boxes;
    int count;
    __device__ __forceinline__ void operator()(int i, A (&value)[kEach]) const {
        Letter* box[kEach];
        bool exists[kEach];
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
            box[j] = boxes + (i + j) * letters<A>;
            exists[j] = i + j < count;
        }
        receive<A>(box, exists, 1, value);
#pragma unroll
        for (int j = 0; j < kEach; ++j)
            if (!exists[j]) value[j] = Op::identity();
    }
};

}  // namespace gpureduce::cuda
