// Products.
#pragma once

#include "accumulate.h"
#include "operator.h"

namespace gpureduce {

GPUREDUCE_HD float multiply(float a, float b) { return a * b; }
GPUREDUCE_HD double multiply(double a, double b) { return a * b; }
// Wraps on overflow, as torch does; through unsigned, so that it is defined.
GPUREDUCE_HD int64_t multiply(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

// Exactly 1 + 0i, the identity of a product. By the formula it would be none: 0 times infinity is NaN, and -0.0 + 0.0 is +0.0.
template <class T>
GPUREDUCE_HD bool is_one(Complex<T> a) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    return a.re == T(1) && bit_cast<Bits>(a.im) == 0;
}
template <class T>
GPUREDUCE_HD Complex<T> multiply(Complex<T> a, Complex<T> b) {
    Complex<T> product{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    bool const first = is_one(a), second = is_one(b);
    T const re = first ? b.re : a.re, im = first ? b.im : a.im;
    product.re = first || second ? re : product.re;
    product.im = first || second ? im : product.im;
    return product;
}

template <class A>
GPUREDUCE_HD A one_of() {
    return A(1);
}
template <> GPUREDUCE_HD Complex<float> one_of<Complex<float>>() { return {1.0f, 0.0f}; }
template <> GPUREDUCE_HD Complex<double> one_of<Complex<double>>() { return {1.0, 0.0}; }

// Forms: total.
template <class E, class A>
struct Product : OperatorDefaults<E> {
    using element = E;
    using acc = A;
    using result = A;
    using usual = std::conditional_t<info_of<E>.kind == Kind::integer, int64_t, E>;
    static constexpr OpKey key{OpId::product, info_of<E>.id, Accumulate::native};
    static GPUREDUCE_HD acc identity() { return one_of<A>(); }
    static GPUREDUCE_HD acc load(E x) { return Load<A, E>::of(x); }
    static GPUREDUCE_HD acc combine(acc a, acc b) { return multiply(a, b); }
    static GPUREDUCE_HD result finish(acc a, const Ending&) { return result_of(a); }
};

}  // namespace gpureduce
