// The column family: columns side by side are the SIMD.
#pragma once

#include "walk.h"

template <class Op, int kWidth>  // kWidth columns are carried side by side by one task
struct Columns {
    using E = typename Op::element;
    using A = typename Op::acc;

    struct Block {
        A column[kWidth];
    };
    // A binary counter of blocks, which are added and kept in place: they are too large to hand around.
    struct Counter {
        Block level[kLevels + 1];
        uint64_t count = 0;

        void push(Block& sum) {
            int d = 0;
            for (; (count >> d) & 1; ++d) add(level[d], sum);
            for (int c = 0; c < kWidth; ++c) level[d].column[c] = sum.column[c];
            ++count;
        }
        void total(Block& sum) const {
            fill_identity(sum);
            for (int d = 0; count >> d; ++d)
                if ((count >> d) & 1) add(level[d], sum);
        }
        static void add(const Block& lower, Block& sum) {
            for (int c = 0; c < kWidth; ++c) sum.column[c] = Op::combine(lower.column[c], sum.column[c]);
        }
    };

    const Problem& problem;
    const E* in;
    Axis columns;
    AxisList batch;
    int64_t blocks;  // per batch
    int64_t leaves;

    Columns(const Problem& p, const void* data)
        : problem(p), in(static_cast<const E*>(data)), columns(p.kept.last()), batch(p.kept) {
        --batch.count;
        blocks = ceil_div(columns.size, kWidth);
        leaves = leaves_of(Family::column, int(sizeof(E)), p.n);
    }

    static void fill_identity(Block& block) {
        for (int c = 0; c < kWidth; ++c) block.column[c] = Op::identity();
    }

    int width_of(int64_t block) const {
        int64_t const left = columns.size - block * kWidth;
        return int(left < kWidth ? left : kWidth);
    }

    void leaf(const E* base, Odometer& at, int rows, int width, Block& sum) const {
        fill_identity(sum);
        bool const aligned = problem.misalignment % int(sizeof(E)) == 0;
        for (int r = 0; r < rows; ++r, at.advance(1)) {
            const E* const row = base + at.offset;
            if (columns.stride == 1 && aligned && width == kWidth)
                for (int c = 0; c < kWidth; ++c) sum.column[c] = Op::combine(sum.column[c], Op::load(row[c]));
            else if (columns.stride == 1 && aligned)
                for (int c = 0; c < width; ++c) sum.column[c] = Op::combine(sum.column[c], Op::load(row[c]));
            else
                for (int c = 0; c < width; ++c)
                    sum.column[c] = Op::combine(sum.column[c], Op::load(load_element(row + c * columns.stride)));
        }
    }

    void node(int64_t unit, int64_t first, int64_t last, Block& sum) const {
        int64_t const block = unit % blocks;
        const E* const base = in + Odometer(batch, unit / blocks).offset + block * kWidth * columns.stride;
        int64_t const end = problem.n < last * kColumnLeafRows ? problem.n : last * kColumnLeafRows;
        Counter counter;
        Odometer at(problem.reduced, first * kColumnLeafRows);
        for (int64_t r = first * kColumnLeafRows; r < end; r += kColumnLeafRows) {
            leaf(base, at, int(end - r < kColumnLeafRows ? end - r : kColumnLeafRows), width_of(block), sum);
            counter.push(sum);
        }
        counter.total(sum);
    }

    void finish(void* out, int64_t unit, const Block& total) const {
        int64_t const block = unit % blocks;
        int64_t output = block * kWidth * columns.out_stride;
        int64_t index = unit / blocks;
        for (int d = batch.count - 1; d >= 0; --d) {
            output += index % batch.axis[d].size * batch.axis[d].out_stride;
            index /= batch.axis[d].size;
        }
        for (int c = 0; c < width_of(block); ++c)
            store(out, output + c * columns.out_stride, problem.out, Op::finish(total.column[c], problem.n));
    }

    void run(void* out, int threads, const ParallelFor& parallel_for) const {
        int64_t const units = batch.elements() * blocks;
        auto const whole_columns = [&](int64_t begin, int64_t end) {
            Block total;
            for (int64_t unit = begin; unit < end; ++unit) {
                node(unit, 0, leaves, total);
                finish(out, unit, total);
            }
        };
        int64_t const work = problem.outputs * problem.n * int64_t(sizeof(E));
        if (threads == 1 || work < kParallelBytes) return whole_columns(0, units);
        if (units >= 4 * threads) return parallel_for(units, 1, whole_columns);

        int64_t const chunk = next_power_of_two(ceil_div(leaves, 4 * threads));
        int64_t const chunks = ceil_div(leaves, chunk);
        Buffer<Block> partial(chunks * units);
        parallel_for(chunks * units, 1, [&](int64_t begin, int64_t end) {
            for (int64_t task = begin; task < end; ++task) {
                int64_t const first = task % chunks * chunk;
                int64_t const last = first + chunk < leaves ? first + chunk : leaves;
                node(task / chunks, first, last, partial[task]);
            }
        });
        for (int64_t unit = 0; unit < units; ++unit) {
            Counter counter;
            Block total;
            for (int64_t c = 0; c < chunks; ++c) counter.push(partial[unit * chunks + c]);
            counter.total(total);
            finish(out, unit, total);
        }
    }
};

// Few columns are not worth wide tasks; many columns of small elements are read in longer runs.
template <class Op>
void run_columns(const Problem& p, const void* in, void* out, int threads, const ParallelFor& parallel_for) {
    constexpr int kNarrow = 64, kWide = sizeof(typename Op::element) <= 2 ? 256 : kNarrow;
    if (p.kept.last().size < kWide)
        Columns<Op, kNarrow>(p, in).run(out, threads, parallel_for);
    else
        Columns<Op, kWide>(p, in).run(out, threads, parallel_for);
}
