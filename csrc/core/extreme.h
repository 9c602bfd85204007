// The least and the greatest element, and where they are.
//
// Elements are compared as integers that are ordered as they are: the bits of a float, of which those behind the sign are
// flipped if it is negative. So +0.0 is above -0.0, and NaNs are beyond the infinities, below them or above. As both ends are
// kept, a NaN among the elements shows in one of them, and no element has to be looked at for it.
#pragma once

#include "accumulate.h"
#include "operator.h"

namespace gpureduce {

// The integer that stands for an element, the lowest and the highest of them, and the way back.
template <class E>
struct Order {  // integers
    using Rank = std::conditional_t<sizeof(E) == 8, int64_t, int32_t>;
    using Value = int64_t;
    static constexpr bool has_nan = false;
    static GPUREDUCE_HD Rank rank(E x) { return Rank(Load<int64_t, E>::of(x)); }
    static GPUREDUCE_HD Value value(Rank rank) { return rank; }
};
template <class F, class Bits>
struct FloatOrder {
    using Rank = Bits;
    using Value = F;
    static constexpr bool has_nan = true;
    static constexpr Rank magnitude = Rank(~(Rank(1) << (8 * sizeof(Rank) - 1)));  // all bits but the sign
    static constexpr Rank infinity = Rank(sizeof(F) == 4 ? 0x7f800000ll : 0x7ff0000000000000ll);
    static GPUREDUCE_HD Rank flip(Rank bits) { return bits ^ ((bits >> (8 * sizeof(Rank) - 1)) & magnitude); }
    static GPUREDUCE_HD F value(Rank rank) { return bit_cast<F>(flip(rank)); }
    static GPUREDUCE_HD bool is_nan(Rank rank) { return rank > infinity || rank < ~infinity; }
};
template <> struct Order<float> : FloatOrder<float, int32_t> {
    static GPUREDUCE_HD Rank rank(float x) { return flip(bit_cast<Rank>(x)); }
};
template <> struct Order<double> : FloatOrder<double, int64_t> {
    static GPUREDUCE_HD Rank rank(double x) { return flip(bit_cast<Rank>(x)); }
};
template <> struct Order<BFloat16> : FloatOrder<float, int32_t> {
    static GPUREDUCE_HD Rank rank(BFloat16 x) { return flip(bit_cast<Rank>(to_float(x))); }
};
template <> struct Order<Half> : FloatOrder<float, int32_t> {
    static GPUREDUCE_HD Rank rank(Half x) { return flip(bit_cast<Rank>(to_float(x))); }
};

template <class Rank>
inline constexpr Rank lowest_rank = Rank(Rank(1) << (8 * sizeof(Rank) - 1));
template <class Rank>
inline constexpr Rank highest_rank = Rank(~lowest_rank<Rank>);

template <class Rank>
struct Range {
    Rank least, greatest;
};

// Forms: least, greatest, both.
template <class E>
struct Extremes : OperatorDefaults<E> {
    using Rank = typename Order<E>::Rank;
    using Value = typename Order<E>::Value;
    using element = E;
    using acc = Range<Rank>;
    using result = Both<Value, Value>;
    using usual = E;
    static constexpr OpKey key{OpId::extremes, info_of<E>.id, Accumulate::native};
    static constexpr bool order_free = true;
    static GPUREDUCE_HD acc identity() { return {highest_rank<Rank>, lowest_rank<Rank>}; }
    static GPUREDUCE_HD acc load(E x) {
        Rank const rank = Order<E>::rank(x);
        return {rank, rank};
    }
    static GPUREDUCE_HD acc combine(acc a, acc b) {
        return {b.least < a.least ? b.least : a.least, b.greatest > a.greatest ? b.greatest : a.greatest};
    }
    static GPUREDUCE_HD result finish(acc a, const Ending& ending) {
        Value least = Order<E>::value(a.least), greatest = Order<E>::value(a.greatest);
        if constexpr (Order<E>::has_nan)
            if (Order<E>::is_nan(a.least) || Order<E>::is_nan(a.greatest)) least = greatest = quiet_nan<Value>();
        return {ending.form == Form::greatest ? greatest : least, greatest};
    }
};

GPUREDUCE_HD double magnitude_of(double x) {  // also of -0.0 and of NaN without a sign: a rank has none
    return bit_cast<double>(bit_cast<int64_t>(x) & FloatOrder<double, int64_t>::magnitude);
}

// |x|, of complex numbers to a unit in the last place, as the rank of a float, which it is without a flip.
template <class E>
GPUREDUCE_HD auto magnitude_of(E x) {
    if constexpr (info_of<E>.kind == Kind::complex) {
        double const re = magnitude_of(double(x.re)), im = magnitude_of(double(x.im));
        if constexpr (sizeof(E) == 8) {
            return float(square_root(re * re + im * im));
        } else {
            double const high = re > im ? re : im, low = re > im ? im : re;
            if (re - re != 0 || im - im != 0)  // infinite or NaN
                return re == high && re - re != 0 && re == re ? re : im - im != 0 && im == im ? im : re + im;
            double const ratio = high > 0 ? low / high : 0.0;
            return high * square_root(1.0 + ratio * ratio);
        }
    } else {
        return bit_cast<float>(bit_cast<int32_t>(Load<float, E>::of(x)) & FloatOrder<float, int32_t>::magnitude);
    }
}

// Forms: least, greatest, of |x|.
template <class E>
struct ExtremeMagnitudes : OperatorDefaults<E> {
    using Value = decltype(magnitude_of(E{}));
    using OrderOf = Order<Value>;
    using Rank = typename OrderOf::Rank;
    using element = E;
    using acc = Range<Rank>;
    using result = Value;
    using usual = std::conditional_t<info_of<E>.kind == Kind::complex, Value, E>;
    static constexpr OpKey key{OpId::extreme_magnitudes, info_of<E>.id, Accumulate::native};
    static constexpr bool order_free = true;
    static GPUREDUCE_HD acc identity() { return {highest_rank<Rank>, lowest_rank<Rank>}; }
    static GPUREDUCE_HD acc load(E x) {
        Rank const rank = bit_cast<Rank>(magnitude_of(x));
        return {rank, rank};
    }
    static GPUREDUCE_HD acc combine(acc a, acc b) {
        return {b.least < a.least ? b.least : a.least, b.greatest > a.greatest ? b.greatest : a.greatest};
    }
    static GPUREDUCE_HD result finish(acc a, const Ending& ending) {
        if (ending.n == 0) return 0;
        if (OrderOf::is_nan(a.greatest)) return quiet_nan<Value>();
        return OrderOf::value(ending.form == Form::least ? a.least : a.greatest);
    }
};

// A rank and the index of the first element that has it, in two words, so that there is no padding.
template <class Rank>
struct Ranked {
    Rank rank;
    uint32_t low, high;
    GPUREDUCE_HD int64_t index() const { return int64_t(uint64_t(high) << 32 | low); }
};

// The greater one; NaN if one is.
GPUREDUCE_HD float greater(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return b > a || b != b ? b : a;
#endif
}
GPUREDUCE_HD double greater(double a, double b) { return b > a || b != b ? b : a; }

// How good an element is as the greatest, or the least, one: higher is better. Of floats, equal zeros and a NaN above all.
template <class E, bool Greatest, bool Integer = !Order<E>::has_nan>
struct Merit {
    using type = typename Order<E>::Rank;
    static constexpr type worst = lowest_rank<type>;
    static GPUREDUCE_HD type of(E x) {
        type const rank = Order<E>::rank(x);
        return Greatest ? rank : type(~rank);
    }
    static GPUREDUCE_HD type rank(type merit) { return merit; }
    static GPUREDUCE_HD type of_rank(type rank) { return rank; }
    static GPUREDUCE_HD auto value(type rank) { return Order<E>::value(Greatest ? rank : type(~rank)); }
    static GPUREDUCE_HD bool is_better(type a, type b) { return a > b; }
};
template <class E, bool Greatest>
struct Merit<E, Greatest, false> {
    using type = typename Order<E>::Value;
    using OrderOf = Order<type>;
    using Rank = typename OrderOf::Rank;
    static constexpr type worst = -type(__builtin_inf());
    static GPUREDUCE_HD type of(E x) {
        type const value = Load<type, E>::of(x);
        return Greatest ? value + type(0) : type(0) - value;  // no -0.0
    }
    static GPUREDUCE_HD Rank rank(type merit) { return merit != merit ? highest_rank<Rank> : OrderOf::rank(merit); }
    static GPUREDUCE_HD type of_rank(Rank rank) { return OrderOf::value(rank); }  // the highest is a NaN
    static GPUREDUCE_HD type value(Rank rank) {
        type const merit = of_rank(rank);
        return rank == highest_rank<Rank> ? quiet_nan<type>() : Greatest ? merit : type(0) - merit;
    }
    static GPUREDUCE_HD bool is_better(type a, type b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        if constexpr (sizeof(type) == 4)
            return bit_cast<Rank>(greater(b, a)) != bit_cast<Rank>(b);  // one NaN, one zero
#endif
        return a > b || (a != a && b == b);
    }
};

// Forms: both (value, index), index. The first of equal ones counts, zeros of either sign being equal, and the first NaN
// before all, as for torch. The value of a zero is +0.0.
template <class E, bool Greatest>
struct ArgExtreme : OperatorDefaults<E> {
    using MeritOf = Merit<E, Greatest>;
    using Rank = typename Order<E>::Rank;
    using element = E;
    using acc = Ranked<Rank>;
    using result = Both<typename Order<E>::Value, int64_t>;
    using usual = E;
    static constexpr OpKey key{Greatest ? OpId::argmax : OpId::argmin, info_of<E>.id, Accumulate::native};
    static constexpr bool indexed = true, order_free = true;
    static constexpr int32_t nowhere = 0x7fffffff;

    struct Local {
        typename MeritOf::type merit;
        int32_t place;
    };
    static GPUREDUCE_HD Local first(E x, int place) { return {MeritOf::of(x), place}; }
    static GPUREDUCE_HD void see(Local& local, E x, int place) {
        auto const merit = MeritOf::of(x);
        bool const better = MeritOf::is_better(merit, local.merit);
        local = {better ? merit : local.merit, better ? place : local.place};
    }
    static GPUREDUCE_HD Local none() { return {MeritOf::worst, nowhere}; }
    static GPUREDUCE_HD void see_any(Local& local, E x, int place) { local = better(local, first(x, place)); }
    static GPUREDUCE_HD Local better(Local a, Local b) {
        bool const worse = MeritOf::is_better(a.merit, b.merit);
        bool const other = MeritOf::is_better(b.merit, a.merit) || (!worse && b.place < a.place);
        return {other ? b.merit : a.merit, other ? b.place : a.place};
    }
    static GPUREDUCE_HD acc at(Local local, int64_t base) {
        uint64_t const index = uint64_t(base + local.place);
        if (local.place == nowhere) return identity();
        return {MeritOf::rank(local.merit), uint32_t(index), uint32_t(index >> 32)};
    }
    static GPUREDUCE_HD acc identity() { return {lowest_rank<Rank>, ~0u, 0x7fffffff}; }
    static GPUREDUCE_HD acc combine(acc a, acc b) {
        bool const other = b.rank > a.rank || (b.rank == a.rank && b.index() < a.index());
        return {other ? b.rank : a.rank, other ? b.low : a.low, other ? b.high : a.high};
    }
    static GPUREDUCE_HD result finish(acc a, const Ending&) { return {MeritOf::value(a.rank), a.index()}; }
};

}  // namespace gpureduce
