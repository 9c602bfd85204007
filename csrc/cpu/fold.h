// Pairwise folding. Vectors hold the values in order of their index; folding adds neighbours: two vectors become one.
//
// Neighbours cost two shuffles and an addition for each vector that results. Where vectors have two 16-byte halves the
// shuffles stay within the halves, which is one instruction instead of two: the values of a vector are then in another
// order, but neighbours stay neighbours, and the step across the halves puts them back in order. So the steps come in
// cycles of log2(values in a vector), and after each cycle the values are in order.
#pragma once

template <class T>

struct VectorOf;
template <> struct VectorOf<float> {
    using type = float __attribute__((vector_size(kSimdBytes)));
};
template <> struct VectorOf<double> {
    using type = double __attribute__((vector_size(kSimdBytes)));
};
template <> struct VectorOf<uint32_t> {
    using type = uint32_t __attribute__((vector_size(kSimdBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr int kValues = kSimdBytes / int(sizeof(T));

template <class T>

GPUREDUCE_HD Vector<T> load_vector(const void* address) {
    Vector<T> values;
    memcpy(&values, address, sizeof values);
    return values;
}

template <class T>
GPUREDUCE_HD Vector<T> add_neighbours_in_halves(Vector<T> a, Vector<T> b) {
    if constexpr (kValues<T> == 8)
        return __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14) +
               __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
    else if constexpr (sizeof(T) == 8 && kValues<T> == 4)
        return __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
    else if constexpr (kValues<T> == 4)
        return __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
    else
        return __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3);
}

template <class T>

GPUREDUCE_HD Vector<T> add_halves(Vector<T> a, Vector<T> b) {
    if constexpr (kValues<T> == 8)
        return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
               __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    else
        return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
}

// Step number `Step`, counted from values in order.
template <class T, int Step>
GPUREDUCE_HD Vector<T> fold_step(Vector<T> a, Vector<T> b) {
    constexpr int kCycle = ceil_log2(kValues<T>), kWithinHalves = ceil_log2(16 / int(sizeof(T)));
    if constexpr (Step % kCycle < kWithinHalves)
        return add_neighbours_in_halves<T>(a, b);
    else
        return add_halves<T>(a, b);
}

// The index of the value at a position after so many steps: they are in order after whole cycles only.
template <class T>
constexpr int index_after(int steps, int position) {
    constexpr int kOfEight[2][8] = {{0, 1, 4, 5, 2, 3, 6, 7}, {0, 2, 4, 6, 1, 3, 5, 7}};
    constexpr int kOfFour[4] = {0, 2, 1, 3};
    int const in_cycle = steps % ceil_log2(kValues<T>);
    if (kSimdBytes == 16 || in_cycle == 0) return position;
    return kValues<T> == 8 ? kOfEight[in_cycle - 1][position] : kOfFour[position];
}

// Folds the Count vectors vector(first), vector(first + 1), .. into one; `Step` steps came before. Depth first, so that
// few vectors are alive at a time.
template <class T, int Count, int Step, class Source>
GPUREDUCE_HD Vector<T> fold_vectors(const Source& vector, int first) {
    if constexpr (Count == 1) {
        return vector(first);
    } else {
        Vector<T> const a = fold_vectors<T, Count / 2, Step>(vector, first);
        Vector<T> const b = fold_vectors<T, Count / 2, Step>(vector, first + Count / 2);
        return fold_step<T, Step + ceil_log2(Count) - 1>(a, b);
    }
}

// Folds the values of one vector into one; `Step` steps came before.
template <class T, int Step, int Values = kValues<T>>
GPUREDUCE_HD T fold_values(Vector<T> v) {
    if constexpr (Values == 1)
        return v[0];
    else
        return fold_values<T, Step + 1, Values / 2>(fold_step<T, Step>(v, v));
}
