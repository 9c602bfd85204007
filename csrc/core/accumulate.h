// Accumulators that add: their zero, their sum, and the way in from elements and out to results.
#pragma once

#include <type_traits>

#include "dtype.h"

namespace gpureduce {

// -0.0 is the identity of IEEE addition: x + -0.0 is x for every x, also for x = -0.0; +0.0 is not.
template <class A>
GPUREDUCE_HD A zero_of();
template <> GPUREDUCE_HD float zero_of<float>() { return -0.0f; }
template <> GPUREDUCE_HD double zero_of<double>() { return -0.0; }
template <> GPUREDUCE_HD int64_t zero_of<int64_t>() { return 0; }
template <> GPUREDUCE_HD Compensated<float> zero_of<Compensated<float>>() { return {-0.0f, 0.0f}; }
template <> GPUREDUCE_HD Compensated<double> zero_of<Compensated<double>>() { return {-0.0, 0.0}; }
template <> GPUREDUCE_HD Complex<float> zero_of<Complex<float>>() { return {-0.0f, -0.0f}; }
template <> GPUREDUCE_HD Complex<double> zero_of<Complex<double>>() { return {-0.0, -0.0}; }
template <> GPUREDUCE_HD Complex<Compensated<float>> zero_of<Complex<Compensated<float>>>() {
    return {zero_of<Compensated<float>>(), zero_of<Compensated<float>>()};
}
template <> GPUREDUCE_HD Complex<Compensated<double>> zero_of<Complex<Compensated<double>>>() {
    return {zero_of<Compensated<double>>(), zero_of<Compensated<double>>()};
}

GPUREDUCE_HD float add(float a, float b) { return a + b; }
GPUREDUCE_HD double add(double a, double b) { return a + b; }
// Wraps on overflow, as torch does; through unsigned, so that it is defined.
GPUREDUCE_HD int64_t add(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
// Two-sum (Knuth; Moller 1965): value + error is exactly a.value + b.value, then the errors are added.
template <class T>
GPUREDUCE_HD Compensated<T> add(Compensated<T> a, Compensated<T> b) {
    T const value = a.value + b.value;
    T const b_part = value - a.value;
    T const error = (a.value - (value - b_part)) + (b.value - b_part);
    return {value, error + (a.error + b.error)};
}
template <class T>
GPUREDUCE_HD Complex<T> add(Complex<T> a, Complex<T> b) {
    return {add(a.re, b.re), add(a.im, b.im)};
}

// Element -> accumulator. Every conversion here is exact, but for int64 -> double.
template <class A, class E>
struct Load {
    static GPUREDUCE_HD A of(E x) { return A(x); }
};
template <class A> struct Load<A, Half> {
    static GPUREDUCE_HD A of(Half x) { return A(to_float(x)); }
};
template <class A> struct Load<A, BFloat16> {
    static GPUREDUCE_HD A of(BFloat16 x) { return A(to_float(x)); }
};
template <class A> struct Load<A, Bool> {
    static GPUREDUCE_HD A of(Bool x) { return A(x.bits != 0); }
};
template <class T, class E> struct Load<Compensated<T>, E> {
    static GPUREDUCE_HD Compensated<T> of(E x) { return {Load<T, E>::of(x), T(0)}; }
};
template <class T> struct Load<Compensated<T>, Half> {
    static GPUREDUCE_HD Compensated<T> of(Half x) { return {Load<T, Half>::of(x), T(0)}; }
};
template <class T> struct Load<Compensated<T>, BFloat16> {
    static GPUREDUCE_HD Compensated<T> of(BFloat16 x) { return {Load<T, BFloat16>::of(x), T(0)}; }
};
template <class T, class E> struct Load<Complex<T>, Complex<E>> {
    static GPUREDUCE_HD Complex<T> of(Complex<E> x) { return {Load<T, E>::of(x.re), Load<T, E>::of(x.im)}; }
};

// Accumulator -> result.
template <class T>
GPUREDUCE_HD T quiet_nan() {
    if constexpr (sizeof(T) == 4)
        return bit_cast<T>(uint32_t(0x7fc00000));
    else
        return bit_cast<T>(uint64_t(0x7ff8000000000000));
}
template <class T>
GPUREDUCE_HD T one_nan(T x) {
    return x == x ? x : quiet_nan<T>();
}
// Correctly rounded on every device.
GPUREDUCE_HD float square_root(float x) {
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
}
GPUREDUCE_HD double square_root(double x) {
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
}

GPUREDUCE_HD float result_of(float a) { return one_nan(a); }
GPUREDUCE_HD double result_of(double a) { return one_nan(a); }
GPUREDUCE_HD int64_t result_of(int64_t a) { return a; }
// Once the value is infinite the error is NaN and means nothing; a zero error must not turn -0.0 into +0.0.
template <class T>
GPUREDUCE_HD T result_of(Compensated<T> a) {
    bool const useful = a.error == a.error && a.error != T(0) && a.value - a.value == T(0);
    return one_nan(useful ? a.value + a.error : a.value);
}
template <class T>
GPUREDUCE_HD auto result_of(Complex<T> a) -> Complex<decltype(result_of(a.re))> {
    return {result_of(a.re), result_of(a.im)};
}

template <class A>
inline constexpr bool is_compensated = false;
template <class T>
inline constexpr bool is_compensated<Compensated<T>> = true;
template <class T>
inline constexpr bool is_compensated<Complex<T>> = is_compensated<T>;

}  // namespace gpureduce
