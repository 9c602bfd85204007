// The one list of operators: every (operator, element, accumulator) that has kernels, in groups that are compiled together.
#pragma once

#include "extreme.h"
#include "nonzero.h"
#include "sum.h"

namespace gpureduce {

using SumOps = TypeList<Sum<double, double>, Sum<double, Compensated<double>>,                                      //
                        Sum<float, float>, Sum<float, Compensated<float>>, Sum<float, double>,                      //
                        Sum<Half, float>, Sum<Half, Compensated<float>>, Sum<Half, double>,                         //
                        Sum<BFloat16, float>, Sum<BFloat16, Compensated<float>>, Sum<BFloat16, double>,             //
                        Sum<int64_t, int64_t>, Sum<int64_t, double>, Sum<int32_t, int64_t>, Sum<int16_t, int64_t>,  //
                        Sum<int8_t, int64_t>, Sum<uint8_t, int64_t>, Sum<Bool, int64_t>,                            //
                        Sum<Complex<float>, Complex<float>>, Sum<Complex<float>, Complex<Compensated<float>>>,      //
                        Sum<Complex<float>, Complex<double>>,                                                       //
                        Sum<Complex<double>, Complex<double>>, Sum<Complex<double>, Complex<Compensated<double>>>>;

using FloatTypes = TypeList<double, float, Half, BFloat16>;
using RealTypes = TypeList<double, float, Half, BFloat16, int64_t, int32_t, int16_t, int8_t, uint8_t, Bool>;
using InexactTypes = TypeList<double, float, Half, BFloat16, Complex<float>, Complex<double>>;

template <template <class> class Op, class... Es>
auto of_each(TypeList<Es...>) -> TypeList<Op<Es>...>;
// Op<E> for every E of a list.
template <template <class> class Op, class Elements>
using OfEach = decltype(of_each<Op>(Elements{}));

template <class... As, class... Bs>
auto joined(TypeList<As...>, TypeList<Bs...>) -> TypeList<As..., Bs...>;
template <class A, class... More>
struct JoinedLists {
    using type = decltype(joined(A{}, typename JoinedLists<More...>::type{}));
};
template <class A>
struct JoinedLists<A> {
    using type = A;
};
template <class... Lists>
using Joined = typename JoinedLists<Lists...>::type;

template <class E>
using ArgMin = ArgExtreme<E, false>;
template <class E>
using ArgMax = ArgExtreme<E, true>;

using ExtremeOps = Joined<OfEach<Extremes, RealTypes>, OfEach<ExtremeMagnitudes, InexactTypes>>;
using ArgOps = Joined<OfEach<ArgMin, RealTypes>, OfEach<ArgMax, RealTypes>>;
// Of one-byte types, see resolve.
using NonzeroOps =
    OfEach<Nonzero, TypeList<double, float, Half, BFloat16, int64_t, int32_t, int16_t, Complex<float>, Complex<double>>>;

using AllOps = Joined<SumOps, ExtremeOps, ArgOps, NonzeroOps>;

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
