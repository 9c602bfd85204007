// Rows whose elements go down the columns of memory, as in the sum of all elements of a transposed matrix. Memory is read in
// tiles of whole lines, whose leaves become values in whatever order they are complete; then the tree is made of the values.
//
// Where columns begin with leaves, their leaves are added side by side (leaf_strip.h). Others are transposed in registers:
// short ones as a whole, long ones leaf by leaf.
#pragma once

#include "leaf_strip.h"
#include "results.h"
#include "transpose.h"
#include "walk.h"

template <class Op>

struct TransposedRows {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Leaf = LeafOf<Op>;
    static constexpr int kElements = Leaf::kElements;
    static constexpr int kLine = sizeof(E) < 64 ? 64 / int(sizeof(E)) : 1;
    // Zen 3 with 2 threads reads a matrix in strips of 64 bytes a row at 10 GB/s, of 128 at 17, of 256 at 25, of 512 at 26, of
    // 4,096 at 31.
    static constexpr int kLongColumns = 8 * kLine;
    static constexpr int kPanel = kElements / 4;               // rows of them at a time
    static constexpr int kPitch = kElements + kPanel + kLine;  // of them in the buffer
    // A tile of short columns is half of a second-level cache, and has at least four lines a row.
    static constexpr int64_t kShortElements = (256 << 10) / int(sizeof(E));
    // Columns shorter than a leaf are short in any case: in long ones, a leaf lies in two.
    static constexpr int64_t kShort =
        kShortElements / (4 * kLine) > kElements ? kShortElements / (4 * kLine) : kElements;

    enum class Way { side_by_side, short_columns, long_columns };

    const Problem& problem;
    const E* in;
    Axis columns, down;
    AxisList outer;  // the reduced axes around them
    int64_t leaves;  // of a row
    Way way;
    int64_t strips, width;     // strips of so many columns, for each element of the outer axes
    int64_t parts, part_rows;  // of a strip

    static bool fits(const Problem& p) {
        if (p.reduced.count < 2 || p.n < 4 * kElements) return false;
        Axis const columns = p.reduced.axis[p.reduced.count - 2], down = p.reduced.last();
        return columns.stride == 1 && down.stride > 1 && columns.size * down.size >= kElements;
    }

    TransposedRows(const Problem& p, const void* data, int threads)
        : problem(p),
          in(static_cast<const E*>(data)),
          columns(p.reduced.axis[p.reduced.count - 2]),
          down(p.reduced.last()),
          outer(p.reduced),
          leaves(leaves_of(Family::row, int(sizeof(E)), p.n)),
          way(way_of(columns, down)),
          parts(way == Way::side_by_side ? down.size / kElements : 1) {
        outer.count -= 2;
        int64_t const tasks = threads > 1 ? 4 * threads : 1, lines = ceil_div(columns.size, kLine);
        int64_t const around = p.outputs * outer.elements() * parts;
        int64_t const most = most_columns() / kLine, fair = lines * around / tasks;
        strips = ceil_div(lines, fair < 1 ? 1 : fair < most ? fair : most);
        width = ceil_div(lines, strips) * kLine;
        strips = ceil_div(columns.size, width);
        // A part's last leaves read on, element by element, so a part is many leaves.
        int64_t const wanted = ceil_div(tasks, around * strips), possible = down.size / (16 * kElements);
        if (way == Way::long_columns && possible > 1) parts = wanted < possible ? wanted : possible;
        part_rows = ceil_div(down.size, parts);
    }

    static Way way_of(Axis columns, Axis down) {
        if constexpr (has_vectors<Op>)
            if (down.size % kElements == 0 && columns.size >= LeafStrip<Op>::kPack) return Way::side_by_side;
        return down.size <= kShort ? Way::short_columns : Way::long_columns;
    }
    int64_t most_columns() const {
        if constexpr (has_vectors<Op>)
            if (way == Way::side_by_side) return LeafStrip<Op>::kColumns;
        return way == Way::short_columns ? kShortElements / down.size : kLongColumns;
    }
    int64_t room() const {  // of a tile's buffer
        if (way == Way::side_by_side) return kElements;
        return way == Way::short_columns ? width * down.size + kElements : kLongColumns * (kPitch + kElements);
    }

    // Rows [top, bottom) of a strip, with the leaves that begin in it.
    struct Tile {
        const E* row;    // its element 0
        const E* base;   // row 0 of the strip
        int64_t column;  // the first one, of all columns of the row
        int width;
        int64_t top, bottom;
    };
    Tile tile(int64_t unit) const {
        int64_t const strip = unit % strips, part = unit / strips % parts, around = unit / strips / parts;
        int64_t const outers = outer.elements(), o = around % outers;
        int64_t const first = strip * width, left = columns.size - first, bottom = (part + 1) * part_rows;
        const E* const row = in + Odometer(problem.kept, around / outers).offset;
        return {row,
                row + Odometer(outer, o).offset + first,
                o * columns.size + first,
                int(left < width ? left : width),
                part * part_rows,
                bottom < down.size ? bottom : down.size};
    }

    static A value(const E* x, int64_t leaf, int count) {
        if constexpr (Op::indexed) {
            auto local = Op::first(x[0], 0);
            for (int i = 1; i < count; ++i) Op::see(local, x[i], i);
            return Op::at(local, leaf * kElements);
        } else {
            return Leaf::of(x, count, x + count);
        }
    }
    // The value of a leaf of which the first `have` elements are at `x`. The others, which lie around the tile, are read one by
    // one to behind them.
    A completed(const Tile& t, E* x, int64_t leaf, int have) const {
        int64_t const first = leaf * kElements, left = problem.n - first;
        int const count = int(left < kElements ? left : kElements);
        Odometer at(problem.reduced, first + have);
        for (int i = have; i < count; ++i, at.advance(1)) x[i] = load_element(t.row + at.offset);
        return value(x, leaf, count);
    }

    void run_side_by_side(const Tile& t, E* buffer, A* values) const {
        if constexpr (has_vectors<Op>) {
            int64_t const stride = down.size / kElements, first = t.column * stride + t.top / kElements;
            if (t.width >= LeafStrip<Op>::kPack)
                return LeafStrip<Op>(t.base + t.top * down.stride, down.stride, t.width).run(values + first, stride);
            for (int c = 0; c < t.width; ++c) values[first + c * stride] = completed(t, buffer, first + c * stride, 0);
        }
    }

    // The tile becomes one run of the row's elements.
    void run_short(const Tile& t, E* buffer, A* values) const {
        int64_t const rows = down.size;
        transpose_tall(t.base, down.stride, rows, t.width,
                       [=](int c) __attribute__((always_inline)) { return buffer + c * rows; });
        int64_t const begin = t.column * rows, end = begin + t.width * rows;
        for (int64_t leaf = ceil_div(begin, kElements); leaf * kElements < end; ++leaf) {
            E* const x = buffer + (leaf * kElements - begin);
            int64_t const have = end - leaf * kElements;
            values[leaf] = have < kElements ? completed(t, x, leaf, int(have)) : value(x, leaf, kElements);
        }
    }

    // Each column has its present leaf in the buffer, and room for a panel behind it. A column's first elements may end a leaf
    // that began in the column before; they wait for it in `head`.
    struct Sliding {
        E* buffer;
        E* head;
        int have[kLongColumns];  // elements of the present leaf, with those of the column before
        int64_t leaf[kLongColumns];
        bool began_before[kLongColumns];

        E* column(int c) const { return buffer + c * kPitch; }
        E* head_of(int c) const { return head + c * kElements; }
    };
    void run_long(const Tile& t, E* buffer, A* values) const {
        Sliding s;
        s.buffer = buffer;
        s.head = buffer + kLongColumns * kPitch;
        for (int c = 0; c < t.width; ++c) {
            int64_t const first = (t.column + c) * down.size + t.top;
            s.leaf[c] = first / kElements;
            s.have[c] = int(first % kElements);
            s.began_before[c] = s.have[c] > 0;
        }
        for (int64_t row = t.top; row < t.bottom; row += kPanel) {
            int const rows = int(t.bottom - row < kPanel ? t.bottom - row : kPanel);
            E* to[kLongColumns];
            for (int c = 0; c < t.width; ++c) to[c] = s.column(c) + s.have[c];
            E* const* const column = to;
            transpose_tall(
                t.base + row * down.stride, down.stride, rows, t.width,
                [=](int c) __attribute__((always_inline)) { return column[c]; }, t.bottom - row - rows);
            for (int c = 0; c < t.width; ++c)
                if ((s.have[c] += rows) >= kElements) end_leaf(s, c, values);
        }
        for (int c = 0; c < t.width; ++c)
            if (s.have[c] > 0 && !s.began_before[c]) end_column(t, s, c, values);
    }
    void end_leaf(Sliding& s, int c, A* values) const {
        E* const x = s.column(c);
        if (s.began_before[c])
            memcpy(s.head_of(c), x, kElements * sizeof(E));
        else
            values[s.leaf[c]] = value(x, s.leaf[c], kElements);
        s.began_before[c] = false;
        ++s.leaf[c];
        s.have[c] -= kElements;
        memcpy(x, x + kElements, kPanel * sizeof(E));
    }
    void end_column(const Tile& t, const Sliding& s, int c, A* values) const {
        E* const x = s.column(c);
        int64_t const leaf = s.leaf[c];
        int const have = s.have[c];
        bool const next_is_here = t.top == 0 && t.bottom == down.size && c + 1 < t.width;
        if (next_is_here) memcpy(x + have, s.head_of(c + 1) + have, size_t(kElements - have) * sizeof(E));
        values[leaf] = next_is_here ? value(x, leaf, kElements) : completed(t, x, leaf, have);
    }

    // The tree over values, which it overwrites.
    static A total(A* value, int64_t count) {
        for (; count > 1; count = ceil_div(count, 2)) {
            for (int64_t i = 0; i < count / 2; ++i) value[i] = Op::combine(value[2 * i], value[2 * i + 1]);
            if (count % 2) value[count / 2] = value[count - 1];
        }
        return value[0];
    }

    void run(const Results& out, int threads, const ParallelFor& parallel_for) const {
        Buffer<A> values(problem.outputs * leaves);
        int64_t const tiles = outer.elements() * strips * parts;  // of a row
        auto const body = [&](int64_t begin, int64_t last) {
            Buffer<E> buffer(room());
            for (int64_t unit = begin; unit < last; ++unit) {
                Tile const t = tile(unit);
                A* const of_row = values.data + unit / tiles * leaves;
                if (way == Way::side_by_side)
                    run_side_by_side(t, buffer.data, of_row);
                else if (way == Way::short_columns)
                    run_short(t, buffer.data, of_row);
                else
                    run_long(t, buffer.data, of_row);
            }
        };
        if (threads == 1 || problem.outputs * problem.n * int64_t(sizeof(E)) < kParallelBytes)
            body(0, problem.outputs * tiles);
        else
            parallel_for(problem.outputs * tiles, 1, body);
        for (int64_t output = 0; output < problem.outputs; ++output)
            store_result<Op>(out, output, total(values.data + output * leaves, leaves));
    }
};
