// How many elements are not zero.
#pragma once

#include "accumulate.h"
#include "operator.h"

namespace gpureduce {

template <class E>
GPUREDUCE_HD bool is_nonzero(E x) {
    if constexpr (info_of<E>.kind == Kind::complex)
        return x.re != 0 || x.im != 0;
    else if constexpr (std::is_same_v<E, Half> || std::is_same_v<E, BFloat16>)
        return (x.bits & 0x7fff) != 0;
    else if constexpr (std::is_same_v<E, Bool>)
        return x.bits != 0;
    else
        return x != 0;  // true of NaN
}

// Forms: total, any, all.
template <class E>
struct Nonzero : OperatorDefaults<E> {
    using element = E;
    using acc = int64_t;
    using result = int64_t;
    using usual = Bool;
    static constexpr OpKey key{OpId::nonzero, info_of<E>.id, Accumulate::native};
    static constexpr bool order_free = true;

    struct Near : OperatorDefaults<E> {
        using element = E;
        using acc = uint32_t;
        static constexpr bool order_free = true;
        static GPUREDUCE_HD acc identity() { return 0; }
        static GPUREDUCE_HD acc load(E x) { return is_nonzero(x); }
        static GPUREDUCE_HD acc combine(acc a, acc b) { return a + b; }
    };
    using Leaf = Near;
    static GPUREDUCE_HD acc widen(uint32_t a) { return a; }

    static GPUREDUCE_HD acc identity() { return 0; }
    static GPUREDUCE_HD acc load(E x) { return is_nonzero(x); }
    static GPUREDUCE_HD acc combine(acc a, acc b) { return a + b; }
    static GPUREDUCE_HD result finish(acc a, const Ending& ending) {
        return ending.form == Form::any ? a != 0 : ending.form == Form::all ? a == ending.n : a;
    }
};

}  // namespace gpureduce
