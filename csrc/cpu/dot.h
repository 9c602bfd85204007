// Sums of products of two inputs: leaves of elements that lie together, or are put together first.
#pragma once

#include "counter.h"
#include "leaf.h"
#include "results.h"
#include "walk.h"

// Walks the offsets of consecutive indices of the kept axes.
struct PairWalk {
    int64_t x = 0, y = 0, out = 0;

    PairWalk(const PairAxes& axes, int count, int64_t index) {
        for (int d = count - 1; d >= 0; --d) {
            PairAxis const& axis = axes.axis[d];
            int64_t const outer = axis.size > 0 ? index / axis.size : 0, inner = index - outer * axis.size;
            x += inner * axis.stride[0];
            y += inner * axis.stride[1];
            out += inner * axis.out_stride;
            index = outer;
        }
    }
};

// `count` elements side by side: where they are, or copied together.
template <class E>
GPUREDUCE_HD const E* together(const E* x, int64_t step, int count, E* buffer) {
    if (step == 1) return x;
    for (int i = 0; i < count; ++i) buffer[i] = x[i * step];
    return buffer;
}

template <class Op>
struct DotRows {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Leaf = RowLeaf<Op>;
    static constexpr int kWidth = Leaf::kWidth, kElements = Leaf::kElements;

    const DotTask& task;
    const DotProblem& problem;

    explicit DotRows(const DotTask& t) : task(t), problem(t.problem) {}

    A product(E x, E y) const { return Op::product(x, y, problem.conjugate); }

    A full(const E* x, const E* y) const {
        A lane[kWidth];
        for (int i = 0; i < kWidth; ++i) {
            A sum = product(x[i], y[i]);
            for (int k = 1; k < kLoads; ++k) sum = Op::combine(sum, product(x[i + k * kWidth], y[i + k * kWidth]));
            lane[i] = sum;
        }
        return Leaf::template fold<Op>(lane, kWidth);
    }
    A part(const E* x, const E* y, int count) const {
        A lane[kWidth];
        int const width = int(next_power_of_two(count < kWidth ? count : kWidth));
        for (int i = 0; i < width; ++i) lane[i] = i < count ? product(x[i], y[i]) : Op::identity();
        for (int i = kWidth; i < count; ++i) lane[i % kWidth] = Op::combine(lane[i % kWidth], product(x[i], y[i]));
        return Leaf::template fold<Op>(lane, width);
    }

    // The node over leaves [first, last) of a row.
    A node(const PairWalk& row, int64_t first, int64_t last) const {
        Counter<A, Op> nodes;
        E buffer[kInputs][kElements];
        for (; first < last; ++first) {
            int64_t const e = first * kElements, left = problem.n - e;
            int const count = int(left < kElements ? left : kElements);
            const E* const x = together(static_cast<const E*>(task.x) + row.x + e * problem.step[0], problem.step[0],
                                        count, buffer[0]);
            const E* const y = together(static_cast<const E*>(task.y) + row.y + e * problem.step[1], problem.step[1],
                                        count, buffer[1]);
            nodes.push(count == kElements ? full(x, y) : part(x, y, count));
        }
        return nodes.count ? nodes.total() : Op::identity();
    }

    void run() const {
        int64_t const leaves = leaves_of(Family::row, int(sizeof(E)), problem.n);
        int64_t const bytes = problem.outputs * problem.n * kInputs * int64_t(sizeof(E));
        Cut const cut(problem.outputs, leaves, bytes, task.threads);
        if (cut.chunks > 1) return long_rows(cut);
        auto const body = [&](int64_t begin, int64_t last) {
            for (int64_t output = begin; output < last; ++output)
                store_result<Op>(task.results, output,
                                 node(PairWalk(problem.kept, problem.kept.count, output), 0, leaves));
        };
        if (task.threads == 1 || bytes < kParallelBytes) return body(0, problem.outputs);
        int64_t const row_bytes = problem.n * kInputs * int64_t(sizeof(E)) + 1;
        task.parallel_for(problem.outputs, ceil_div(kParallelBytes, row_bytes), body);
    }
    void long_rows(const Cut& cut) const {
        Buffer<A> partial(cut.units * cut.chunks);
        task.parallel_for(cut.units * cut.chunks, 1, [&](int64_t begin, int64_t last) {
            for (int64_t i = begin; i < last; ++i) {
                int64_t const c = i % cut.chunks;
                partial[i] =
                    node(PairWalk(problem.kept, problem.kept.count, i / cut.chunks), cut.first(c), cut.last(c));
            }
        });
        for (int64_t output = 0; output < cut.units; ++output) {
            Counter<A, Op> counter;
            for (int64_t c = 0; c < cut.chunks; ++c) counter.push(partial[output * cut.chunks + c]);
            store_result<Op>(task.results, output, counter.total());
        }
    }
};

// Strips of columns go down the rows; the counter's levels hold a strip each.
template <class Op>
struct DotColumns {
    using E = typename Op::element;
    using A = typename Op::acc;
    static constexpr int kColumns = 64;
    struct Strip {
        A column[kColumns];

        void join(const Strip& lower) {
            for (int c = 0; c < kColumns; ++c) column[c] = Op::combine(lower.column[c], column[c]);
        }
    };

    const DotTask& task;
    const DotProblem& problem;
    PairAxis columns;
    int64_t strips, leaves;  // strips of each element of the batch

    explicit DotColumns(const DotTask& t) : task(t), problem(t.problem), columns(t.problem.kept.last()) {
        strips = ceil_div(columns.size, kColumns);
        leaves = leaves_of(Family::column, int(sizeof(E)), problem.n);
    }
    PairWalk batch_of(int64_t unit) const { return PairWalk(problem.kept, problem.kept.count - 1, unit / strips); }
    int64_t first_column(int64_t unit) const { return unit % strips * kColumns; }
    int width(int64_t unit) const {
        int64_t const left = columns.size - first_column(unit);
        return int(left < kColumns ? left : kColumns);
    }

    void leaf(const E* x, const E* y, int rows, int count, Strip& sum) const {
        E a[kColumns] = {}, b[kColumns] = {};
        for (A& column : sum.column) column = Op::identity();
        for (int r = 0; r < rows; ++r, x += problem.step[0], y += problem.step[1]) {
            for (int c = 0; c < count; ++c) a[c] = x[c * columns.stride[0]];
            for (int c = 0; c < count; ++c) b[c] = y[c * columns.stride[1]];
            for (int c = 0; c < kColumns; ++c)
                sum.column[c] = Op::combine(sum.column[c], Op::product(a[c], b[c], problem.conjugate));
        }
    }
    // The next value of a binary counter over `count` values: its full levels join it.
    static void push(Strip& sum, uint64_t count, Strip* level) {
        int const below = __builtin_ctzll(~count);
        for (int d = 0; d < below; ++d) sum.join(level[d]);
        level[below] = sum;
    }
    static Strip total(uint64_t count, const Strip* level) {
        int d = __builtin_ctzll(count);
        Strip sum = level[d];
        while (count >> ++d)
            if ((count >> d) & 1) sum.join(level[d]);
        return sum;
    }
    int64_t levels() const { return ceil_log2(leaves) + 1; }

    Strip node(int64_t unit, int64_t first, int64_t last, Strip* level) const {
        PairWalk const batch = batch_of(unit);
        const E* const x = static_cast<const E*>(task.x) + batch.x + first_column(unit) * columns.stride[0];
        const E* const y = static_cast<const E*>(task.y) + batch.y + first_column(unit) * columns.stride[1];
        uint64_t count = 0;
        for (; first < last; ++first, ++count) {
            int64_t const row = first * kColumnLeafRows, left = problem.n - row;
            Strip sum;
            leaf(x + row * problem.step[0], y + row * problem.step[1],
                 int(left < kColumnLeafRows ? left : kColumnLeafRows), width(unit), sum);
            push(sum, count, level);
        }
        return total(count, level);
    }
    void finish(int64_t unit, const Strip& total) const {
        int64_t const out = batch_of(unit).out + first_column(unit) * columns.out_stride;
        for (int c = 0; c < width(unit); ++c)
            store_result<Op>(task.results, out + c * columns.out_stride, total.column[c]);
    }

    void run() const {
        int64_t const units = problem.outputs / columns.size * strips;
        int64_t const bytes = problem.outputs * problem.n * kInputs * int64_t(sizeof(E));
        Cut const cut(units, leaves, bytes, task.threads);
        Buffer<Strip> partial(cut.chunks > 1 ? units * cut.chunks : 0);
        auto const body = [&](int64_t begin, int64_t last) {
            Buffer<Strip> level(levels());
            for (int64_t i = begin; i < last; ++i) {
                int64_t const c = i % cut.chunks;
                Strip const sum = node(i / cut.chunks, cut.first(c), cut.last(c), level.data);
                if (cut.chunks == 1)
                    finish(i, sum);
                else
                    partial[i] = sum;
            }
        };
        if (task.threads == 1 || bytes < kParallelBytes)
            body(0, units * cut.chunks);
        else
            task.parallel_for(units * cut.chunks, 1, body);
        if (cut.chunks == 1) return;
        Buffer<Strip> level(levels());
        for (int64_t unit = 0; unit < units; ++unit) {
            for (int64_t c = 0; c < cut.chunks; ++c) push(partial[unit * cut.chunks + c], uint64_t(c), level.data);
            finish(unit, total(uint64_t(cut.chunks), level.data));
        }
    }
};

// For one group of operators. False if the problem's is not among them.
template <class Ops>
bool dot(const DotTask& task) {
    return visit_first(
        Ops{}, [&](auto op) { return is_operator_of<decltype(op)>(task.problem); },
        [&](auto op) {
            using Op = decltype(op);
            if constexpr (Op::has_columns)
                if (task.problem.family == Family::column) return DotColumns<Op>(task).run();
            DotRows<Op>(task).run();
        });
}
