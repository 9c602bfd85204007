// The column family: columns side by side are the SIMD, in packs of as many as one load reads. A strip of columns goes
// down the rows leaf by leaf; the counter's levels hold a strip each.
#pragma once

#include "narrow_columns.h"
#include "results.h"
#include "walk.h"

template <class Op>

struct Columns {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Pack = PackOf<Op>;
    using Sums = typename Pack::Sums;
    static constexpr int kPack = Pack::kColumns;
    static constexpr int kStripColumns = 4096 / int(sizeof(A)) / kPack * kPack;  // 4 KB a level

    const Problem& problem;
    const E* in;
    const E* end;
    Axis columns;
    AxisList batch;
    int64_t strips, strip_columns;  // of each element of the batch
    int packs;                      // of a strip, at most
    int64_t leaves;
    bool in_place;  // packs are read where they lie

    Columns(const Problem& p, const void* data)
        : problem(p), in(static_cast<const E*>(data)), end(end_of(p, in)), columns(p.kept.last()), batch(p.kept) {
        --batch.count;
        int64_t const all_packs = ceil_div(columns.size, kPack);
        strips = ceil_div(columns.size, kStripColumns);
        packs = int(ceil_div(all_packs, strips));
        strip_columns = packs * kPack;
        strips = ceil_div(columns.size, strip_columns);
        leaves = leaves_of(Family::column, int(sizeof(E)), p.n);
        bool const aligned = has_vectors<Op> || p.misalignment % int(sizeof(E)) == 0;
        in_place = columns.stride == 1 && aligned && columns.size >= kPack;
    }

    // A strip of one element of the batch. The last pack ends with the strip, so it may overlap the one before.
    struct Strip {
        const E* base;
        int64_t first_column;
        int width, packs;

        int column(int pack) const {
            int const last = width - kPack;
            return pack * kPack < last || last < 0 ? pack * kPack : last;
        }
    };
    Strip strip(int64_t unit) const {
        int64_t const first = unit % strips * strip_columns;
        int64_t const left = columns.size - first;
        int const width = int(left < strip_columns ? left : strip_columns);
        const E* const base = in + Odometer(batch, unit / strips).offset + first * columns.stride;
        return {base, first, width, int(ceil_div(width, kPack))};
    }

    // The sums of a pack are added to the counter: levels [from, below) are full, and the sums with them are stored
    // above.
    GPUREDUCE_HD void push(Sums sums, int pack, int from, int below, Sums* level) const {
        for (int d = from; d < below; ++d) sums = Pack::combine(level[d * packs + pack], sums);
        level[below * packs + pack] = sums;
    }

    // A leaf of evenly spaced rows. Prefetches the next one, line by line.
    void even_leaf(const Strip& s, const E* base, int64_t pitch, int64_t index, int below, Sums* level) const {
        constexpr int kLinePacks = 64 / int(kPack * sizeof(E)) > 0 ? 64 / int(kPack * sizeof(E)) : 1;
        auto const add_pack = [&](int p, const E* x) __attribute__((always_inline)) {
            auto const row = [=](int r) __attribute__((always_inline)) { return x + r * pitch; };
            push(Pack::leaf(kColumnLeafRows, index, row), p, 0, below, level);
        };
        int p = 0;
        for (; p + kLinePacks < s.packs; p += kLinePacks) {
            const E* const x = base + p * kPack;
            for (int r = 0; r < kColumnLeafRows; ++r) __builtin_prefetch(x + (r + kColumnLeafRows) * pitch);
            for (int i = 0; i < kLinePacks; ++i) add_pack(p + i, x + i * kPack);
        }
        for (; p < s.packs; ++p) add_pack(p, base + s.column(p));
    }
    // The same for any rows, and for packs that do not lie in memory as they are read.
    void any_leaf(const Strip& s, const int64_t (&row)[kColumnLeafRows], int rows, int64_t index, int below,
                  Sums* level) const {
        for (int p = 0; p < s.packs; ++p) {
            int const left = s.width - s.column(p), count = left < kPack ? left : kPack;
            E together[kPack] = {};
            auto const pack = [&](int r) {
                const E* const x = s.base + row[r] + s.column(p) * columns.stride;
                if (in_place) return x;
                for (int c = 0; c < count; ++c) together[c] = load_element(x + c * columns.stride);
                return static_cast<const E*>(together);
            };
            push(Pack::leaf(rows, index, pack), p, 0, below, level);
        }
    }
    // A leaf of a strip, at the next rows, of which the first has that index.
    void leaf(const Strip& s, Odometer& at, int rows, int64_t index, uint64_t count, Sums* level) const {
        int const below = __builtin_ctzll(~count);
        if (in_place && rows == kColumnLeafRows && at.run() >= rows) {
            even_leaf(s, s.base + at.offset, problem.reduced.last().stride, index, below, level);
            return at.advance(rows);
        }
        int64_t row[kColumnLeafRows];
        for (int r = 0; r < rows; ++r, at.advance(1)) row[r] = at.offset;
        any_leaf(s, row, rows, index, below, level);
    }

    // The next rows as groups, where rows are narrow; returns how many leaves that makes.
    uint64_t groups(const Strip& s, Odometer& at, int64_t rows, Sums* level) const {
        uint64_t count = 0;
        if constexpr (has_vectors<Op>) {
            using Group = ColumnGroup<Op>;
            constexpr int kLevel = ceil_log2(Group::kLeaves);
            int64_t const pitch = problem.reduced.last().stride;
            bool const few = columns.size < kPack;
            if (columns.stride != 1 || pitch > (few ? Group::kMaxTransposed : Group::kMaxPitch)) return 0;
            for (; rows >= Group::kRows && at.run() >= Group::kRows; rows -= Group::kRows) {
                const E* const x = s.base + at.offset;
                int const below = kLevel + __builtin_ctzll(~(count >> kLevel));
                for (int p = 0; p < s.packs; ++p)
                    push(few ? Group::of_few(x, pitch, s.width, end) : Group::of_pack(x + s.column(p), pitch), p,
                         kLevel, below, level);
                at.advance(Group::kRows);
                count += Group::kLeaves;
            }
        }
        return count;
    }

    // Whole leaves of a row that is repeated, as in an expanded tensor: all are the same, and so are all nodes of a level. Returns
    // how many leaves that makes.
    uint64_t repeated(const Strip& s, Odometer& at, int64_t rows, Sums* level) const {
        uint64_t const count = uint64_t(rows / kColumnLeafRows);
        if (Op::indexed || problem.reduced.count != 1 || problem.reduced.last().stride != 0 || count == 0) return 0;
        leaf(s, at, kColumnLeafRows, 0, 0, level);
        for (int d = 1; count >> d; ++d)
            for (int p = 0; p < s.packs; ++p)
                level[d * packs + p] = Pack::combine(level[(d - 1) * packs + p], level[(d - 1) * packs + p]);
        at.advance(int64_t(count - 1) * kColumnLeafRows);
        return count;
    }

    // The node over leaves [first, last) of a strip, in the first of the levels.
    void node(int64_t unit, int64_t first, int64_t last, Sums* level) const {
        Strip const s = strip(unit);
        Odometer at(problem.reduced, first * kColumnLeafRows);
        int64_t const begin = first * kColumnLeafRows, past = last * kColumnLeafRows;
        int64_t const rows = (problem.n < past ? problem.n : past) - begin;
        uint64_t count = repeated(s, at, rows, level);
        if (count == 0) count = groups(s, at, rows, level);
        for (int64_t r = int64_t(count) * kColumnLeafRows; r < rows; r += kColumnLeafRows, ++count)
            leaf(s, at, int(rows - r < kColumnLeafRows ? rows - r : kColumnLeafRows), begin + r, count, level);
        total(count, s.packs, level);
    }

    // Adds up the full levels of a counter of `count` entries, the lowest first, into the first level.
    void total(uint64_t count, int strip_packs, Sums* level) const {
        int const lowest = __builtin_ctzll(count);
        for (int p = 0; p < strip_packs; ++p) {
            Sums sums = level[lowest * packs + p];
            for (int d = lowest + 1; count >> d; ++d)
                if ((count >> d) & 1) sums = Pack::combine(level[d * packs + p], sums);
            level[p] = sums;
        }
    }

    void finish(const Results& out, int64_t unit, const Sums* totals) const {
        Strip const s = strip(unit);
        int64_t output = s.first_column * columns.out_stride;
        int64_t index = unit / strips;
        for (int d = batch.count - 1; d >= 0; --d) {
            output += index % batch.axis[d].size * batch.axis[d].out_stride;
            index /= batch.axis[d].size;
        }
        for (int p = 0; p < s.packs; ++p) {
            int const column = s.column(p), left = s.width - column, count = left < kPack ? left : kPack;
            A total[kPack];
            Pack::to_values(totals[p], total);
            int64_t const first = output + column * columns.out_stride;
            if (columns.out_stride == 1)
                store_results<Op>(out, first, count, total);
            else
                for (int c = 0; c < count; ++c) store_result<Op>(out, first + c * columns.out_stride, total[c]);
        }
    }

    int64_t level_sums() const { return int64_t(ceil_log2(leaves) + 1) * packs; }

    void run(const Results& out, int threads, const ParallelFor& parallel_for) const {
        int64_t const units = batch.elements() * strips;
        int64_t const bytes = problem.outputs * problem.n * int64_t(sizeof(E));
        Cut const cut(units, leaves, bytes, threads);
        if (cut.chunks > 1) return tall_columns(out, cut, parallel_for);
        auto const whole_columns = [&](int64_t begin, int64_t last) {
            Buffer<Sums> level(level_sums());
            for (int64_t unit = begin; unit < last; ++unit) {
                node(unit, 0, leaves, level.data);
                finish(out, unit, level.data);
            }
        };
        if (threads == 1 || bytes < kParallelBytes) return whole_columns(0, units);
        parallel_for(units, 1, whole_columns);
    }

    void tall_columns(const Results& out, const Cut& cut, const ParallelFor& parallel_for) const {
        Buffer<Sums> partial(cut.units * cut.chunks * packs);
        parallel_for(cut.units * cut.chunks, 1, [&](int64_t begin, int64_t last) {
            Buffer<Sums> level(level_sums());
            for (int64_t task = begin; task < last; ++task) {
                int64_t const c = task % cut.chunks;
                node(task / cut.chunks, cut.first(c), cut.last(c), level.data);
                for (int p = 0; p < packs; ++p) partial[task * packs + p] = level[p];
            }
        });
        for (int64_t unit = 0; unit < cut.units; ++unit) {
            Sums* const chunk = partial.data + unit * cut.chunks * packs;
            for (int64_t step = 1; step < cut.chunks; step *= 2)
                for (int64_t c = 0; c + step < cut.chunks; c += 2 * step)
                    for (int p = 0; p < packs; ++p)
                        chunk[c * packs + p] = Pack::combine(chunk[c * packs + p], chunk[(c + step) * packs + p]);
            finish(out, unit, chunk);
        }
    }
};
