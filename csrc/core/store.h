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

// How an element is written.
struct Assign {
    template <class T>
    GPUREDUCE_HD void operator()(T* to, T value) const {
        *to = value;
    }
};

template <class R, class Set = Assign>
GPUREDUCE_HD void store(void* out, int64_t i, DType type, R result, Set set = {}) {
    auto const re = real_part(result);
    auto const im = imaginary_part(result);
    auto const put = [&](auto value) { set(static_cast<decltype(value)*>(out) + i, value); };
    switch (type) {
        case DType::float64: return put(double(re));
        case DType::float32: return put(float(re));
        case DType::float16: return put(to_half(narrowed(re)));
        case DType::bfloat16: return put(to_bfloat16(narrowed(re)));
        case DType::int64: return put(int64_t(re));
        case DType::int32: return put(int32_t(int64_t(re)));
        case DType::int16: return put(int16_t(int64_t(re)));
        case DType::int8: return put(int8_t(int64_t(re)));
        case DType::uint8: return put(uint8_t(int64_t(re)));
        case DType::boolean: return put(Bool{uint8_t(re != 0)});
        case DType::complex64: return put(Complex<float>{float(re), float(im)});
        case DType::complex128: return put(Complex<double>{double(re), double(im)});
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
