// The one list of operators: every (operator, element, accumulator) that has kernels, in groups that are compiled together.
#pragma once

#include "exponentials.h"
#include "extreme.h"
#include "moments.h"
#include "nonzero.h"
#include "power.h"
#include "product.h"
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
// Of one-byte types, see resolve.cpp.
using NonzeroOps =
    OfEach<Nonzero,
           TypeList<double, float, Half, BFloat16, int64_t, int32_t, int16_t, Complex<float>, Complex<double>>>;

using NanSumOps = TypeList<NanSum<double, double>, NanSum<double, Compensated<double>>,                     //
                           NanSum<float, float>, NanSum<float, Compensated<float>>, NanSum<float, double>,  //
                           NanSum<Half, float>, NanSum<Half, Compensated<float>>, NanSum<Half, double>,     //
                           NanSum<BFloat16, float>, NanSum<BFloat16, Compensated<float>>, NanSum<BFloat16, double>>;
using SquareOps = TypeList<Squares<double, double>, Squares<double, Compensated<double>>,                //
                           Squares<float, float>, Squares<float, Compensated<float>>,                    //
                           Squares<Half, float>, Squares<Half, Compensated<float>>,                      //
                           Squares<BFloat16, float>, Squares<BFloat16, Compensated<float>>,              //
                           Squares<int64_t, int64_t>, Squares<int32_t, int64_t>,                         //
                           Squares<int16_t, int64_t>, Squares<int8_t, int64_t>,                          //
                           Squares<uint8_t, int64_t>,                                                    //
                           Squares<Complex<float>, float>, Squares<Complex<float>, Compensated<float>>,  //
                           Squares<Complex<double>, double>, Squares<Complex<double>, Compensated<double>>>;
// The squares whose accumulate is float64, which the 2-norm takes.
using NormOps = TypeList<Squares<double, Scaled>, Squares<float, double>, Squares<Half, double>,
                         Squares<BFloat16, double>, Squares<Complex<float>, double>, Squares<Complex<double>, Scaled>>;
using ProductOps =
    TypeList<Product<double, double>, Product<float, float>, Product<Half, float>, Product<BFloat16, float>,  //
             Product<int64_t, int64_t>, Product<int32_t, int64_t>, Product<int16_t, int64_t>,                 //
             Product<int8_t, int64_t>, Product<uint8_t, int64_t>, Product<Bool, int64_t>,                     //
             Product<Complex<float>, Complex<float>>, Product<Complex<double>, Complex<double>>>;
using MagnitudeOps = OfEach<Magnitudes, InexactTypes>;
using MomentOps = OfEach<Moments, FloatTypes>;
using ExponentialOps = OfEach<Exponentials, FloatTypes>;

using AllOps = Joined<SumOps, ExtremeOps, ArgOps, NonzeroOps, NanSumOps, SquareOps, NormOps, MagnitudeOps, ProductOps,
                      MomentOps, ExponentialOps>;

// What an operator does, whatever the type, as a bit; and those of a list.
constexpr uint64_t kind_of(OpKey key) { return uint64_t(1) << (3 * int(key.op) + int(key.accumulate)); }
template <class... Ops>
constexpr uint64_t kinds_of(TypeList<Ops...>) {
    return (kind_of(Ops::key) | ...);
}

}  // namespace gpureduce
