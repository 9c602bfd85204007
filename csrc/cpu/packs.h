// Columns side by side: what one load reads of a row, and the sums of such loads.
#pragma once

#include "leaf.h"

// Without vectors, value by value, each of the row with that index; the compiler vectorises the loops over a pack.
template <class Op>
struct ArrayPack {
    using E = typename Op::element;
    using A = typename Op::acc;
    static constexpr int kColumns = 64;
    struct Sums {
        A column[kColumns];
    };

    static A load(E x, int64_t row) {
        if constexpr (Op::indexed)
            return Op::at(Op::first(x, 0), row);
        else
            return Op::load(x);
    }
    static Sums first(const E* x, int64_t row) {
        Sums sums;
        for (int c = 0; c < kColumns; ++c) sums.column[c] = load(x[c], row);
        return sums;
    }
    static void add(Sums& sums, const E* x, int64_t row) {
        for (int c = 0; c < kColumns; ++c) sums.column[c] = Op::combine(sums.column[c], load(x[c], row));
    }
    static Sums combine(const Sums& lower, const Sums& higher) {
        Sums sums;
        for (int c = 0; c < kColumns; ++c) sums.column[c] = Op::combine(lower.column[c], higher.column[c]);
        return sums;
    }
    static void to_values(const Sums& sums, A (&values)[kColumns]) { memcpy(values, &sums, sizeof sums); }
};

template <class Op>

struct VectorPack {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Vectors = VectorsOf<E, A>;
    using Sums = typename Vectors::Sums;
    static constexpr int kColumns = Vectors::kLoadValues;

    static GPUREDUCE_HD Sums first(const E* x, int64_t = 0) { return Vectors::widen(read<Vectors>(x)); }
    static GPUREDUCE_HD void add(Sums& sums, const E* x, int64_t = 0) { sums = Vectors::add(sums, first(x)); }
    static GPUREDUCE_HD Sums combine(const Sums& lower, const Sums& higher) { return Vectors::add(lower, higher); }
    static GPUREDUCE_HD void to_values(const Sums& sums, A (&values)[kColumns]) { Vectors::to_values(sums, values); }
};

template <class Op>
using PackOf = std::conditional_t<has_vectors<Op>, VectorPack<Op>, ArrayPack<Op>>;
