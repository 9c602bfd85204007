// Leaves of the row family, and integers, whose order is free.
#pragma once

#include "vectors.h"

// The tree from elements up to a leaf, value by value: for accumulators without vectors.
template <class Op>
struct RowLeaf {
    using E = typename Op::element;
    using A = typename Op::acc;
    static constexpr int kWidth = kLanes * components<E>;
    static constexpr int kElements = kLoads * kWidth;
    static constexpr int kBlock = 1;

    // lane[0] = the fold of lane[0] .. lane[width - 1]. In place: an entry is read before it is overwritten.
    static A fold(A* lane, int width) {
        for (int half = width / 2; half >= 1; half /= 2)
            for (int i = 0; i < half; ++i) lane[i] = Op::combine(lane[2 * i], lane[2 * i + 1]);
        return lane[0];
    }

    static A block(const E* x) {
        A lane[kWidth];
        for (int i = 0; i < kWidth; ++i) {
            A sum = Op::load(x[i]);
            for (int k = 1; k < kLoads; ++k) sum = Op::combine(sum, Op::load(x[i + k * kWidth]));
            lane[i] = sum;
        }
        return fold(lane, kWidth);
    }

    static A partial(const E* x, int count) {
        A lane[kWidth];
        int const width = int(next_power_of_two(count < kWidth ? (count > 0 ? count : 1) : kWidth));
        for (int i = 0; i < width; ++i) lane[i] = i < count ? Op::load(x[i]) : Op::identity();
        for (int i = kWidth; i < count; ++i) lane[i % kWidth] = Op::combine(lane[i % kWidth], Op::load(x[i]));
        return fold(lane, width);
    }

    static A of(const E* x, int64_t count) { return count >= kElements ? block(x) : partial(x, int(count)); }
};

GPUREDUCE_HD float padding_of(float) { return -0.0f; }
GPUREDUCE_HD double padding_of(double) { return -0.0; }
GPUREDUCE_HD Half padding_of(Half) { return {0x8000}; }
GPUREDUCE_HD BFloat16 padding_of(BFloat16) { return {0x8000}; }

// The same with vectors. A part of a leaf is padded with -0.0.
template <class Op>
struct VectorLeaf {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Vectors = LeafVectors<E, A>;
    static constexpr int kVectors = Vectors::kVectors, kSteps = ceil_log2(kVectors);
    static constexpr int kWidth = kLanes * components<E>;
    static constexpr int kElements = kLoads * kWidth;
    static constexpr int kBlock = kValues<A>;  // leaves folded together: their last vectors fill whole vectors

    // Prefetches the next leaf in order of the addresses: the loads of a leaf are four streams, each too short for the
    // hardware to follow.
    static GPUREDUCE_HD Vector<A> one_vector(const E* x) {
        auto const vector = [x](int i) __attribute__((always_inline)) {
            constexpr int kLine = 64, kBytes = kElements * int(sizeof(E)), kShare = kBytes / kVectors;
            const char* const next = reinterpret_cast<const char*>(x) + kBytes + i * kShare;
            for (int byte = 0; byte < kShare; byte += kLine) __builtin_prefetch(next + byte);
            return Vectors::vector(x, i);
        };
        return fold_vectors<A, kVectors, 0>(vector, 0);
    }

    static A block(const E* x) {
        Vector<A> leaf[kBlock];
        for (int i = 0; i < kBlock; ++i) leaf[i] = one_vector(x + i * kElements);
        auto const vector = [&](int i) __attribute__((always_inline)) { return leaf[i]; };
        return fold_values<A, kSteps + ceil_log2(kBlock)>(fold_vectors<A, kBlock, kSteps>(vector, 0));
    }

    static A full(const E* x) { return fold_values<A, kSteps>(one_vector(x)); }

    // A leaf of elements for one load, in as many vectors as it takes.
    template <int Count = kVectors>
    static GPUREDUCE_HD A one_load(const E* x, int count) {
        if constexpr (Count > 1)
            if (count <= Count / 2 * Vectors::kLoadValues) return one_load<Count / 2>(x, count);
        auto const vector = [x](int i) __attribute__((always_inline)) { return Vectors::first_load(x, i); };
        return fold_values<A, ceil_log2(Count)>(fold_vectors<A, Count, 0>(vector, 0));
    }

    static A partial(const E* x, int count) {
        E padded[kElements];
        int const width = count <= kWidth ? int(next_power_of_two(count)) : kElements;
        int const end = width > Vectors::kLoadValues ? width : Vectors::kLoadValues;
        if (count < end) {
            memcpy(padded, x, size_t(count) * sizeof(E));
            for (int i = count; i < end; ++i) padded[i] = padding_of(E{});
            x = padded;
        }
        return width <= kWidth ? one_load(x, width) : full(x);
    }

    static A of(const E* x, int64_t count) { return count >= kElements ? full(x) : partial(x, int(count)); }
};

template <class Op>
using LeafOf = std::conditional_t<(LeafVectors<typename Op::element, typename Op::acc>::kVectors > 0), VectorLeaf<Op>,
                                  RowLeaf<Op>>;

// Integers: any order. Narrow types are added in 16-bit lanes, each at most 128 times, so they cannot overflow.
template <class E>
int64_t flat_sum(const E* x, int64_t count) {
    int64_t total = 0;
    if constexpr (sizeof(E) == 1) {
        constexpr int kWidth = 64, kTimes = 128;
        for (; count >= kWidth;) {
            int const times = int(count / kWidth < kTimes ? count / kWidth : kTimes);
            int16_t lane[kWidth] = {};
            for (int t = 0; t < times; ++t)
                for (int i = 0; i < kWidth; ++i) lane[i] = int16_t(lane[i] + Load<int64_t, E>::of(x[t * kWidth + i]));
            int32_t sum = 0;
            for (int i = 0; i < kWidth; ++i) sum += lane[i];
            total += sum;
            x += times * kWidth;
            count -= times * kWidth;
        }
    } else if constexpr (sizeof(E) == 2) {
        constexpr int64_t kBlock = 65536;
        for (; count >= 16;) {
            int64_t const block = count < kBlock ? count : kBlock;
            int32_t sum = 0;
            for (int64_t i = 0; i < block; ++i) sum += x[i];
            total += sum;
            x += block;
            count -= block;
        }
    }
    for (int64_t i = 0; i < count; ++i) total = add(total, Load<int64_t, E>::of(x[i]));
    return total;
}
