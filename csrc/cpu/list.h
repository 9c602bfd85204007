// Norms over lists of tensors: leaf after leaf, whichever tensors they belong to; and tensors multiplied by a number.
#pragma once

#include "counter.h"
#include "leaf.h"
#include "walk.h"

// Calls take(x, count) for the elements of leaf after leaf in [first, last), of the whole list.
template <class E, class Take>
void for_each_leaf(const ListProblem& problem, int64_t first, int64_t last, const Take& take) {
    constexpr int kLeaf = row_leaf_elements(int(sizeof(E)));
    int64_t before = 0;  // leaves of earlier tensors
    for (const Piece* piece = problem.pieces; first < last; ++piece) {
        int64_t const leaves = ceil_div(piece->n, kLeaf);
        for (; first < last && first < before + leaves; ++first) {
            int64_t const begin = (first - before) * kLeaf, left = piece->n - begin;
            take(static_cast<E*>(piece->data) + begin, int(left < kLeaf ? left : kLeaf));
        }
        before += leaves;
    }
}

template <class E>
int64_t bytes_of(const ListProblem& problem) {
    int64_t elements = 0;
    for (int64_t i = 0; i < problem.count; ++i) elements += problem.pieces[i].n;
    return elements * int64_t(sizeof(E));
}

template <class Op>
double list_norm_of(const ListProblem& problem, int threads, const ParallelFor& parallel_for) {
    using E = typename Op::element;
    using A = typename Op::acc;
    auto const node = [&](int64_t first, int64_t last) {
        Counter<A, Op> nodes;
        for_each_leaf<E>(problem, first, last, [&](const E* x, int count) __attribute__((always_inline)) {
            nodes.push(RowLeaf<Op>::of(x, count, nullptr));
        });
        return nodes.total();
    };
    Cut const cut(1, problem.leaves, bytes_of<E>(problem), threads);
    if (cut.chunks == 1) return Op::finish(node(0, problem.leaves));
    Buffer<A> partial(cut.chunks);
    parallel_for(cut.chunks, 1, [&](int64_t begin, int64_t last) {
        for (int64_t c = begin; c < last; ++c) partial[c] = node(cut.first(c), cut.last(c));
    });
    Counter<A, Op> nodes;
    for (int64_t c = 0; c < cut.chunks; ++c) nodes.push(partial[c]);
    return Op::finish(nodes.total());
}

template <class E>
void scale_list(const ListProblem& problem, double coefficient, int threads, const ParallelFor& parallel_for) {
    auto const factor = FactorOf<E>(coefficient);
    if (factor == FactorOf<E>(1)) return;
    auto const body = [&](int64_t first, int64_t last) {
        for_each_leaf<E>(problem, first, last, [&](E* x, int count) __attribute__((always_inline)) {
            for (int i = 0; i < count; ++i) x[i] = scaled_by(x[i], factor);
        });
    };
    int64_t const grain = kParallelBytes / (row_leaf_elements(int(sizeof(E))) * int64_t(sizeof(E)));
    if (threads == 1 || bytes_of<E>(problem) < kParallelBytes) return body(0, problem.leaves);
    parallel_for(problem.leaves, grain, body);
}

// For elements of a list of types; false if the problem's is not among them.
template <class Elements>
bool list_norm(const ListTask& task, double& norm) {
    return visit_list_operator<Elements>(task.problem, [&](auto op) {
        norm = list_norm_of<decltype(op)>(task.problem, task.threads, task.parallel_for);
    });
}
template <class Elements>
bool list_scale(const ListTask& task, double factor) {
    return visit_first(
        Elements{}, [&](auto element) { return info_of<decltype(element)>.id == task.problem.in; },
        [&](auto element) { scale_list<decltype(element)>(task.problem, factor, task.threads, task.parallel_for); });
}
