// Results -> output elements, each rounded once.
#pragma once

#include "operator.h"

namespace gpureduce {

template <class T>
GPUREDUCE_HD T real_part(T x) {
    return x;
}
template <class T>
GPUREDUCE_HD T real_part(Complex<T> x) {
    return x.re;
}
template <class T>
GPUREDUCE_HD T imaginary_part(T) {
    return T(0);
}
template <class T>
GPUREDUCE_HD T imaginary_part(Complex<T> x) {
    return x.im;
}

// A float that rounds to the same 16-bit value as x would in one step.
GPUREDUCE_HD float narrowed(float x) { return x; }
GPUREDUCE_HD float narrowed(double x) { return round_to_odd(x); }
GPUREDUCE_HD float narrowed(int64_t x) {
    int64_t const low = x & 0x7ff;  // beyond 2^53, the low bits become one sticky bit
    bool const fits = x >= -(int64_t(1) << 53) && x <= (int64_t(1) << 53);
    return round_to_odd(double(fits || low == 0 ? x : (x - low) | 0x400));
}

template <class R>
GPUREDUCE_HD void store(void* out, int64_t i, DType type, R result) {
    auto const re = real_part(result);
    auto const im = imaginary_part(result);
    switch (type) {
        case DType::float64: static_cast<double*>(out)[i] = double(re); break;
        case DType::float32: static_cast<float*>(out)[i] = float(re); break;
        case DType::float16: static_cast<Half*>(out)[i] = to_half(narrowed(re)); break;
        case DType::bfloat16: static_cast<BFloat16*>(out)[i] = to_bfloat16(narrowed(re)); break;
        case DType::int64: static_cast<int64_t*>(out)[i] = int64_t(re); break;
        case DType::int32: static_cast<int32_t*>(out)[i] = int32_t(int64_t(re)); break;
        case DType::int16: static_cast<int16_t*>(out)[i] = int16_t(int64_t(re)); break;
        case DType::int8: static_cast<int8_t*>(out)[i] = int8_t(int64_t(re)); break;
        case DType::uint8: static_cast<uint8_t*>(out)[i] = uint8_t(int64_t(re)); break;
        case DType::boolean: static_cast<Bool*>(out)[i] = {uint8_t(re != 0)}; break;
        case DType::complex64: static_cast<Complex<float>*>(out)[i] = {float(re), float(im)}; break;
        case DType::complex128: static_cast<Complex<double>*>(out)[i] = {double(re), double(im)}; break;
    }
}

// Where the results of a call go, and how they come from accumulators.
struct Results {
    void* out;     // null if only the second of two results is wanted
    void* second;  // null if the call has one result
    DType type, second_type;
    Ending ending;
};

// An index alone is the second of two results.
inline Results results_in(void* out, void* second, DType type, DType second_type, const Ending& ending) {
    if (ending.form == Form::index) return {nullptr, out, type, type, ending};
    return {out, second, type, second_type, ending};
}

template <class R>
GPUREDUCE_HD auto first_of(R result) {
    if constexpr (is_both<R>)
        return result.first;
    else
        return result;
}

}  // namespace gpureduce
