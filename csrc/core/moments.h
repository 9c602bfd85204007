// Mean and sum of squared distances from it.
//
// A leaf is summed twice, for its mean and for the distances from it, with the correction for the mean's own rounding error
// (Chan, Golub and LeVeque 1983); leaves merge as in Chan et al. 1979. Equal elements have a variance of exactly zero.
#pragma once

#include "sum.h"

namespace gpureduce {

template <class A>
struct Moment {
    A n;           // how many: exact where it is a power of two times a leaf, and only ever a weight
    A mean, rest;  // unevaluated sum, or the variance of leaves far from zero would suffer from a mean of so few bits
    A squares;
};
template <class A>
struct Distances {
    A sum, squares;
};

template <class A>
GPUREDUCE_HD bool is_finite(A x) {
    return x - x == A(0);
}

// Forms: variance, deviation, and the mean as the second result; parameter: the correction.
template <class E>
struct Moments : OperatorDefaults<E> {
    using A = std::conditional_t<std::is_same_v<E, double>, double, float>;
    using element = E;
    using acc = Moment<A>;
    using result = Both<A, A>;
    using usual = E;
    static constexpr OpKey key{OpId::moments, info_of<E>.id, Accumulate::native};
    static constexpr bool pivoted = true;
    static constexpr A scale = A(1024);  // at least a leaf's elements: their sum divided by it cannot overflow

    struct First : OperatorDefaults<E> {
        using element = E;
        using acc = A;
        static GPUREDUCE_HD A identity() { return zero_of<A>(); }
        static GPUREDUCE_HD A load(E x) { return Load<A, E>::of(x) * (A(1) / scale); }
        static GPUREDUCE_HD A combine(A a, A b) { return a + b; }
    };
    struct Terms : OperatorDefaults<E> {
        using element = E;
        using acc = Distances<A>;
        static GPUREDUCE_HD acc identity() { return {zero_of<A>(), zero_of<A>()}; }
        static GPUREDUCE_HD acc combine(acc a, acc b) { return {a.sum + b.sum, a.squares + b.squares}; }
    };
    static GPUREDUCE_HD A pivot(A first, int count) { return first * (scale / A(count)); }
    static GPUREDUCE_HD Distances<A> term(E x, A mean) {
        A const distance = Load<A, E>::of(x) - mean;
        return {distance, distance * distance};
    }
    static GPUREDUCE_HD acc leaf(A pivot, Distances<A> terms, int count) {
        if (count == 0) return identity();
        A const off = terms.sum / A(count), squares = terms.squares - terms.sum * off;
        return {A(count), pivot, is_finite(off) ? off : A(0), squares < 0 ? A(0) : squares};
    }

    static GPUREDUCE_HD acc identity() { return {0, 0, 0, 0}; }
    static GPUREDUCE_HD acc combine(acc a, acc b) {
        A const n = a.n + b.n, distance = (b.mean - a.mean) + (b.rest - a.rest);
        A part = A(0.5);  // what b is of both
        if (a.n != b.n && a.n != 0 && b.n != 0) part = b.n / n;
        auto const mean = add(Compensated<A>{a.mean, a.rest}, Compensated<A>{distance * part, A(0)});
        acc both{n, mean.value, mean.error, (a.squares + b.squares) + distance * distance * (a.n * part)};
        if (!is_finite(distance)) {
            bool const overflows = is_finite(a.mean) && is_finite(b.mean);
            both.mean = overflows ? a.mean * (A(1) - part) + b.mean * part : a.mean + b.mean;
            both.rest = 0;
        }
        if (a.n == 0) both = b;
        if (b.n == 0) both = a;
        return both;
    }
    static GPUREDUCE_HD result finish(acc a, const Ending& ending) {
        if (ending.n == 0) return {quiet_nan<A>(), quiet_nan<A>()};
        double const left = double(ending.n) - ending.parameter;
        A variance = a.squares / A(left > 0 ? left : 0);
        if (!is_finite(a.mean)) variance = quiet_nan<A>();
        return {one_nan(ending.form == Form::deviation ? square_root(variance) : variance), one_nan(a.mean + a.rest)};
    }
};

}  // namespace gpureduce
