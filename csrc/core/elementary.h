// exp and log, the same bits on host and device: + - * /, fused multiply-add and steps on the bits.
//
// exp(x) = 2^n e^r with n = round(x / ln 2), which adding 1.5 * 2^(mantissa bits) leaves in the low bits of the sum, and
// r = x - n ln 2 in two steps (Cody and Waite 1980), then 1 + r + r^2 q(r) with a minimax q.
//
// Largest error, in units in the last place of the result: exponential 0.91 (float, every input), 0.90 (double, 4 * 10^7
// inputs); logarithm 0.50 (float, every input), 0.85 (double). So at most one from the correctly rounded result.
#pragma once

#include "accumulate.h"

namespace gpureduce {

// a * b + c, rounded once. The host calls a function for it unless it is compiled for a machine that has the instruction.
GPUREDUCE_HD float fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}
GPUREDUCE_HD double fma(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
    return __fma_rn(a, b, c);
#else
    return __builtin_fma(a, b, c);
#endif
}

template <class T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
    using Bits = int32_t;
    static constexpr int mantissa_bits = 23;
    static constexpr float shifter = 0x1.8p23f, per_ln2 = 0x1.715476p0f, ln2_high = 0x1.62e4p-1f,
                           ln2_low = 0x1.7f7d1cp-20f;
    static constexpr float least = -104, greatest = 89, least_normal = -87;
    static GPUREDUCE_HD float q(float r) {
        float q = 0x1.6a2252p-10f;
        q = fma(q, r, 0x1.123b02p-7f);
        q = fma(q, r, 0x1.5558f8p-5f);
        q = fma(q, r, 0x1.555490p-3f);
        return fma(q, r, 0x1.fffffcp-2f);
    }
};
template <>
struct ExpConstants<double> {
    using Bits = int64_t;
    static constexpr int mantissa_bits = 52;
    static constexpr double shifter = 0x1.8p52, per_ln2 = 0x1.71547652b82fep0, ln2_high = 0x1.62e42fefa4p-1,
                            ln2_low = -0x1.8432a1b0e2634p-43;
    static constexpr double least = -746, greatest = 710, least_normal = -708;
    static GPUREDUCE_HD double q(double r) {
        double q = 0x1.ad7e746da45eep-26;
        q = fma(q, r, 0x1.28ae3423cc8efp-22);
        q = fma(q, r, 0x1.71df272c6b6f3p-19);
        q = fma(q, r, 0x1.a0199944acc10p-16);
        q = fma(q, r, 0x1.a01a0128f8830p-13);
        q = fma(q, r, 0x1.6c16c1846fa5bp-10);
        q = fma(q, r, 0x1.111111112817fp-7);
        q = fma(q, r, 0x1.5555555550755p-5);
        q = fma(q, r, 0x1.55555555554f8p-3);
        return fma(q, r, 0x1.000000000000ap-1);
    }
};

// e^x = mantissa * 2^n, with the mantissa in [0.7, 1.42] and n in the low bits of `shifted`.
template <class T>
struct SplitExp {
    T mantissa, shifted;
};
template <class T>
GPUREDUCE_HD SplitExp<T> split_exp(T x) {
    using C = ExpConstants<T>;
    T const shifted = fma(x, C::per_ln2, C::shifter), n = shifted - C::shifter;
    T const r = fma(n, -C::ln2_low, fma(n, -C::ln2_high, x));
    return {fma(fma(C::q(r), r, T(1)), r, T(1)), shifted};
}

template <class T>
GPUREDUCE_HD T power_of_two(typename ExpConstants<T>::Bits n) {
    return bit_cast<T>((n + (sizeof(T) == 4 ? 127 : 1023)) << ExpConstants<T>::mantissa_bits);
}

// Every x; subnormal results are rounded once more.
template <class T>
GPUREDUCE_HD T exponential(T x) {
    using C = ExpConstants<T>;
    using Bits = typename C::Bits;
    T const inside = x < C::least ? C::least : x > C::greatest ? C::greatest : x;
    auto const split = split_exp(inside);
    Bits const n = bit_cast<Bits>(split.shifted) - bit_cast<Bits>(C::shifter), half = n >> 1;
    return x == x ? split.mantissa * power_of_two<T>(half) * power_of_two<T>(n - half) : x;
}

// e^x for x <= 0, with the bits of exponential as long as it is normal; below, and of NaN, the least of those: what a sum
// with a term of 1 in it does not feel.
template <class T>
GPUREDUCE_HD T decay(T x) {
    using C = ExpConstants<T>;
    using Bits = typename C::Bits;
    auto const split = split_exp(x > C::least_normal ? x : C::least_normal);
    using Unsigned = std::make_unsigned_t<Bits>;
    Unsigned const n = bit_cast<Unsigned>(split.shifted) << C::mantissa_bits;
    return bit_cast<T>(Unsigned(bit_cast<Unsigned>(split.mantissa) + n));
}

// The same to 2 * 10^-7, + |x| * 4 * 10^-8, of its value, in fewer steps: for sums over elements of 16 bits, which are far from
// being so exact. exp(0) is 1.
GPUREDUCE_HD float brief_decay(float x) {
    using C = ExpConstants<float>;
    float const inside = x > C::least_normal ? x : C::least_normal;
    float const shifted = fma(inside, C::per_ln2, C::shifter), n = shifted - C::shifter;
    float const f = fma(inside, C::per_ln2, -n);
    float p = 0x1.5bb928p-10f;
    p = fma(p, f, 0x1.3ceb6cp-7f);
    p = fma(p, f, 0x1.c6b75ap-5f);
    p = fma(p, f, 0x1.ebf9bap-3f);
    p = fma(p, f, 0x1.62e42ap-1f);
    p = fma(p, f, 1.0f);
    return bit_cast<float>(bit_cast<uint32_t>(p) + (bit_cast<uint32_t>(shifted) << C::mantissa_bits));
}

// log(x) = k ln 2 + log(1 + f), with 1 + f in [sqrt(1/2), sqrt(2)) and log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R(s^2)),
// s = f / (2 + f).
GPUREDUCE_HD double logarithm(double x) {
    constexpr double infinity = __builtin_inf();
    if (!(x > 0)) return x == 0 ? -infinity : quiet_nan<double>();
    if (x == infinity) return x;
    bool const subnormal = x < 0x1p-1022;
    constexpr int64_t root = 0x3fe6a09e667f3bcd;  // of 1/2
    int64_t const bits = bit_cast<int64_t>(subnormal ? x * 0x1p54 : x), above = bits - root;
    double const k = double((above >> 52) - (subnormal ? 54 : 0));
    double const f = bit_cast<double>((above & 0x000fffffffffffff) + root) - 1;
    double const s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double r = 0x1.2f0d9347d81cfp-3;
    r = fma(r, z, 0x1.39a0f48161887p-3);
    r = fma(r, z, 0x1.746646320b48ap-3);
    r = fma(r, z, 0x1.c71c51e7d94f7p-3);
    r = fma(r, z, 0x1.2492494217cc4p-2);
    r = fma(r, z, 0x1.999999997fb2ep-2);
    r = fma(r, z, 0x1.5555555555593p-1);
    using C = ExpConstants<double>;
    return k * C::ln2_high - ((half - (s * (half + z * r) + k * C::ln2_low)) - f);
}
GPUREDUCE_HD float logarithm(float x) { return float(logarithm(double(x))); }

}  // namespace gpureduce
