// A leaf of each of many columns of memory that begin their leaves in the same row: vectors lie along the rows, so nothing is
// transposed, and the fold of a leaf's positions adds whole vectors.
#pragma once

#include "packs.h"

template <class Op>

struct LeafStrip {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Pack = VectorPack<Op>;
    using Vectors = typename Pack::Vectors;
    using Sums = typename Pack::Sums;
    static constexpr int kPack = Pack::kColumns;
    static constexpr int kWidth = kLanes * components<E>;   // positions of a leaf
    static constexpr int kColumns = 4096 / int(sizeof(A));  // 4 KB a level; 2 KB were a third slower, 8 KB no faster
    static constexpr int kLevels = ceil_log2(kWidth) + 1;

    const E* x;  // row 0 of the first column
    int64_t pitch;
    int width;  // columns: at least kPack, at most kColumns
    Sums level[kLevels][kColumns / kPack];

    LeafStrip(const E* x, int64_t pitch, int width) : x(x), pitch(pitch), width(width) {}

    const E* row(int position, int k) const { return x + (position + k * kWidth) * pitch; }
    // The last pack ends with the strip, so it may overlap the one before.
    int column(int pack) const { return (pack + 1) * kPack < width ? pack * kPack : width - kPack; }

    // The sum of a position's elements of a pack, added to the counter's full levels.
    GPUREDUCE_HD void push(int position, int pack, int full_levels) {
        int const c = column(pack);
        Sums sums = Vectors::widen(read<Vectors>(row(position, 0) + c));
        for (int k = 1; k < kLoads; ++k) sums = Vectors::add(sums, Vectors::widen(read<Vectors>(row(position, k) + c)));
        for (int d = 0; d < full_levels; ++d) sums = Vectors::add(level[d][pack], sums);
        level[full_levels][pack] = sums;
    }
    // The leaf of column c becomes value[c * stride].
    void run(A* value, int64_t stride) {
        constexpr int kLinePacks = 64 / int(kPack * sizeof(E)) > 0 ? 64 / int(kPack * sizeof(E)) : 1;
        int const packs = int(ceil_div(width, kPack));
        for (int i = 0; i < kWidth; ++i) {
            int const full_levels = __builtin_ctz(~unsigned(i));
            for (int p = 0; p < packs; p += kLinePacks) {
                for (int k = 0; k < kLoads && i + 1 < kWidth; ++k)
                    __builtin_prefetch(row(i + 1, k) + p * kPack, 0,
                                       2);  // not to the first level, which the counter fills
                for (int of_line = p; of_line < p + kLinePacks && of_line < packs; ++of_line)
                    push(i, of_line, full_levels);
            }
        }
        for (int p = 0; p < packs; ++p) {
            A total[kPack];
            Pack::to_values(level[kLevels - 1][p], total);
            for (int c = 0; c < kPack; ++c) value[(column(p) + c) * stride] = total[c];
        }
    }
};
