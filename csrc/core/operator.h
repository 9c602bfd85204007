// What an operator is: the contract that every struct of the list in ops.h keeps.
//
//   key                  its name: what it does, the element type, how it accumulates
//   element, acc         types read and accumulated; acc is a plain struct of 4-byte words or more
//   load(x)              element -> acc
//   combine(a, b)        a has the lower index. Never reordered: the tree (tree.h) fixes who meets whom
//   identity()           combine(identity(), a) == a and combine(a, identity()) == a for every a, bit for bit, so skipping a
//                        missing element equals combining with the identity
//   finish(a, ending)    acc -> the result, or Both of them, in the form that the call wants. NaN comes out as the one quiet
//                        NaN, so CPU and CUDA agree
//   usual                the type in which torch stores the (first) result if no other is asked for
//
// and, where it differs from OperatorDefaults:
//   additive             combine(a, b) is a + b of a plain accumulator, and load a conversion
//   order_free           any order of combining gives the same bits, so the tree need not be followed (integers, extremes)
//   Leaf, widen(a)       an operator of the same elements with a smaller accumulator, which does for the elements of a leaf, and
//                        the way from it
//   slow_load            load takes many steps
//   slow_finish          finish takes as long as many an element: results of several rows are made side by side
//   coverage             for which shapes and layouts it has CUDA kernels of their own; others go through more general ones
//   indexed              knows where its elements are. In place of load(x) it has
//                            Local               the best of some elements and its place from a base
//                            first(x, place)    of one element
//                            see(local, x, place)   of one more with a higher place
//                            none()              of no element; see_any(local, x, place) adds to it, in any order
//                            better(a, b)        of two, in any order
//                            at(local, base)     Local -> acc
//   pivoted              looks twice at the elements of a leaf, whose terms are relative to what it saw of all of them. In place
//                        of load(x) it has
//                            First, Terms        operators of the same elements, each a sum over the tree of a leaf; Terms has no load
//                            pivot(first, count) what the terms of a leaf of so many elements are relative to
//                            term(x, pivot)      element -> Terms::acc
//                            leaf(pivot, terms, count)   -> acc
#pragma once

#include <type_traits>

#include "dtype.h"

namespace gpureduce {

enum class OpId : uint8_t {
    sum,
    nansum,
    squares,     // sum of |x|^2
    magnitudes,  // sum of |x|
    product,
    nonzero,   // how many elements are not zero
    extremes,  // the least and the greatest
    extreme_magnitudes,
    argmin,
    argmax,
    moments,      // mean, and sum of squared distances from it
    exponentials  // maximum m, and sum of exp(x - m)
};
enum class Accumulate : uint8_t { native, compensated, float64 };

struct OpKey {
    OpId op;
    DType in;
    Accumulate accumulate;
};
constexpr bool operator==(OpKey a, OpKey b) { return a.op == b.op && a.in == b.in && a.accumulate == b.accumulate; }

// Which result a call wants of its accumulators.
enum class Form : uint8_t {
    total,  // what was accumulated
    mean,   // divided by the number of elements
    root,   // its square root
    any,
    all,  // nonzero: whether one is, whether each is
    least,
    greatest,
    both,  // two results: (least, greatest), (value, index), (maximum, sum)
    index,
    variance,
    deviation,  // and the mean as the second result, if there is room for it
    logarithm,
};

// How an accumulator becomes a result.
struct Ending {
    Form form = Form::total;
    int64_t n = 0;         // elements reduced
    double parameter = 0;  // moments: the correction
};

template <class A, class B>
struct Both {
    A first;
    B second;
};
template <class R>
inline constexpr bool is_both = false;
template <class A, class B>
inline constexpr bool is_both<Both<A, B>> = true;

// What plan.h's is_built makes of it: build times allow few operators every kernel.
enum class Coverage : uint8_t { basic, common, every };

template <class E>
struct OperatorDefaults {
    static constexpr bool additive = false, order_free = false, indexed = false, pivoted = false, greatest = false,
                          slow_load = false, slow_finish = false;
    static constexpr Coverage coverage = info_of<E>.kind == Kind::real ? Coverage::common : Coverage::basic;
};

}  // namespace gpureduce
