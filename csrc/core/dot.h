// Sums of products of two tensors over one dim, of which either may be the same along other dims.
//
// Products are rounded in the type that they are added in. The tree is that of a sum: its family is that of x; or of y, where
// x is the same along all kept dims.
#pragma once

#include <string>

#include "elementary.h"
#include "plan.h"

namespace gpureduce {

// --- the operators ----------------------------------------------------------------------------------------------------

// x * y as an accumulator.
template <class A>
struct Multiply {
    template <class E>
    static GPUREDUCE_HD A of(E x, E y) {
        return Load<A, E>::of(x) * Load<A, E>::of(y);
    }
};
// Wraps on overflow, as torch does.
template <> struct Multiply<int64_t> {
    template <class E>
    static GPUREDUCE_HD int64_t of(E x, E y) {
        return int64_t(uint64_t(int64_t(x)) * uint64_t(int64_t(y)));
    }
};
// With the rounding error of the product: in double that of floats is exact, and that of 16-bit floats is 0.
template <> struct Multiply<Compensated<float>> {
    template <class E>
    static GPUREDUCE_HD Compensated<float> of(E x, E y) {
        double const exact = Load<double, E>::of(x) * Load<double, E>::of(y);
        float const value = float(exact);
        return {value, float(exact - double(value))};
    }
};
template <> struct Multiply<Compensated<double>> {
    static GPUREDUCE_HD Compensated<double> of(double x, double y) {
        double const value = x * y;
        return {value, fma(x, y, -value)};
    }
};
template <class T>
struct Multiply<Complex<T>> {
    template <class E>
    static GPUREDUCE_HD Complex<T> of(Complex<E> x, Complex<E> y) {
        return {add(Multiply<T>::of(x.re, y.re), Multiply<T>::of(-x.im, y.im)),
                add(Multiply<T>::of(x.re, y.im), Multiply<T>::of(x.im, y.re))};
    }
};

template <class E, class A>
struct Dot : OperatorDefaults<E> {
    using element = E;
    using acc = A;
    using result = decltype(result_of(A{}));
    using usual = E;
    static constexpr DType in = info_of<E>.id;
    static constexpr Accumulate accumulate = accumulate_mode<E, A>;
    static constexpr Kind kind = info_of<E>.kind;
    static constexpr bool has_vectors = kind != Kind::integer;  // kernels with 16-byte loads
    static constexpr bool has_columns = kind != Kind::integer;
    static GPUREDUCE_HD A identity() { return zero_of<A>(); }
    static GPUREDUCE_HD A combine(A a, A b) { return add(a, b); }
    // `conjugate` is of x.
    static GPUREDUCE_HD A product(E x, E y, bool conjugate) {
        if constexpr (kind == Kind::complex)
            if (conjugate) x.im = -x.im;
        return Multiply<A>::of(x, y);
    }
    static GPUREDUCE_HD result finish(A a, const Ending& ending) { return ending.n == 0 ? result{} : result_of(a); }
};

using DotOps = TypeList<Dot<double, double>, Dot<double, Compensated<double>>,                                  //
                        Dot<float, float>, Dot<float, Compensated<float>>, Dot<float, double>,                  //
                        Dot<Half, float>, Dot<Half, Compensated<float>>, Dot<Half, double>,                     //
                        Dot<BFloat16, float>, Dot<BFloat16, Compensated<float>>, Dot<BFloat16, double>,         //
                        Dot<int64_t, int64_t>, Dot<int32_t, int64_t>, Dot<int16_t, int64_t>,                    //
                        Dot<int8_t, int64_t>, Dot<uint8_t, int64_t>,                                            //
                        Dot<Complex<float>, Complex<float>>, Dot<Complex<float>, Complex<Compensated<float>>>,  //
                        Dot<Complex<float>, Complex<double>>,                                                   //
                        Dot<Complex<double>, Complex<double>>, Dot<Complex<double>, Complex<Compensated<double>>>>;

// --- problem and plan -------------------------------------------------------------------------------------------------

inline constexpr int kInputs = 2;         // x and y
inline constexpr int kDotRowsAtOnce = 4;  // rows of up to kLanes elements that a group of lanes has in flight

struct PairAxis {
    int64_t size;
    int64_t stride[kInputs];  // in elements; 0 where an input is the same along the axis
    int64_t out_stride;
};

struct PairAxes {
    int count = 0;
    PairAxis axis[kMaxDims];

    PairAxis& last() { return axis[count - 1]; }
    const PairAxis& last() const { return axis[count - 1]; }
    int64_t elements() const {
        int64_t product = 1;
        for (int i = 0; i < count; ++i) product *= axis[i].size;
        return product;
    }
};

struct DotProblem {
    DType in = DType::float32;  // of the inputs and the result
    Accumulate accumulate = Accumulate::native;
    bool conjugate = false;  // x
    Family family = Family::row;
    PairAxes kept;  // in output order; in the column family the last one is the column axis
    int64_t outputs = 1;
    int64_t n = 1;                   // products added to one output
    int64_t step[kInputs] = {};      // from one to the next, in elements
    int misalignment[kInputs] = {};  // addresses modulo 16
};

// Of the column family: whether an input is broadcast along the columns.
inline bool is_same_along_columns(const DotProblem& p, int input) { return p.kept.last().stride[input] == 0; }

// The operator of a problem, and how it ends.
template <class Op>
constexpr bool is_operator_of(const DotProblem& p) {
    return Op::in == p.in && Op::accumulate == p.accumulate;
}
inline Ending ending_of(const DotProblem& p) { return {Form::total, p.n, 0}; }

// The inputs have the broadcast sizes, of which dim `reduced` is reduced (with size 1, for 0-d inputs, all may be kept:
// reduced = -1). The output is contiguous over the kept dims.
DotProblem make_dot_problem(const int64_t* sizes, const int64_t* x_strides, const int64_t* y_strides, int dims,
                            int reduced, DType in, Accumulate accumulate, bool conjugate);

// Sets where the inputs begin.
void set_addresses(DotProblem& problem, const void* x, const void* y);

Plan make_dot_plan(const DotProblem& problem, const DeviceTraits& device, const Geometry& force = {});
std::string to_json(const DotProblem& problem, const Plan& plan);

}  // namespace gpureduce
