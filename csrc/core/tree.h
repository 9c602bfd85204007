// The tree: which elements meet in which order. A pure function of the element's index, the element type and the family.
// Nothing outside this file can change a bit of a result. See csrc/DESIGN.md, "The tree".
//
// Row family (the reduced index moves fastest). A leaf is what one warp reads with kLoads 16-byte loads a lane: lane l and
// component c take elements  l*C + c + k*32*C,  k = 0..kLoads-1, added in that order; then components fold pairwise
// (1, 2, 4, ..), then lanes pairwise (1, 2, 4, 8, 16). Column family: a leaf is kColumnLeafRows rows added in order.
// Above the leaves of either family stands the perfect binary tree by leaf index; missing leaves are the identity. The leaf of
// a pivoted operator is two such sums, of which the second knows the first.
#pragma once

#include "ops.h"

namespace gpureduce {

inline constexpr int kTreeVersion = 1;
inline constexpr int kLanes = 32;
inline constexpr int kVectorBytes = 16;
inline constexpr int kLoads = 4;
inline constexpr int kColumnLeafRows = 8;

template <class E>
inline constexpr int components = kVectorBytes / int(sizeof(E));  // elements in one 16-byte load
GPUREDUCE_HD constexpr int components_of(int element_bytes) { return kVectorBytes / element_bytes; }
GPUREDUCE_HD constexpr int row_leaf_elements(int element_bytes) {
    return kLoads * kLanes * components_of(element_bytes);
}

enum class Family : uint8_t { row, column };

GPUREDUCE_HD constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
GPUREDUCE_HD constexpr int ceil_log2(int64_t n) {
    int bits = 0;
    while ((int64_t(1) << bits) < n) ++bits;
    return bits;
}
GPUREDUCE_HD constexpr int64_t next_power_of_two(int64_t n) { return int64_t(1) << ceil_log2(n); }

GPUREDUCE_HD constexpr int64_t leaves_of(Family family, int element_bytes, int64_t n) {
    return ceil_div(n, family == Family::row ? row_leaf_elements(element_bytes) : kColumnLeafRows);
}

// The longest chain of additions from an element to the result: |error| <= depth * eps * sum|x| (Higham 1993, (3.6)).
GPUREDUCE_HD constexpr int tree_depth(Family family, int element_bytes, int64_t n) {
    int const above = ceil_log2(leaves_of(family, element_bytes, n));
    if (family == Family::column) return int(n < kColumnLeafRows ? n : kColumnLeafRows) - 1 + above;
    int64_t const one_load = kLanes * components_of(element_bytes);
    int64_t const loads = n < kLoads * one_load ? ceil_div(n, one_load) : kLoads;
    return int(loads > 0 ? loads - 1 : 0) + ceil_log2(n < one_load ? n : one_load) + above;
}

// Folds N values pairwise by index into v[0]: 1, 2, 4, ...
template <class Op, int N>
GPUREDUCE_HD typename Op::acc fold_pairwise(typename Op::acc (&v)[N]) {
    static_assert((N & (N - 1)) == 0, "N is a power of two");
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (int step = 1; step < N; step *= 2) {
#if defined(__CUDACC__)
#pragma unroll
#endif
        for (int i = 0; i < N; i += 2 * step) v[i] = Op::combine(v[i], v[i + step]);
    }
    return v[0];
}

// The perfect binary tree over values that arrive in index order 0, 1, 2, ...: a binary counter. Values beyond 2^Depth
// must not be pushed. With compile-time levels it stays in registers; the host calls it with Depth = 48.
template <class Acc, class Combine, int Depth>
struct BinaryCounter {
    Acc level[Depth + 1];
    uint64_t count = 0;

    GPUREDUCE_HD void push(Acc value) {
#if defined(__CUDACC__)
#pragma unroll
#endif
        for (int d = 0; d <= Depth; ++d) {
            if (((count >> d) & 1) == 0) {
                level[d] = value;
                break;
            }
            value = Combine::combine(level[d], value);
        }
        ++count;
    }

    GPUREDUCE_HD Acc total(Acc identity) const {
        Acc sum = identity;
#if defined(__CUDACC__)
#pragma unroll
#endif
        for (int d = 0; d <= Depth; ++d)
            if ((count >> d) & 1) sum = Combine::combine(level[d], sum);
        return sum;
    }
};

}  // namespace gpureduce
