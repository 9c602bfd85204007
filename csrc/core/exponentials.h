// log of a sum of exponentials: the maximum, and the sum of exp(x - maximum).
//
// The terms of a leaf are relative to its maximum; where leaves meet, the sum of the one with the lower maximum is scaled.
#pragma once

#include "elementary.h"
#include "extreme.h"

namespace gpureduce {

template <class A>
struct ScaledSum {
    A maximum, sum;
};

// Forms: logarithm, both (maximum, sum). All -infinity, or nothing: -infinity and a sum of 0. One +infinity: +infinity and a
// sum of NaN.
template <class E>
struct Exponentials : OperatorDefaults<E> {
    using A = std::conditional_t<std::is_same_v<E, double>, double, float>;
    using element = E;
    using acc = ScaledSum<A>;
    using result = Both<A, A>;
    using usual = E;
    static constexpr OpKey key{OpId::exponentials, info_of<E>.id, Accumulate::native};
    static constexpr bool pivoted = true, slow_finish = true;
    static constexpr A infinity = A(__builtin_inf());

    struct First : OperatorDefaults<E> {
        using element = E;
        using acc = A;
        static constexpr bool greatest = true;  // the order is free
        static GPUREDUCE_HD A identity() { return -infinity; }
        static GPUREDUCE_HD A load(E x) { return Load<A, E>::of(x); }
        static GPUREDUCE_HD A combine(A a, A b) { return greater(a, b); }
    };
    struct Terms : OperatorDefaults<E> {
        static constexpr bool slow_load = true;
        using element = E;
        using acc = A;
        static GPUREDUCE_HD A identity() { return 0; }  // exact, since no term is -0.0
        static GPUREDUCE_HD A combine(A a, A b) { return a + b; }
    };
    static GPUREDUCE_HD A pivot(A maximum, int) { return maximum; }
    static GPUREDUCE_HD A term(E x, A maximum) {
        A const distance = Load<A, E>::of(x) - maximum;
        if constexpr (sizeof(E) == 2)
            return brief_decay(distance);
        else
            return decay(distance);
    }
    static GPUREDUCE_HD acc leaf(A maximum, A sum, int) { return {maximum, sum}; }

    static GPUREDUCE_HD acc identity() { return {-infinity, 0}; }
    static GPUREDUCE_HD acc combine(acc a, acc b) {
        bool const first = a.maximum >= b.maximum;  // with NaN or only infinities, the sums mean nothing
        A const distance = first ? b.maximum - a.maximum : a.maximum - b.maximum;
        A const lower = (first ? b.sum : a.sum) * decay(distance);
        return {greater(a.maximum, b.maximum), (first ? a.sum : b.sum) + lower};
    }
    static GPUREDUCE_HD result finish(acc a, const Ending& ending) {
        if (a.maximum != a.maximum) return {quiet_nan<A>(), quiet_nan<A>()};
        A const sum = a.maximum == infinity ? quiet_nan<A>() : a.maximum == -infinity ? A(0) : a.sum;
        if (ending.form == Form::both || a.maximum - a.maximum != 0) return {a.maximum + 0, sum};  // one zero, +0.0
        return {A(double(a.maximum) + logarithm(double(sum))), sum};
    }
};

}  // namespace gpureduce
