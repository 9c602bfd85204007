// Narrow columns: rows of few bytes, one after the other in memory. As many leaves as a pack has columns make a group,
// a short piece of memory, which becomes one pack of sums without a counter.
#pragma once

#include "packs.h"
#include "transpose.h"

template <class Op>

struct ColumnGroup {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Vectors = VectorsOf<E, A>;
    using Sums = typename Vectors::Sums;
    static constexpr int kLeaves = Vectors::kLoadValues, kRows = kLeaves * kColumnLeafRows;
    static constexpr int64_t kMaxPitch = 128 / int(sizeof(E));  // of 256 bytes were slower than leaf by leaf

    // Rows of at least one pack: the node over the leaves of one pack.
    template <int Leaves = kLeaves>
    static GPUREDUCE_HD Sums of_pack(const E* x, int64_t pitch) {
        if constexpr (Leaves == 1) {
            Sums sums = Vectors::widen(read<Vectors>(x));
            for (int r = 1; r < kColumnLeafRows; ++r)
                sums = Vectors::add(sums, Vectors::widen(read<Vectors>(x + r * pitch)));
            return sums;
        } else {
            Sums const lower = of_pack<Leaves / 2>(x, pitch);
            return Vectors::add(lower, of_pack<Leaves / 2>(x + Leaves / 2 * kColumnLeafRows * pitch, pitch));
        }
    }

    // Shorter rows, of at most kMaxTransposed elements with the gap behind them. Transposed, one load reads an element
    // of each leaf, and the leaves are folded like neighbours in a row. Memory may be read up to `end`.
    static constexpr int kMaxTransposed = 64 / int(sizeof(E));
    static Sums of_few(const E* x, int64_t pitch, int columns, const E* end) {
        E element[kMaxTransposed * kColumnLeafRows][kLeaves];
        bool const gap_is_readable = pitch > columns && end - x >= kRows * pitch;
        int const count = int(pitch) * (kColumnLeafRows - 1) + (gap_is_readable ? int(pitch) : columns);
        transpose(x, kColumnLeafRows * pitch, kLeaves, count, &element[0][0], kLeaves);
        A total[kLeaves] = {};
        for (int c = 0; c < columns; ++c) {
            Sums sums = Vectors::widen(read<Vectors>(element[c]));
            for (int r = 1; r < kColumnLeafRows; ++r)
                sums = Vectors::add(sums, Vectors::widen(read<Vectors>(element[c + r * pitch])));
            total[c] = fold_values<A, 0>(Vectors::fold(sums));
        }
        return Vectors::from_values(total);
    }
};
