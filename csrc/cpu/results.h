// Results of several outputs -> output elements.
#pragma once

#include "vectors.h"

// Stores outputs first, first + 1, .. with a loop of its own for the usual types: the accumulator's and the element's.
template <class Op>
void store_outputs(void* out, int64_t first, int count, const Problem& p, const typename Op::acc* total) {
    int64_t const n = p.n;
    auto const store_as = [=](DType type) __attribute__((always_inline)) {
        for (int i = 0; i < count; ++i) store(out, first + i, type, Op::finish(total[i], n));
    };
    constexpr DType kResult = info_of<typename Op::result>.id, kElement = info_of<typename Op::element>.id;
    if (p.out == kResult)
        store_as(kResult);
    else if (p.out == kElement)
        store_as(kElement);
    else
        store_as(p.out);
}
