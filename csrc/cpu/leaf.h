// Leaves of the row family.
#pragma once

#include "vectors.h"

// The elements of a leaf, and those of the one that will be read next, or else the same.
template <class E>
struct Elements {
    const E* x;
    const E* next;
};
// Of `count` elements in memory that ends at `end`.
template <class E>
GPUREDUCE_HD Elements<E> elements_at(const E* x, int count, const E* end) {
    return {x, end - x >= 2 * count ? x + count : x};
}

// The value of a leaf of `count` elements: sum_of(Sum{}, load) adds them up as Sum does, each through `load`. Pivoted operators
// look at them twice.
template <class Op, class SumOf>
GPUREDUCE_HD typename Op::acc leaf_value(int count, SumOf sum_of) {
    using E = typename Op::element;
    if constexpr (Op::pivoted) {
        using First = typename Op::First;
        auto const pivot = Op::pivot(sum_of(First{}, [](E x) { return First::load(x); }), count);
        return Op::leaf(pivot, sum_of(typename Op::Terms{}, [=](E x) { return Op::term(x, pivot); }), count);
    } else {
        return sum_of(Op{}, [](E x) { return Op::load(x); });
    }
}

// The tree from elements up to a leaf, value by value: for accumulators without vectors.
template <class Op>
struct RowLeaf {
    using E = typename Op::element;
    using A = typename Op::acc;
    static constexpr int kWidth = kLanes * components<E>;
    static constexpr int kElements = kLoads * kWidth;
    static constexpr int kBlock = 1;

    // lane[0] = the fold of lane[0] .. lane[width - 1]. In place: an entry is read before it is overwritten.
    template <class Sum>
    static typename Sum::acc fold(typename Sum::acc* lane, int width) {
        for (int half = width / 2; half >= 1; half /= 2)
            for (int i = 0; i < half; ++i) lane[i] = Sum::combine(lane[2 * i], lane[2 * i + 1]);
        return lane[0];
    }

    static A full(const E* x) {
        return leaf_value<Op>(kElements, [=](auto sum, auto load) { return tree<decltype(sum)>(x, load); });
    }
    template <int Depth, class Next>
    static A node(const Next& next) {
        return full(next().x);
    }

    static A of(const E* x, int count, const E*) {
        if (count >= kElements) return full(x);
        return leaf_value<Op>(count, [=](auto sum, auto load) { return tree_of<decltype(sum)>(x, count, load); });
    }

    // All elements of a leaf, and the first `count`, as the sum that Sum has of them.
    template <class Sum, class Load>
    static typename Sum::acc tree(const E* x, Load load) {
        typename Sum::acc lane[kWidth];
        if constexpr (std::is_arithmetic_v<
                          typename Sum::acc>) {  // GCC did not vectorise a loop over four exp of doubles
            for (int i = 0; i < kWidth; ++i) lane[i] = load(x[i]);
            for (int k = 1; k < kLoads; ++k)
                for (int i = 0; i < kWidth; ++i) lane[i] = Sum::combine(lane[i], load(x[i + k * kWidth]));
        } else {
            for (int i = 0; i < kWidth; ++i) {
                auto sum = load(x[i]);
                for (int k = 1; k < kLoads; ++k) sum = Sum::combine(sum, load(x[i + k * kWidth]));
                lane[i] = sum;
            }
        }
        return fold<Sum>(lane, kWidth);
    }
    template <class Sum, class Load>
    static typename Sum::acc tree_of(const E* x, int count, Load load) {
        typename Sum::acc lane[kWidth];
        int const width = int(next_power_of_two(count < kWidth ? (count > 0 ? count : 1) : kWidth));
        for (int i = 0; i < width; ++i) lane[i] = i < count ? load(x[i]) : Sum::identity();
        for (int i = kWidth; i < count; ++i) lane[i % kWidth] = Sum::combine(lane[i % kWidth], load(x[i]));
        return fold<Sum>(lane, width);
    }
};

// The same with vectors. kBlock leaves are folded together, be they neighbours or leaves of as many rows: each becomes
// one vector, and the values of these vectors fill one vector again.
template <class Op>
struct VectorLeaf {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Vectors = VectorsOf<E, A>;
    using Sums = typename Vectors::Sums;
    static constexpr int kLoad = Vectors::kLoadValues;
    static constexpr int kWidth = kLanes * components<E>;
    static constexpr int kElements = kLoads * kWidth;
    static constexpr int kVectors = kWidth / kLoad;
    static constexpr int kBlock = kValues<A>;
    static constexpr int kSteps = ceil_log2(kVectors);  // of folding to a leaf's one vector

    static GPUREDUCE_HD Sums load(const E* x, int i) { return Vectors::widen(read<Vectors>(x + i * kLoad)); }

    // Touches part of the next leaf line by line: the loads of a leaf are four streams, each too short for the hardware to follow,
    // and prefetch instructions start no stream. Out of line, since the hardware tells streams apart by the instruction that
    // reads. Zen 3, 2 threads, 2^26 elements, bandwidth beside that of a plain loop over floats, with prefetches four leaves
    // ahead, touched inline, and so: float32 .95, .98, 1.02; bfloat16 .78, .80, .87; float16 -, .69, .81; float64 -, .95, .96.
    static constexpr int kParts = 8;
    static __attribute__((noinline)) void touch(const char* part) {
        constexpr int kLine = 64;
        const char* const end = part + kElements * int(sizeof(E)) / kParts;
#pragma GCC unroll 1
        for (; part < end; part += kLine) asm volatile("" ::"r"(*part));
    }
    static GPUREDUCE_HD Vector<A> full_vector(Elements<E> leaf) {
        const E* const x = leaf.x;
        // Not what is in the caches: of a leaf that was copied to the first-level one, touching would take a third of the time.
        bool const touches = leaf.next != x;
        auto const vector = [=](int i) __attribute__((always_inline)) {
            if (i % (kVectors / kParts) == 0 && touches)
                touch(reinterpret_cast<const char*>(leaf.next + i * (kElements / kVectors)));
            Sums sums = load(x, i);
            for (int k = 1; k < kLoads; ++k) sums = Vectors::add(sums, load(x, i + k * kVectors));
            return Vectors::fold(sums);
        };
        return fold_vectors<A, kVectors, 0>(vector, 0);
    }

    // The first `count` elements of a leaf, which lie in the first Count vectors if there are fewer than kVectors.
    // Memory may be read up to `end`.
    template <int Count>
    static GPUREDUCE_HD Vector<A> part_vector(const E* x, int count, const E* end) {
        int const whole = count / kLoad;
        Sums const last = Vectors::widen(read_first<Vectors>(x + whole * kLoad, count % kLoad, end));
        Sums const none = Vectors::widen(read_first<Vectors>(x, 0, x));
        auto const vector = [&](int i) __attribute__((always_inline)) {
            Sums sums = i < whole ? load(x, i) : i == whole ? last : none;
            for (int k = 1; k < kLoads && Count == kVectors; ++k) {
                int const at = i + k * kVectors;
                if (at > whole) break;
                sums = Vectors::add(sums, at < whole ? load(x, at) : last);
            }
            return Vectors::fold(sums);
        };
        return fold_vectors<A, Count, 0>(vector, 0);
    }

    // The node over kBlock^Depth neighbours as one vector; next() gives the elements of one leaf after the other.
    template <int Depth, class Next>
    static GPUREDUCE_HD Vector<A> node_vector(const Next& next) {
        if constexpr (Depth == 0) {
            return full_vector(next());
        } else {
            Vector<A> part[kBlock];
            for (int i = 0; i < kBlock; ++i) part[i] = node_vector<Depth - 1>(next);
            auto const vector = [&](int i) __attribute__((always_inline)) { return part[i]; };
            return fold_vectors<A, kBlock, kSteps + (Depth - 1) * ceil_log2(kBlock)>(vector, 0);
        }
    }
    template <int Depth, class Next>
    static A node(const Next& next) {
        return fold_values<A, kSteps + Depth * ceil_log2(kBlock)>(node_vector<Depth>(next));
    }

    template <int Count = kVectors>
    static A part(const E* x, int count, const E* end) {
        if constexpr (Count > 1)
            if (count <= Count / 2 * kLoad) return part<Count / 2>(x, count, end);
        return fold_values<A, ceil_log2(Count)>(part_vector<Count>(x, count, end));
    }
    static A of(const E* x, int count, const E* end) {
        return count < kElements ? part(x, count, end) : fold_values<A, kSteps>(full_vector({x, x}));
    }
};

template <class Op>
inline constexpr bool has_vectors = Op::additive && VectorsOf<typename Op::element, typename Op::acc>::kLoadValues > 0;
template <class Op>
using LeafOf = std::conditional_t<has_vectors<Op>, VectorLeaf<Op>, RowLeaf<Op>>;
