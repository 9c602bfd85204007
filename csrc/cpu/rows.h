// The row family: leaves are folded by a binary counter, kBlock neighbours at a time.
#pragma once

#include "counter.h"
#include "leaf.h"
#include "runs.h"
#include "short_rows.h"
#include "transposed_rows.h"

template <class Op>

struct Rows {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Leaf = LeafOf<Op>;
    static constexpr int kBlock = Leaf::kBlock, kElements = Leaf::kElements;

    const Problem& problem;
    const E* in;
    const E* end;
    bool flat;  // each row is one run of memory

    Rows(const Problem& p, const void* data) : problem(p), in(static_cast<const E*>(data)), end(end_of(p, in)) {
        bool const aligned = has_vectors<Op> || p.misalignment % int(sizeof(E)) == 0;
        flat = aligned && (p.reduced.count == 0 || (p.reduced.count == 1 && p.reduced.last().stride == 1));
    }

    // The node over leaves [first, last) of a row; first is a multiple of a power of two >= last - first.
    A node(const E* row, int64_t first, int64_t last, Runs<E>& runs) const {
        int64_t const begin = first * kElements;
        int64_t const count = (problem.n < last * kElements ? problem.n : last * kElements) - begin;
        if (flat) {
            const E* x = row + begin;
            auto const next = [&](int taken, E*) __attribute__((always_inline)) {
                auto const leaf = elements_at(x, taken, end);
                x += taken;
                return leaf;
            };
            if constexpr (Op::indexed)
                return best_of(next, begin, count);
            else
                return fold_leaves<kDepth>(next, count, end);
        }
        runs.start(row, begin);
        auto const next = [&](int taken, E* together) { return runs.next(taken, together); };
        if constexpr (Op::indexed)
            return best_of(next, begin, count);
        else
            return fold_leaves<kDepth>(next, count, nullptr);
    }

    // Of indexed operators, in any order: elements [begin, begin + count).
    template <class Next>
    static A best_of(const Next& next, int64_t begin, int64_t count) {
        A best = Op::identity();
        E together[kElements];
        for (int64_t const last = begin + count; begin < last; begin += kElements) {
            int const part = int(last - begin < kElements ? last - begin : kElements);
            const E* const x = next(part, together).x;
            auto local = Op::first(x[0], 0);
            for (int i = 1; i < part; ++i) Op::see(local, x[i], i);
            best = Op::combine(best, Op::at(local, begin));
        }
        return best;
    }

    // `next(count, buffer)` gives the elements of leaf after leaf. Memory may be read up to `readable`, if that is
    // known. Nodes of kBlock^Depth leaves need no counter, whose branches cost as much as several leaves; the rest of
    // the row is one incomplete node of that size.
    template <int Depth, class Next>
    static A fold_leaves(const Next& next, int64_t count, const E* readable) {
        constexpr int64_t kNode = kElements * (Depth == 0 ? 1 : Depth == 1 ? kBlock : kBlock * kBlock);
        E together[kElements];
        Counter<A, Op> nodes;
        auto const full = [&]() __attribute__((always_inline)) { return next(kElements, together); };
        for (; count >= kNode; count -= kNode) nodes.push(Leaf::template node<Depth>(full));
        if (count == 0) return nodes.count ? nodes.total() : Op::identity();
        A rest;
        if constexpr (Depth == 0) {
            const E* const x = next(int(count), together).x;
            rest = Leaf::of(x, int(count), readable ? readable : x + count);
        } else {
            rest = fold_leaves<Depth - 1>(next, count, readable);
        }
        if (nodes.count == 0) return rest;
        nodes.push(rest);
        return nodes.total();
    }
    static constexpr int kDepth = has_vectors<Op> ? 2 : 0;

    void whole_rows(const Results& out, int64_t begin, int64_t last, int64_t leaves) const {
        Runs<E> runs(problem, end);
        Odometer at(problem.kept, begin);
        for (int64_t output = begin; output < last; ++output, at.advance(1))
            store_result<Op>(out, output, node(in + at.offset, 0, leaves, runs));
    }

    void run(const Results& out, int threads, const ParallelFor& parallel_for) const {
        if constexpr (!Op::order_free || Op::indexed)  // the axes of others are in the order of memory
            if (TransposedRows<Op>::fits(problem))
                return TransposedRows<Op>(problem, in, threads).run(out, threads, parallel_for);
        int64_t const leaves = leaves_of(Family::row, int(sizeof(E)), problem.n);
        int64_t const bytes = problem.outputs * problem.n * int64_t(sizeof(E));
        Cut const cut(problem.outputs, leaves, bytes, threads);
        if (cut.chunks > 1) return long_rows(out, cut, parallel_for);
        auto const body = [&](int64_t begin, int64_t last) {
            if constexpr (has_vectors<Op>)
                if (flat && problem.n > 0 && problem.n < kBlock * kElements && last - begin > 1)
                    return ShortRows<Op>{problem, in, end}.run(out, begin, last);
            whole_rows(out, begin, last, leaves);
        };
        if (threads == 1 || bytes < kParallelBytes) return body(0, problem.outputs);
        int64_t const row_bytes = problem.n * int64_t(sizeof(E)) + 1;
        parallel_for(problem.outputs, ceil_div(kParallelBytes, row_bytes), body);
    }

    void long_rows(const Results& out, const Cut& cut, const ParallelFor& parallel_for) const {
        Buffer<A> partial(cut.units * cut.chunks);
        parallel_for(cut.units * cut.chunks, 1, [&](int64_t begin, int64_t last) {
            Runs<E> runs(problem, end);
            for (int64_t task = begin; task < last; ++task) {
                const E* const row = in + Odometer(problem.kept, task / cut.chunks).offset;
                int64_t const c = task % cut.chunks;
                partial[task] = node(row, cut.first(c), cut.last(c), runs);
            }
        });
        for (int64_t output = 0; output < cut.units; ++output) {
            Counter<A, Op> counter;
            for (int64_t c = 0; c < cut.chunks; ++c) counter.push(partial[output * cut.chunks + c]);
            store_result<Op>(out, output, counter.total());
        }
    }
};
