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
    // The leaf of `rows` rows; pack(r) is where row r is, whose index is row + r.
    template <class Pack>
    static Sums leaf(int rows, int64_t row, const Pack& pack) {
        Sums sums;
        if constexpr (Op::pivoted) {
            using First = typename Op::First;
            using Terms = typename Op::Terms;
            using Pivot = decltype(Op::pivot(First::identity(), rows));
            typename First::acc first[kColumns];
            typename Terms::acc terms[kColumns];
            Pivot pivot[kColumns];
            for (int r = 0; r < rows; ++r) {
                const E* const x = pack(r);
                for (int c = 0; c < kColumns; ++c)
                    first[c] = r == 0 ? First::load(x[c]) : First::combine(first[c], First::load(x[c]));
            }
            for (int c = 0; c < kColumns; ++c) pivot[c] = Op::pivot(first[c], rows);
            for (int r = 0; r < rows; ++r) {
                const E* const x = pack(r);
                for (int c = 0; c < kColumns; ++c)
                    terms[c] = r == 0 ? Op::term(x[c], pivot[c]) : Terms::combine(terms[c], Op::term(x[c], pivot[c]));
            }
            for (int c = 0; c < kColumns; ++c) sums.column[c] = Op::leaf(pivot[c], terms[c], rows);
        } else {
            const E* const x = pack(0);
            for (int c = 0; c < kColumns; ++c) sums.column[c] = load(x[c], row);
            for (int r = 1; r < rows; ++r) {
                const E* const x = pack(r);
                for (int c = 0; c < kColumns; ++c) sums.column[c] = Op::combine(sums.column[c], load(x[c], row + r));
            }
        }
        return sums;
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

    template <class Pack>
    static GPUREDUCE_HD Sums leaf(int rows, int64_t, const Pack& pack) {
        Sums sums = Vectors::widen(read<Vectors>(pack(0)));
        for (int r = 1; r < rows; ++r) sums = Vectors::add(sums, Vectors::widen(read<Vectors>(pack(r))));
        return sums;
    }
    static GPUREDUCE_HD Sums combine(const Sums& lower, const Sums& higher) { return Vectors::add(lower, higher); }
    static GPUREDUCE_HD void to_values(const Sums& sums, A (&values)[kColumns]) { Vectors::to_values(sums, values); }
};

template <class Op>
using PackOf = std::conditional_t<has_vectors<Op>, VectorPack<Op>, ArrayPack<Op>>;
