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
// Of one-byte types, see resolve.
using NonzeroOps =
    OfEach<Nonzero, TypeList<double, float, Half, BFloat16, int64_t, int32_t, int16_t, Complex<float>, Complex<double>>>;

using NanSumOps = TypeList<NanSum<double, double>, NanSum<double, Compensated<double>>,                     //
                           NanSum<float, float>, NanSum<float, Compensated<float>>, NanSum<float, double>,  //
                           NanSum<Half, float>, NanSum<Half, Compensated<float>>, NanSum<Half, double>,     //
                           NanSum<BFloat16, float>, NanSum<BFloat16, Compensated<float>>, NanSum<BFloat16, double>>;
using SquareOps =
    TypeList<Squares<double, double>, Squares<double, Compensated<double>>, Squares<double, Scaled>,      //
             Squares<float, float>, Squares<float, Compensated<float>>, Squares<float, double>,           //
             Squares<Half, float>, Squares<Half, Compensated<float>>, Squares<Half, double>,              //
             Squares<BFloat16, float>, Squares<BFloat16, Compensated<float>>, Squares<BFloat16, double>,  //
             Squares<int64_t, int64_t>, Squares<int32_t, int64_t>, Squares<int16_t, int64_t>,             //
             Squares<int8_t, int64_t>, Squares<uint8_t, int64_t>,                                         //
             Squares<Complex<float>, float>, Squares<Complex<float>, Compensated<float>>,                 //
             Squares<Complex<float>, double>,                                                             //
             Squares<Complex<double>, double>, Squares<Complex<double>, Compensated<double>>,             //
             Squares<Complex<double>, Scaled>>;
using ProductOps =
    TypeList<Product<double, double>, Product<float, float>, Product<Half, float>, Product<BFloat16, float>,  //
             Product<int64_t, int64_t>, Product<int32_t, int64_t>, Product<int16_t, int64_t>,                 //
             Product<int8_t, int64_t>, Product<uint8_t, int64_t>, Product<Bool, int64_t>,                     //
             Product<Complex<float>, Complex<float>>, Product<Complex<double>, Complex<double>>>;
using MagnitudeOps = OfEach<Magnitudes, InexactTypes>;
using MomentOps = OfEach<Moments, FloatTypes>;
using ExponentialOps = OfEach<Exponentials, FloatTypes>;

using AllOps = Joined<SumOps, ExtremeOps, ArgOps, NonzeroOps, NanSumOps, SquareOps, MagnitudeOps, ProductOps, MomentOps,
                      ExponentialOps>;

// Which operator of the list computes a call, and in key.in the type that each element is converted to before it is read:
// the input's own but for conversions that torch, too, does element by element, and bytes that are looked at as bool.
struct Resolved {
    OpKey key;
};

constexpr int part_bytes(DTypeInfo type) { return type.kind == Kind::complex ? type.bytes / 2 : type.bytes; }

constexpr bool widens_exactly(DTypeInfo from, DTypeInfo to) {
    if (from.id == to.id) return true;
    if (to.kind == Kind::integer || (from.kind == Kind::complex && to.kind == Kind::real)) return false;
    return part_bytes(to) >= 4 && part_bytes(from) <= part_bytes(to);
}

// What adds up in a type that the call may choose: sum, nansum, squares.
inline Resolved resolve_additive(OpId op, DType in, DType out, Accumulate requested) {
    DTypeInfo const from = dtype_info(in), to = dtype_info(out);
    if (!widens_exactly(from, to)) return resolve_additive(op, out, out, requested);
    if (part_bytes(from) == 8) {
        bool const kept =
            requested == Accumulate::compensated || op == OpId::squares;  // doubles have two kinds of squares
        return {{op, in, kept ? requested : Accumulate::native}};
    }
    if (part_bytes(to) == 8) return {{op, in, Accumulate::float64}};
    return {{op, in, requested}};
}

inline Resolved resolve_sum(DType in, DType out, Accumulate requested) {
    DTypeInfo const from = dtype_info(in), to = dtype_info(out);
    if (from.kind != Kind::integer) return resolve_additive(OpId::sum, in, out, requested);
    // The integer sum is exact and rounded once, except for int64, whose float sums need a float accumulator.
    if (to.id == DType::boolean) return {{OpId::sum, DType::boolean, Accumulate::native}};
    if (from.id == DType::int64 && to.kind != Kind::integer) return {{OpId::sum, in, Accumulate::float64}};
    return {{OpId::sum, in, Accumulate::native}};
}

// The complex type whose parts are a real one.
constexpr DType complex_of(DType part) { return part == DType::float64 ? DType::complex128 : DType::complex64; }

// op(in, dtype=out, accumulate=requested); `out` is the type of the (first) result, but real for a norm of complex numbers.
inline Resolved resolve(OpId op, DType in, DType out, Accumulate requested) {
    DTypeInfo const from = dtype_info(in), to = dtype_info(out);
    bool const integer = from.kind == Kind::integer;
    bool const of_magnitudes = op == OpId::squares || op == OpId::magnitudes || op == OpId::extreme_magnitudes;
    if (of_magnitudes && from.kind == Kind::complex && to.kind == Kind::real) out = complex_of(out);
    switch (op) {
        case OpId::sum: return resolve_sum(in, out, requested);
        case OpId::nansum: return integer ? resolve_sum(in, out, requested) : resolve_additive(op, in, out, requested);
        case OpId::squares:
            if (in == DType::boolean && to.kind == Kind::integer) return resolve_sum(in, out, requested);
            if (integer && to.kind == Kind::integer) return {{op, in, Accumulate::native}};
            return resolve_additive(op, in, out, requested);
        case OpId::product:
        case OpId::magnitudes:
        case OpId::extreme_magnitudes:
        case OpId::exponentials: {
            // These accumulate in the type of the input, or that of a 16-bit one in float32.
            bool const exact =
                integer ? to.kind == Kind::integer && to.id != DType::boolean
                        : from.id == to.id || (from.kind == Kind::real && from.bytes == 2 && to.id == DType::float32);
            return {{op, exact ? in : out, Accumulate::native}};
        }
        case OpId::nonzero:
            if (from.bytes == 1) return {{OpId::sum, DType::boolean, Accumulate::native}};
            return {{op, in, Accumulate::native}};
        case OpId::moments: return {{op, integer ? out : in, Accumulate::native}};
        default: return {{op, in, Accumulate::native}};
    }
}

}  // namespace gpureduce
