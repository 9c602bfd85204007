// The row family: leaves are folded by a binary counter.
#pragma once

#include "leaf.h"
#include "walk.h"

template <class Op>
struct Rows {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Leaf = LeafOf<Op>;

    const Problem& problem;
    const E* in;
    bool flat;  // each row is one aligned run of memory

    Rows(const Problem& p, const void* data) : problem(p), in(static_cast<const E*>(data)) {
        bool const contiguous = p.reduced.count == 0 || (p.reduced.count == 1 && p.reduced.last().stride == 1);
        flat = contiguous && p.misalignment % int(sizeof(E)) == 0;
    }

    // The next `count` elements of a row: where they lie if that is one run of memory, else copied to the buffer.
    const E* next(const E* row, Odometer& at, int count, E* buffer) const {
        int64_t const stride = problem.reduced.count ? problem.reduced.last().stride : 0;
        bool const runs = stride == 1 && problem.misalignment % int(sizeof(E)) == 0;
        if (runs && at.run() >= count) {
            const E* const here = row + at.offset;
            at.advance(count);
            return here;
        }
        for (int done = 0; done < count;) {
            int const run = int(at.run() < count - done ? at.run() : count - done);
            const E* const source = row + at.offset;
            if (stride == 1)
                memcpy(buffer + done, source, size_t(run) * sizeof(E));
            else
                for (int i = 0; i < run; ++i) buffer[done + i] = load_element(source + i * stride);
            done += run;
            at.advance(run);
        }
        return buffer;
    }

    // The node over leaves [first, last); first is a multiple of a power of two >= last - first.
    A node(const E* row, int64_t first, int64_t last) const {
        int64_t const end = problem.n < last * Leaf::kElements ? problem.n : last * Leaf::kElements;
        int64_t const begin = first * Leaf::kElements;
        if constexpr (Op::order_free)
            if (flat) return flat_sum(row + begin, end - begin);
        if (flat) return flat_node(row + begin, end - begin);
        BinaryCounter<A, Op, kLevels> counter;
        Odometer at(problem.reduced, begin);
        E buffer[Leaf::kElements];
        for (int64_t e = begin; e < end; e += Leaf::kElements) {
            int const count = int(end - e < Leaf::kElements ? end - e : Leaf::kElements);
            counter.push(Leaf::of(next(row, at, count, buffer), count));
        }
        return counter.total(Op::identity());
    }

    static A flat_node(const E* x, int64_t count) {
        constexpr int kBlockElements = Leaf::kBlock * Leaf::kElements;
        BinaryCounter<A, Op, kLevels> blocks;
        for (; count >= kBlockElements; count -= kBlockElements, x += kBlockElements) blocks.push(Leaf::block(x));
        if (count > 0) {
            A const rest = part_of_block(x, count);
            if (blocks.count == 0) return rest;
            blocks.push(rest);
        }
        return blocks.total(Op::identity());
    }

    static A part_of_block(const E* x, int64_t count) {
        if (count <= Leaf::kElements) return Leaf::of(x, count);
        BinaryCounter<A, Op, ceil_log2(Leaf::kBlock)> leaves;
        for (; count > 0; count -= Leaf::kElements, x += Leaf::kElements) leaves.push(Leaf::of(x, count));
        return leaves.total(Op::identity());
    }

    void finish(void* out, int64_t output, A total) const {
        store(out, output, problem.out, Op::finish(total, problem.n));
    }

    void run(void* out, int threads, const ParallelFor& parallel_for) const {
        int64_t const leaves = leaves_of(Family::row, int(sizeof(E)), problem.n);
        auto const whole_rows = [&](int64_t begin, int64_t end) {
            Odometer at(problem.kept, begin);
            for (int64_t output = begin; output < end; ++output, at.advance(1))
                finish(out, output, node(in + at.offset, 0, leaves));
        };
        int64_t const work = problem.outputs * problem.n * int64_t(sizeof(E));
        if (threads == 1 || work < kParallelBytes) return whole_rows(0, problem.outputs);
        int64_t const row_bytes = problem.n * int64_t(sizeof(E)) + 1;
        if (problem.outputs >= 4 * threads)
            return parallel_for(problem.outputs, ceil_div(kParallelBytes, row_bytes), whole_rows);

        int64_t const chunk = next_power_of_two(ceil_div(leaves, 4 * threads));
        int64_t const chunks = ceil_div(leaves, chunk);
        Buffer<A> partial(chunks * problem.outputs);
        parallel_for(chunks * problem.outputs, 1, [&](int64_t begin, int64_t end) {
            for (int64_t unit = begin; unit < end; ++unit) {
                int64_t const first = unit % chunks * chunk;
                int64_t const last = first + chunk < leaves ? first + chunk : leaves;
                partial[unit] = node(in + Odometer(problem.kept, unit / chunks).offset, first, last);
            }
        });
        for (int64_t output = 0; output < problem.outputs; ++output) {
            BinaryCounter<A, Op, kLevels> counter;
            for (int64_t c = 0; c < chunks; ++c) counter.push(partial[output * chunks + c]);
            finish(out, output, counter.total(Op::identity()));
        }
    }
};
