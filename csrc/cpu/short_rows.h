// Many rows of few leaves each: as many rows side by side as a vector has values.
#pragma once

#include "counter.h"
#include "leaf.h"
#include "results.h"
#include "walk.h"

template <class Op>
struct ShortRows {  // each row is one run of memory, of fewer than kBlock leaves
    using E = typename Op::element;
    using A = typename Op::acc;
    using Leaf = VectorLeaf<Op>;
    static constexpr int kBlock = Leaf::kBlock, kElements = Leaf::kElements;

    const Problem& problem;
    const E* in;
    const E* end;

    // Count: as part_vector's. The counter is one of vectors with a value for each row.
    template <int Count>
    void run_blocks(const Results& out, int64_t begin, int64_t last) const {
        constexpr int kSteps = ceil_log2(Count) + ceil_log2(kBlock);
        Odometer at(problem.kept, begin);
        for (int64_t output = begin; output < last; output += kBlock) {
            int const rows = int(last - output < kBlock ? last - output : kBlock);
            const E* x[kBlock];
            for (int i = 0; i < kBlock; ++i) {  // beyond the last row, the last one again
                x[i] = i < rows ? in + at.offset : x[i - 1];
                if (i < rows) at.advance(1);
            }
            Vector<A> const totals = sums_of<Count>(x);
            A in_order[kBlock];
            for (int i = 0; i < kBlock; ++i) in_order[index_after<A>(kSteps, i)] = totals[i];
            store_results<Op>(out, output, rows, in_order);
        }
    }

    // Rows are read one after the other, as they lie in memory, and then their leaves folded side by side.
    template <int Count>
    Vector<A> sums_of(const E* const (&x)[kBlock]) const {
        constexpr int kLeaves = Count == Leaf::kVectors ? kBlock : 1;
        int const whole = int(problem.n / kElements), left = int(problem.n % kElements);
        Vector<A> leaf[kLeaves][kBlock];
        for (int i = 0; i < kBlock; ++i) {
            if constexpr (Count == Leaf::kVectors)
                for (int j = 0; j < whole; ++j)
                    leaf[j][i] = Leaf::full_vector(elements_at(x[i] + j * kElements, kElements, end));
            if (left > 0) leaf[whole][i] = Leaf::template part_vector<Count>(x[i] + whole * kElements, left, end);
        }
        Counter<Vector<A>, Plus<Vector<A>>, ceil_log2(kBlock) + 1> sums;
        for (int j = 0; j < whole + (left > 0); ++j) {
            auto const vector = [&](int i) __attribute__((always_inline)) { return leaf[j][i]; };
            sums.push(fold_vectors<A, kBlock, ceil_log2(Count)>(vector, 0));
        }
        return sums.total();
    }

    template <int Count = Leaf::kVectors>
    void run(const Results& out, int64_t begin, int64_t last) const {
        if constexpr (Count > 1)
            if (problem.n <= Count / 2 * Leaf::kLoad) return run<Count / 2>(out, begin, last);
        run_blocks<Count>(out, begin, last);
    }
};
