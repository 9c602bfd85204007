// Results of several outputs -> output elements.
#pragma once

#include "vectors.h"

// Result i.
template <class Op>
void store_result(const Results& to, int64_t i, typename Op::acc total) {
    auto const result = Op::finish(total, to.ending);
    if (!is_both<typename Op::result> || to.out != nullptr) store(to.out, i, to.type, first_of(result));
    if constexpr (is_both<typename Op::result>)
        if (to.second != nullptr) store(to.second, i, to.second_type, result.second);
}

// Stores results first, first + 1, .. with a loop of its own for the usual types: the result's and the element's.
template <class Op>
void store_results(const Results& to, int64_t first, int count, const typename Op::acc* total) {
    if constexpr (is_both<typename Op::result>) {
        for (int i = 0; i < count; ++i) store_result<Op>(to, first + i, total[i]);
    } else {
        Ending const ending = to.ending;
        void* const out = to.out;
        auto const store_as = [=](DType type) __attribute__((always_inline)) {
            for (int i = 0; i < count; ++i) store(out, first + i, type, Op::finish(total[i], ending));
        };
        constexpr DType kResult = info_of<typename Op::result>.id, kUsual = info_of<typename Op::usual>.id;
        if (to.type == kResult)
            store_as(kResult);
        else if (to.type == kUsual)
            store_as(kUsual);
        else
            store_as(to.type);
    }
}
