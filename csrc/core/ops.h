// Every reduction operator as a value struct, and the one list of them.
//
// Contract of an operator:
//   element, acc         types read and accumulated
//   additive             combine(a, b) is a + b
//   order_free           true if any order of combining gives the same bits (integers)
//   identity()           combine(identity(), a) == a for every a, bit for bit, so skipping a missing element equals adding it
//   load(x)              element -> acc
//   combine(a, b)        commutative; a has the lower index
//   finish(a, n)         acc -> result of n elements; NaN comes out as the one quiet NaN, so CPU and CUDA agree
#pragma once

#include <type_traits>

#include "dtype.h"

namespace gpureduce {

enum class OpId : uint8_t { sum };
enum class Accumulate : uint8_t { native, compensated, float64 };

struct OpKey {
    OpId op;
    DType in;
    Accumulate accumulate;
};
constexpr bool operator==(OpKey a, OpKey b) { return a.op == b.op && a.in == b.in && a.accumulate == b.accumulate; }

// --- accumulators ---------------------------------------------------------------------------------------------------

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
GPUREDUCE_HD T one_nan(T x) {
    if constexpr (sizeof(T) == 4)
        return x == x ? x : bit_cast<T>(uint32_t(0x7fc00000));
    else
        return x == x ? x : bit_cast<T>(uint64_t(0x7ff8000000000000));
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

// --- operators ------------------------------------------------------------------------------------------------------

template <class A>
inline constexpr bool is_compensated = false;
template <class T>
inline constexpr bool is_compensated<Compensated<T>> = true;
template <class T>
inline constexpr bool is_compensated<Complex<T>> = is_compensated<T>;

template <class E, class A>
struct Sum {
    using element = E;
    using acc = A;
    using result = decltype(result_of(A{}));
    static constexpr bool widened = !std::is_same_v<E, double> && !std::is_same_v<E, Complex<double>> &&
                                    (std::is_same_v<A, double> || std::is_same_v<A, Complex<double>>);
    static constexpr OpKey key{OpId::sum, info_of<E>.id,
                               is_compensated<A> ? Accumulate::compensated
                               : widened         ? Accumulate::float64
                                                 : Accumulate::native};
    static constexpr bool order_free = std::is_same_v<A, int64_t>;
    static constexpr bool additive = true;  // combine is + on a plain accumulator
    static GPUREDUCE_HD A identity() { return zero_of<A>(); }
    static GPUREDUCE_HD A load(E x) { return Load<A, E>::of(x); }
    static GPUREDUCE_HD A combine(A a, A b) { return add(a, b); }
    static GPUREDUCE_HD result finish(A a, int64_t n) { return n == 0 ? result{} : result_of(a); }
};

// The one list of operators: every (operator, element, accumulator) that has kernels.
using AllOps = TypeList<Sum<double, double>, Sum<double, Compensated<double>>,                                      //
                        Sum<float, float>, Sum<float, Compensated<float>>, Sum<float, double>,                      //
                        Sum<Half, float>, Sum<Half, Compensated<float>>, Sum<Half, double>,                         //
                        Sum<BFloat16, float>, Sum<BFloat16, Compensated<float>>, Sum<BFloat16, double>,             //
                        Sum<int64_t, int64_t>, Sum<int64_t, double>, Sum<int32_t, int64_t>, Sum<int16_t, int64_t>,  //
                        Sum<int8_t, int64_t>, Sum<uint8_t, int64_t>, Sum<Bool, int64_t>,                            //
                        Sum<Complex<float>, Complex<float>>, Sum<Complex<float>, Complex<Compensated<float>>>,      //
                        Sum<Complex<float>, Complex<double>>,                                                       //
                        Sum<Complex<double>, Complex<double>>, Sum<Complex<double>, Complex<Compensated<double>>>>;

// Which operator computes sum(in, dtype=out, accumulate=requested), and the type that each element is converted to
// before it is read (equal to `in` but for narrowing conversions, which torch, too, does element by element).
struct Resolved {
    DType load_as;
    Accumulate accumulate;
};

constexpr int part_bytes(DTypeInfo type) { return type.kind == Kind::complex ? type.bytes / 2 : type.bytes; }

constexpr bool widens_exactly(DTypeInfo from, DTypeInfo to) {
    if (from.id == to.id) return true;
    if (to.kind == Kind::integer || (from.kind == Kind::complex && to.kind == Kind::real)) return false;
    return part_bytes(to) >= 4 && part_bytes(from) <= part_bytes(to);
}

inline Resolved resolve_sum(DType in, DType out, Accumulate requested) {
    DTypeInfo const from = dtype_info(in), to = dtype_info(out);
    if (from.kind == Kind::integer) {
        // The integer sum is exact and rounded once, except for int64, whose float sums need a float accumulator.
        if (to.id == DType::boolean) return {DType::boolean, Accumulate::native};
        if (from.id == DType::int64 && to.kind != Kind::integer) return {in, Accumulate::float64};
        return {in, Accumulate::native};
    }
    if (!widens_exactly(from, to)) return resolve_sum(out, out, requested);
    if (part_bytes(from) == 8) return {in, requested == Accumulate::compensated ? requested : Accumulate::native};
    if (part_bytes(to) == 8) return {in, Accumulate::float64};
    return {in, requested};
}

}  // namespace gpureduce
