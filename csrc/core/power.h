// Sums without NaN, of squares and of magnitudes.
#pragma once

#include "extreme.h"
#include "sum.h"

namespace gpureduce {

// A count of 64 bits in two words, so that beside a float there is no gap and accumulators can travel word by word.
struct Count {
    uint32_t low, high;
    GPUREDUCE_HD int64_t value() const { return int64_t(uint64_t(high) << 32 | low); }
    static GPUREDUCE_HD Count of(int64_t n) { return {uint32_t(n), uint32_t(uint64_t(n) >> 32)}; }
};

template <class A>
struct Counted {
    A sum;
    Count skipped;
};

// Forms: total, mean, of the elements that are not NaN; the others count as the identity.
template <class E, class A>
struct NanSum : OperatorDefaults<E> {
    using element = E;
    using acc = Counted<A>;
    using result = decltype(result_of(A{}));
    using usual = E;
    static constexpr OpKey key{OpId::nansum, info_of<E>.id, accumulate_mode<E, A>};
    static constexpr Coverage coverage = key.accumulate == Accumulate::native ? Coverage::common : Coverage::basic;

    struct Near : OperatorDefaults<E> {
        using element = E;
        struct acc {
            A sum;
            uint32_t skipped;
        };
        static GPUREDUCE_HD acc identity() { return {zero_of<A>(), 0}; }
        static GPUREDUCE_HD acc load(E x) {
            using Value = std::conditional_t<std::is_same_v<E, double>, double,
                                             float>;  // to which every element converts exactly
            Value const value = Load<Value, E>::of(x);
            bool const nan = value != value;
            return {Load<A, Value>::of(nan ? Value(-0.0) : value), uint32_t(nan)};
        }
        static GPUREDUCE_HD acc combine(acc a, acc b) { return {add(a.sum, b.sum), a.skipped + b.skipped}; }
    };
    using Leaf = Near;
    static GPUREDUCE_HD acc widen(typename Near::acc a) { return {a.sum, {a.skipped, 0}}; }

    static GPUREDUCE_HD acc identity() { return widen(Near::identity()); }
    static GPUREDUCE_HD acc load(E x) { return widen(Near::load(x)); }
    static GPUREDUCE_HD acc combine(acc a, acc b) {
        return {add(a.sum, b.sum), Count::of(a.skipped.value() + b.skipped.value())};
    }
    static GPUREDUCE_HD result finish(acc a, const Ending& ending) {
        int64_t const counted = ending.n - a.skipped.value();
        if (ending.form == Form::mean) return divided(result_of(a.sum), counted);
        return counted == 0 ? result{} : result_of(a.sum);
    }
};

// x^2 as an accumulator.
template <class A>
struct Square {
    template <class E>
    static GPUREDUCE_HD A of(E x) {
        A const value = Load<A, E>::of(x);
        return value * value;
    }
};
template <>
struct Square<int64_t> {
    template <class E>
    static GPUREDUCE_HD int64_t of(E x) {
        uint64_t const value = uint64_t(Load<int64_t, E>::of(x));
        return int64_t(value * value);  // wraps
    }
};
// The square and its rounding error, exact if neither overflows nor underflows (Dekker 1971, with Veltkamp's split).
template <class T>
struct Square<Compensated<T>> {
    static constexpr T split = T(sizeof(T) == 4 ? 4097 : 134217729);  // 2^ceil(bits / 2) + 1
    template <class E>
    static GPUREDUCE_HD Compensated<T> of(E x) {
        T const value = Load<T, E>::of(x), square = value * value;
        if constexpr (sizeof(E) == 2) {
            return {square, T(0)};  // at most 22 bits
        } else {
            T const scaled = split * value;
            T const high = scaled - (scaled - value), low = value - high, product = high * low;
            return {square, ((high * high - square) + (product + product)) + low * low};
        }
    }
};

// Sums of squares of doubles that can neither overflow nor underflow: each is scaled by its range (Blue 1978; the constants
// are those of LAPACK's dnrm2). Below 2^52 elements, no sum leaves its range.
struct Scaled {
    double low, middle, high;  // of x * 2^537, of x, of x * 2^-538
};
inline constexpr double kLowBound = 0x1p-511, kHighBound = 0x1p486, kLowScale = 0x1p537, kHighScale = 0x1p-538;

template <>
struct Square<Scaled> {
    static GPUREDUCE_HD Scaled of(double x) {
        double const magnitude = magnitude_of(x);
        bool const high = magnitude > kHighBound, low = magnitude < kLowBound;
        double const scaled = x * (high ? kHighScale : low ? kLowScale : 1.0), square = scaled * scaled;
        return {low ? square : 0.0, high || low ? 0.0 : square, high ? square : 0.0};  // NaN is in the middle
    }
};
GPUREDUCE_HD Scaled add(Scaled a, Scaled b) { return {a.low + b.low, a.middle + b.middle, a.high + b.high}; }

// |x|^2
template <class A, class E>
GPUREDUCE_HD A square_of(E x) {
    if constexpr (info_of<E>.kind == Kind::complex)
        return add(Square<A>::of(x.re), Square<A>::of(x.im));
    else
        return Square<A>::of(x);
}

// The root of what a scaled sum stands for, and the sum itself.
GPUREDUCE_HD double root_of(Scaled a) {
    if (a.middle != a.middle) return quiet_nan<double>();
    if (a.high > 0) return square_root(a.high + a.middle * kHighScale * kHighScale) * 0x1p538;
    if (a.low == 0 || a.middle > 1) return square_root(a.middle);
    if (a.middle == 0) return square_root(a.low) * 0x1p-537;
    return square_root(a.middle * 0x1p200 + a.low * 0x1p-874) * 0x1p-100;
}
GPUREDUCE_HD double result_of(Scaled a) {
    return one_nan((a.low * 0x1p-537) * 0x1p-537 + a.middle + (a.high * 0x1p538) * 0x1p538);
}
GPUREDUCE_HD float root_of(float a) { return one_nan(square_root(a)); }
GPUREDUCE_HD double root_of(double a) { return one_nan(square_root(a)); }
GPUREDUCE_HD int64_t root_of(int64_t a) { return a; }  // there is none of integers
template <class T>
GPUREDUCE_HD T root_of(Compensated<T> a) {
    return one_nan(square_root(result_of(a)));
}

template <class T>
struct PartOf {
    using type = T;
};
template <class T> struct PartOf<Complex<T>> {
    using type = T;
};

// Forms: total, root (the 2-norm), of |x|^2. Sums begin at +0.0, which is exact, since no square is -0.0. With
// Accumulate::float64 nothing overflows or underflows on the way to the root, whatever the type.
template <class E, class A>
struct Squares : OperatorDefaults<E> {
    using element = E;
    using acc = A;
    using result = decltype(result_of(A{}));
    using usual = std::conditional_t<info_of<E>.kind == Kind::integer, int64_t, typename PartOf<E>::type>;
    static constexpr bool scaled = std::is_same_v<A, Scaled>;
    static constexpr OpKey key{OpId::squares, info_of<E>.id, scaled ? Accumulate::float64 : accumulate_mode<E, A>};
    static constexpr Coverage coverage =
        info_of<E>.kind == Kind::real && key.accumulate != Accumulate::compensated ? Coverage::common : Coverage::basic;
    static GPUREDUCE_HD acc identity() { return A{}; }
    static GPUREDUCE_HD acc load(E x) { return square_of<A>(x); }
    static GPUREDUCE_HD acc combine(acc a, acc b) { return add(a, b); }
    static GPUREDUCE_HD result finish(acc a, const Ending& ending) {
        return ending.form == Form::root ? root_of(a) : result_of(a);
    }
};

// Forms: total, of |x|.
template <class E>
struct Magnitudes : OperatorDefaults<E> {
    using element = E;
    using acc = decltype(magnitude_of(E{}));
    using result = acc;
    using usual = typename PartOf<E>::type;
    static constexpr OpKey key{OpId::magnitudes, info_of<E>.id, Accumulate::native};
    static GPUREDUCE_HD acc identity() { return 0; }  // exact, since no magnitude is -0.0
    static GPUREDUCE_HD acc load(E x) { return magnitude_of(x); }
    static GPUREDUCE_HD acc combine(acc a, acc b) { return a + b; }
    static GPUREDUCE_HD result finish(acc a, const Ending&) { return result_of(a); }
};

}  // namespace gpureduce
