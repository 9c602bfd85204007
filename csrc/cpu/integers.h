// Integers: their sums are exact, so any order will do. Narrow types are added in narrow lanes, as often as cannot
// overflow.
#pragma once

#include "results.h"
#include "walk.h"

template <class E>
struct LanesOf {  // the lanes, and how many elements may be added to one
    using type = int64_t;
    static constexpr int64_t kTimes = int64_t(1) << 40;
};
template <> struct LanesOf<int16_t> {
    using type = int32_t;
    static constexpr int64_t kTimes = 32768;
};
struct LanesOfBytes {
    using type = int16_t;
    static constexpr int64_t kTimes = 128;
};
template <> struct LanesOf<int8_t> : LanesOfBytes {};
template <> struct LanesOf<uint8_t> : LanesOfBytes {};
template <> struct LanesOf<Bool> : LanesOfBytes {};

// Blocks of memory: rows of so many elements side by side.
template <class E>
struct Block {
    using Lane = typename LanesOf<E>::type;
    static constexpr int64_t kTimes = LanesOf<E>::kTimes;
    static constexpr int kWidth = 1024;  // columns at a time
    static constexpr int kRows = 8;      // rows at a time

    static GPUREDUCE_HD int64_t value(const E* x) { return Load<int64_t, E>::of(load_element(x)); }

    static int64_t run_sum(const E* x, int64_t count) {
        constexpr int kLanes = 128 / int(sizeof(Lane));
        int64_t total = 0;
        while (count >= kLanes) {
            int64_t const times = count / kLanes < kTimes ? count / kLanes : kTimes;
            Lane lane[kLanes] = {};
            for (int64_t t = 0; t < times; ++t, x += kLanes)
                for (int i = 0; i < kLanes; ++i) lane[i] = Lane(lane[i] + value(x + i));
            for (int i = 0; i < kLanes; ++i) total = add(total, int64_t(lane[i]));
            count -= times * kLanes;
        }
        for (; count >= 8; count -= 8, x += 8)
            for (int i = 0; i < 8; ++i) total = add(total, value(x + i));
        for (int64_t i = 0; i < count; ++i) total = add(total, value(x + i));
        return total;
    }

    template <int Rows>
    static void add_to_lanes(const E* x, int64_t pitch, int width, Lane* __restrict lane) {
        for (int c = 0; c < width; ++c) {
            Lane sum = lane[c];
            for (int r = 0; r < Rows; ++r) sum = Lane(sum + value(x + r * pitch + c));
            lane[c] = sum;
        }
    }

    // total[c] += the sum of column c, of at most kWidth.
    static void add_rows(const E* x, int64_t rows, int64_t pitch, int width, int64_t* total) {
        Lane lane[kWidth];
        while (rows > 0) {
            for (int c = 0; c < width; ++c) lane[c] = 0;
            int64_t const times = rows < kTimes ? rows : kTimes;
            int64_t r = 0;
            for (; r + kRows <= times; r += kRows) add_to_lanes<kRows>(x + r * pitch, pitch, width, lane);
            for (; r < times; ++r) add_to_lanes<1>(x + r * pitch, pitch, width, lane);
            for (int c = 0; c < width; ++c) total[c] = add(total[c], int64_t(lane[c]));
            rows -= times;
            x += times * pitch;
        }
    }

    // The same. Few columns of many rows are read as many columns of few: several rows, gaps and all, make one.
    static void add_columns(const E* x, int64_t rows, int64_t pitch, int width, int64_t* total) {
        int64_t const joined = width < 64 && pitch > 0 && pitch <= 64 ? (kWidth - width) / pitch + 1 : 1;
        if (joined > 1 && rows >= 2 * joined) {
            int64_t const wide_rows = rows / joined;
            int64_t wide_total[kWidth] = {};
            add_rows(x, wide_rows, joined * pitch, int((joined - 1) * pitch + width), wide_total);
            for (int64_t j = 0; j < joined; ++j)
                for (int c = 0; c < width; ++c) total[c] = add(total[c], wide_total[j * pitch + c]);
            x += wide_rows * joined * pitch;
            rows -= wide_rows * joined;
        }
        add_rows(x, rows, pitch, width, total);
    }

    static int64_t sum(const E* x, int64_t rows, int64_t pitch, int64_t width) {
        int64_t total = 0;
        if (width >= 64 || rows < 16) {
            for (int64_t r = 0; r < rows; ++r) total = add(total, run_sum(x + r * pitch, width));
            return total;
        }
        int64_t columns[64] = {};
        add_columns(x, rows, pitch, int(width), columns);
        for (int c = 0; c < width; ++c) total = add(total, columns[c]);
        return total;
    }
};

// A unit is one output of the row family, or a strip of at most kWidth outputs side by side.
template <class Op>
struct Integers {
    using E = typename Op::element;
    static constexpr int kWidth = Block<E>::kWidth;

    const Problem& problem;
    const E* in;
    AxisList reduced, batch;
    Axis columns{1, 1, 0};  // what a unit holds
    int64_t strips;

    Integers(const Problem& p, const void* data)
        : problem(p), in(static_cast<const E*>(data)), reduced(p.reduced), batch(p.kept) {
        if (p.family == Family::column) columns = batch.axis[--batch.count];
        strips = ceil_div(columns.size, kWidth);
    }

    int width_of(int64_t unit) const {
        int64_t const left = columns.size - unit % strips * kWidth;
        return int(left < kWidth ? left : kWidth);
    }

    // Adds the sums of a unit over `axes`, which may be a part of the reduced ones that starts at `offset`.
    void add_unit(int64_t unit, const AxisList& axes, int64_t offset, int64_t* total) const {
        const E* const base =
            in + offset + Odometer(batch, unit / strips).offset + unit % strips * kWidth * columns.stride;
        int const width = width_of(unit);
        bool const columns_side_by_side = columns.stride == 1 && problem.family == Family::column;
        bool const run = !columns_side_by_side && axes.count > 0 && axes.last().stride == 1;
        AxisList outer = axes;
        int64_t const run_length = run ? axes.axis[--outer.count].size : 1;
        Axis const rows = outer.count > 0 ? outer.axis[--outer.count] : Axis{1, 0, 0};
        int64_t const times = outer.elements();
        Odometer at(outer, 0);
        for (int64_t t = 0; t < times; ++t, at.advance(1)) {
            const E* const x = base + at.offset;
            if (columns_side_by_side)
                Block<E>::add_columns(x, rows.size, rows.stride, width, total);
            else
                for (int c = 0; c < width; ++c)
                    total[c] = add(total[c], Block<E>::sum(x + c * columns.stride, rows.size, rows.stride, run_length));
        }
    }

    void finish(const Results& out, int64_t unit, const int64_t* total) const {
        int64_t output = unit % strips * kWidth * columns.out_stride, index = unit / strips;
        for (int d = batch.count - 1; d >= 0; --d) {
            output += index % batch.axis[d].size * batch.axis[d].out_stride;
            index /= batch.axis[d].size;
        }
        if (columns.out_stride == 1) return store_results<Op>(out, output, width_of(unit), total);
        for (int c = 0; c < width_of(unit); ++c) store_result<Op>(out, output + c * columns.out_stride, total[c]);
    }

    void run_units(const Results& out, int64_t begin, int64_t last) const {
        int64_t total[kWidth];
        for (int64_t unit = begin; unit < last; ++unit) {
            for (int c = 0; c < width_of(unit); ++c) total[c] = 0;
            add_unit(unit, reduced, 0, total);
            finish(out, unit, total);
        }
    }

    // Rows of one run each.
    void run_rows(const Results& out, int64_t begin, int64_t last) const {
        constexpr int kTogether = 64;
        int64_t total[kTogether];
        Odometer at(batch, begin);
        for (int64_t output = begin; output < last; output += kTogether) {
            int const rows = int(last - output < kTogether ? last - output : kTogether);
            for (int r = 0; r < rows; ++r, at.advance(1)) total[r] = Block<E>::run_sum(in + at.offset, problem.n);
            store_results<Op>(out, output, rows, total);
        }
    }

    void run(const Results& out, int threads, const ParallelFor& parallel_for) const {
        int64_t const units = batch.elements() * strips;
        int64_t const bytes = problem.outputs * problem.n * int64_t(sizeof(E));
        bool const one_run = problem.family == Family::row && reduced.count == 1 && reduced.last().stride == 1;
        bool const parallel = threads > 1 && bytes >= kParallelBytes;
        if (parallel && units < 4 * threads) return run_parts(out, units, 4 * threads, parallel_for);
        auto const body = [&](int64_t begin, int64_t last) {
            one_run ? run_rows(out, begin, last) : run_units(out, begin, last);
        };
        if (!parallel) return body(0, units);
        parallel_for(units, ceil_div(kParallelBytes, bytes / units + 1), body);
    }

    // Few units: each in parts of its longest reduced axis.
    void run_parts(const Results& out, int64_t units, int tasks, const ParallelFor& parallel_for) const {
        int longest = 0;
        for (int d = 1; d < reduced.count; ++d)
            if (reduced.axis[d].size > reduced.axis[longest].size) longest = d;
        Axis const axis = reduced.axis[longest];
        int64_t const parts = axis.size < tasks ? axis.size : tasks;
        Buffer<int64_t> partial(units * parts * kWidth);
        for (int64_t i = 0; i < units * parts * kWidth; ++i) partial[i] = 0;
        parallel_for(units * parts, 1, [&](int64_t begin, int64_t last) {
            for (int64_t task = begin; task < last; ++task) {
                int64_t const part = task % parts, first = axis.size * part / parts;
                AxisList axes = reduced;
                axes.axis[longest].size = axis.size * (part + 1) / parts - first;
                add_unit(task / parts, axes, first * axis.stride, partial.data + task * kWidth);
            }
        });
        for (int64_t unit = 0; unit < units; ++unit) {
            int64_t* const total = partial.data + unit * parts * kWidth;
            for (int64_t part = 1; part < parts; ++part)
                for (int c = 0; c < width_of(unit); ++c) total[c] = add(total[c], total[part * kWidth + c]);
            finish(out, unit, total);
        }
    }
};
