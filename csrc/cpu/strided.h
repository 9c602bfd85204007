// Elements at equal distances in memory, copied together.
#pragma once

#include "transpose.h"
#include "walk.h"

template <int Bytes>

GPUREDUCE_HD typename LineOf<Bytes, 16>::type even_words(typename LineOf<Bytes, 16>::type a,
                                                         typename LineOf<Bytes, 16>::type b) {
    if constexpr (Bytes == 1)
        return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    else if constexpr (Bytes == 2)
        return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    else if constexpr (Bytes == 4)
        return __builtin_shufflevector(a, b, 0, 2, 4, 6);
    else
        return __builtin_shufflevector(a, b, 0, 2);
}

// to[i] = from[2 * i] for as many i < count as whole vectors hold; returns how many. What lies between the elements is read, what
// is behind the last one is not.
template <class E>
int copy_every_second(const E* from, int count, E* to) {
    int done = 0;
    if constexpr (sizeof(E) <= 8) {
        constexpr int kBytes = int(sizeof(E)), kWords = 16 / kBytes;
        for (; done + kWords < count; done += kWords) {
            typename LineOf<kBytes, 16>::type pair[2];
            memcpy(&pair[0], from + 2 * done, 16);
            memcpy(&pair[1], from + 2 * done + kWords, 16);
            auto const even = even_words<kBytes>(pair[0], pair[1]);
            memcpy(to + done, &even, 16);
        }
    }
    return done;
}

// to[i] = from[i * stride].
template <class E>
void copy_strided(const E* from, int64_t stride, int count, E* to) {
    int i = stride == 2 ? copy_every_second(from, count, to) : 0;
#pragma GCC unroll 4
    for (; i < count; ++i) to[i] = load_element(from + i * stride);
}
