// Element types, accumulator types and the conversions between them. Everything here gives the same bits on host and device.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define GPUREDUCE_HD __host__ __device__ __forceinline__
#else
#define GPUREDUCE_HD inline __attribute__((always_inline))
#endif

namespace gpureduce {

struct Half {
    uint16_t bits;
};
struct BFloat16 {
    uint16_t bits;
};
// One byte; any non-zero byte is true (torch's rule for bool storage reached through a view).
struct Bool {
    uint8_t bits;
};
template <class T>
struct alignas(2 * sizeof(T)) Complex {
    T re, im;
};
// An unevaluated sum value + error, |error| <= ulp(value) / 2 after each two-sum (Knuth, TAOCP 2, 4.2.2).
template <class T>
struct Compensated {
    T value, error;
};

enum class DType : uint8_t {
    float64,
    float32,
    float16,
    bfloat16,
    int64,
    int32,
    int16,
    int8,
    uint8,
    boolean,
    complex64,
    complex128,
};

enum class Kind : uint8_t { integer, real, complex };

struct DTypeInfo {
    DType id;
    const char* name;  // torch's name
    int bytes;
    Kind kind;
};

template <class T>
inline constexpr DTypeInfo info_of{};
template <> inline constexpr DTypeInfo info_of<double>{DType::float64, "float64", 8, Kind::real};
template <> inline constexpr DTypeInfo info_of<float>{DType::float32, "float32", 4, Kind::real};
template <> inline constexpr DTypeInfo info_of<Half>{DType::float16, "float16", 2, Kind::real};
template <> inline constexpr DTypeInfo info_of<BFloat16>{DType::bfloat16, "bfloat16", 2, Kind::real};
template <> inline constexpr DTypeInfo info_of<int64_t>{DType::int64, "int64", 8, Kind::integer};
template <> inline constexpr DTypeInfo info_of<int32_t>{DType::int32, "int32", 4, Kind::integer};
template <> inline constexpr DTypeInfo info_of<int16_t>{DType::int16, "int16", 2, Kind::integer};
template <> inline constexpr DTypeInfo info_of<int8_t>{DType::int8, "int8", 1, Kind::integer};
template <> inline constexpr DTypeInfo info_of<uint8_t>{DType::uint8, "uint8", 1, Kind::integer};
template <> inline constexpr DTypeInfo info_of<Bool>{DType::boolean, "bool", 1, Kind::integer};
template <> inline constexpr DTypeInfo info_of<Complex<float>>{DType::complex64, "complex64", 8, Kind::complex};
template <> inline constexpr DTypeInfo info_of<Complex<double>>{DType::complex128, "complex128", 16, Kind::complex};

template <class... Ts>
struct TypeList {};

// The one list of element types.
using AllElements = TypeList<double, float, Half, BFloat16, int64_t, int32_t, int16_t, int8_t, uint8_t, Bool,
                             Complex<float>, Complex<double>>;

// Calls f(T{}) for the T of the list that `matches` accepts; false if there is none.
template <class... Ts, class Matches, class F>
constexpr bool visit_first(TypeList<Ts...>, Matches&& matches, F&& f) {
    return ((matches(Ts{}) ? (f(Ts{}), true) : false) || ...);
}

inline DTypeInfo dtype_info(DType dtype) {
    DTypeInfo found{};
    visit_first(
        AllElements{}, [&](auto element) { return info_of<decltype(element)>.id == dtype; },
        [&](auto element) { found = info_of<decltype(element)>; });
    return found;
}

template <class To, class From>
GPUREDUCE_HD To bit_cast(const From& from) {
    return __builtin_bit_cast(To, from);  // not memcpy, which keeps host loops from vectorising
}

GPUREDUCE_HD float to_float(BFloat16 x) { return bit_cast<float>(uint32_t(x.bits) << 16); }

// Branch-free, so that the host loop over a leaf vectorises; exact for subnormals, infinities and NaN.
GPUREDUCE_HD float to_float(Half x) {
#if defined(__CUDA_ARCH__)
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
    return f;
#else
    uint32_t const magnitude = x.bits & 0x7fffu;
    uint32_t const sign = uint32_t(x.bits & 0x8000u) << 16;
    uint32_t const rebiased = (magnitude << 13) + (112u << 23);
    uint32_t const normal = magnitude >= 0x7c00u ? rebiased + (112u << 23) : rebiased;
    uint32_t const subnormal = bit_cast<uint32_t>(float(int32_t(magnitude)) * 0x1p-24f);
    return bit_cast<float>((magnitude < 0x0400u ? subnormal : normal) | sign);
#endif
}

// Round to nearest even; overflow to infinity; every NaN becomes the one quiet NaN.
GPUREDUCE_HD BFloat16 to_bfloat16(float f) {
    uint32_t const u = bit_cast<uint32_t>(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return {0x7fc0};
    return {uint16_t((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

GPUREDUCE_HD Half to_half(float f) {
    uint32_t const u = bit_cast<uint32_t>(f);
    uint32_t const sign = (u >> 16) & 0x8000u;
    uint32_t const magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return {0x7e00};
    if (magnitude >= 0x477ff000u) return {uint16_t(sign | 0x7c00u)};  // >= 65520 rounds to infinity
    if (magnitude < 0x38800000u) {                                    // below 2^-14: a multiple of 2^-24
        // Adding 0.5 puts the unit in the last place at 2^-24, so the addition rounds to nearest even for us.
        float const shifted = bit_cast<float>(magnitude) + 0.5f;
        return {uint16_t(sign | (bit_cast<uint32_t>(shifted) - 0x3f000000u))};
    }
    uint32_t const rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return {uint16_t(sign | ((rounded - (112u << 23)) >> 13))};
}

// Double to a 16-bit type in one rounding: the float between is rounded to odd (Boldo and Melquiond 2008).
GPUREDUCE_HD float round_to_odd(double d) {
    float const f = float(d);
    if (!(double(f) != d) || !(f - f == 0.0f)) return f;  // exact, NaN or infinite
    uint32_t u = bit_cast<uint32_t>(f);
    bool const too_far = (d > 0) ? double(f) > d : double(f) < d;
    if (too_far) u -= 1;  // truncate towards zero
    return bit_cast<float>(u | 1u);
}

}  // namespace gpureduce
