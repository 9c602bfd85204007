// Sums and means.
#pragma once

#include "accumulate.h"
#include "operator.h"

namespace gpureduce {

// x / n, rounded once where n has few enough bits.
GPUREDUCE_HD float divided(float x, int64_t n) {
    constexpr int64_t kExact = 1 << 24;
    return one_nan(n <= kExact ? x / float(n) : float(double(x) / double(n)));
}
GPUREDUCE_HD double divided(double x, int64_t n) { return one_nan(x / double(n)); }
GPUREDUCE_HD int64_t divided(int64_t x, int64_t) { return x; }  // there is no mean of integers
template <class T>
GPUREDUCE_HD Complex<T> divided(Complex<T> x, int64_t n) {
    return {divided(x.re, n), divided(x.im, n)};
}

// Whether A is wider than E needs: double for a type of less than 8 bytes.
template <class E, class A>
inline constexpr bool is_widened = !std::is_same_v<E, double> && !std::is_same_v<E, Complex<double>> &&
                                   (std::is_same_v<A, double> || std::is_same_v<A, Complex<double>>);
template <class E, class A>
inline constexpr Accumulate accumulate_mode = is_compensated<A>  ? Accumulate::compensated
                                              : is_widened<E, A> ? Accumulate::float64
                                                                 : Accumulate::native;

// Forms: total, mean; of bool also any, all.
template <class E, class A>
struct Sum : OperatorDefaults<E> {
    using element = E;
    using acc = A;
    using result = decltype(result_of(A{}));
    using usual = std::conditional_t<info_of<E>.kind == Kind::integer, int64_t, E>;
    static constexpr OpKey key{OpId::sum, info_of<E>.id, accumulate_mode<E, A>};
    static constexpr bool additive = true, order_free = std::is_same_v<A, int64_t>;
    static constexpr Coverage coverage =
        info_of<E>.kind == Kind::complex && key.accumulate != Accumulate::native ? Coverage::common : Coverage::every;
    static GPUREDUCE_HD A identity() { return zero_of<A>(); }
    static GPUREDUCE_HD A load(E x) { return Load<A, E>::of(x); }
    static GPUREDUCE_HD A combine(A a, A b) { return add(a, b); }
    static GPUREDUCE_HD result finish(A a, const Ending& ending) {
        if (ending.form == Form::mean) return divided(result_of(a), ending.n);
        if constexpr (std::is_same_v<E, Bool>) {  // and, of bytes, `nonzero`
            if (ending.form == Form::any) return a != 0;
            if (ending.form == Form::all) return a == ending.n;
        }
        return ending.n == 0 ? result{} : result_of(a);
    }
};

}  // namespace gpureduce
