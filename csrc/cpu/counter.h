// The binary counter of core/tree.h for the host: it looks at the levels in use only.
#pragma once

#include "vectors.h"

template <class T>

struct Plus {
    static T combine(T a, T b) { return a + b; }
};

template <class T, class Combine, int Levels = 48>

struct Counter {
    T level[Levels] = {};
    uint64_t count = 0;

    GPUREDUCE_HD void push(T value) {
        int const below = __builtin_ctzll(~count);  // full levels, which the value completes
        for (int d = 0; d < below; ++d) value = Combine::combine(level[d], value);
        level[below] = value;
        ++count;
    }
    // Of at least one value.
    GPUREDUCE_HD T total() const {
        int d = __builtin_ctzll(count);
        T sum = level[d];
        while (count >> ++d)
            if ((count >> d) & 1) sum = Combine::combine(level[d], sum);
        return sum;
    }
};
