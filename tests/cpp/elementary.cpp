// The largest errors of csrc/core/elementary.h, against the C library in the next wider type, and a hash of every result, as
// JSON: {function: {points, error, at, steps, hash}}. An error is in units in the last place of the exact value; steps count
// representable numbers from the correctly rounded result. With an argument, hashes alone.
#include "../../csrc/core/elementary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>

namespace {

constexpr uint64_t kRandom = 10'000'000, kMantissas = 64;
constexpr int kBlock = 4096;
constexpr double kWrong = 1e300;  // the error of a result that is not even near

template <class T>
struct Format;
template <>
struct Format<float> {
    using Bits = uint32_t;
    using Wide = double;
    static constexpr const char* name = "float";
};
template <>
struct Format<double> {
    using Bits = uint64_t;
    using Wide = long double;
    static constexpr const char* name = "double";
};
template <class T>
using Bits = typename Format<T>::Bits;
template <class T>
using Wide = typename Format<T>::Wide;

template <class T>
constexpr int kMantissaBits = std::numeric_limits<T>::digits - 1;
template <class T>
constexpr uint64_t kEdges = kMantissas << (8 * sizeof(T) - kMantissaBits<T>);
template <class T>
constexpr T kLeastNormal = gpureduce::ExpConstants<T>::least_normal;

template <class T>
Bits<T> bits_of(T x) {
    return gpureduce::bit_cast<Bits<T>>(x);
}

// --- points ---------------------------------------------------------------------------------------------------------

uint64_t random_bits(uint64_t i) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// Every sign and exponent, so zeros, subnormals, infinities and NaN, too, each with some mantissas.
template <class T>
T edge(uint64_t i) {
    constexpr Bits<T> mask = (Bits<T>(1) << kMantissaBits<T>)-1;
    Bits<T> const mantissas[] = {0, 1, mask, mask / 2, mask / 2 + 1}, which = Bits<T>(i % kMantissas);
    Bits<T> const mantissa = which < std::size(mantissas) ? mantissas[which] : Bits<T>(random_bits(i)) & mask;
    return gpureduce::bit_cast<T>(Bits<T>(Bits<T>(i / kMantissas) << kMantissaBits<T> | mantissa));
}

// Half of them even in the interval, half of them at any scale.
template <class T>
T between(double low, double high, uint64_t i) {
    uint64_t const z = random_bits(i);
    double const x = low + (high - low) * std::ldexp(double(z >> 11), -53);
    return T(i % 2 ? x : std::ldexp(x, -int(z & 63)));
}

// Half of them near one, half of them any number that is not negative.
template <class T>
T positive(uint64_t i) {
    uint64_t const z = random_bits(i);
    return i % 2 ? T(0.5 + std::ldexp(double(z >> 11), -53) * 1.5)
                 : gpureduce::bit_cast<T>(Bits<T>(z >> (65 - 8 * sizeof(T))));
}

// --- errors ---------------------------------------------------------------------------------------------------------

struct Error {
    double units;
    int64_t steps = 0;
};

// Numbers that follow each other are one apart.
template <class T>
int64_t place(T x) {
    auto const magnitude = int64_t(bits_of(std::fabs(x)));
    return std::signbit(x) ? -magnitude : magnitude;
}

template <class T>
Error error_of(T got, Wide<T> want) {
    using Limits = std::numeric_limits<T>;
    T const rounded = T(want);
    if (got != got || want != want) return {got != got && want != want ? 0 : kWrong};
    if (want == 0 && bits_of(got) != bits_of(rounded)) return {kWrong};
    if (got == rounded && std::isinf(got)) return {0};
    // The unit is the distance from the power of two below.
    Bits<T> const least = Bits<T>(1) << kMantissaBits<T>, most = bits_of(Limits::max());
    Bits<T> const power = std::clamp(bits_of(std::fabs(rounded)), least, most) / least * least;
    T const unit = gpureduce::bit_cast<T>(power + 1) - gpureduce::bit_cast<T>(power);
    Wide<T> const value =
        std::isinf(got) ? std::copysign(std::ldexp(Wide<T>(1), Limits::max_exponent), Wide<T>(got)) : Wide<T>(got);
    return {std::min(double(std::fabs(value - want) / unit), kWrong), std::abs(place(got) - place(rounded))};
}

// --- the check of a function ----------------------------------------------------------------------------------------

bool judged = true;
const char* separator = "{";

template <class T, class Function, class Point, class Judge>
void check(const char* name, const Function& function, const Point& point, const Judge& judge) {
    uint64_t const points = kEdges<T> + kRandom;
    uint64_t hash = 0xcbf29ce484222325;
    Error worst{0};
    T at = 0;
    for (uint64_t start = 0; start < points; start += kBlock) {
        int const count = int(std::min<uint64_t>(points - start, kBlock));
        T x[kBlock], y[kBlock];
        for (int i = 0; i < count; ++i) x[i] = point(start + i);
        for (int i = 0; i < count; ++i) y[i] = function(x[i]);
        for (int i = 0; i < count; ++i) {
            hash = (hash ^ bits_of(y[i])) * 0x100000001b3;
            if (!judged) continue;
            Error const error = judge(x[i], y[i]);
            if (error.units > worst.units) worst.units = error.units, at = x[i];
            worst.steps = std::max(worst.steps, error.steps);
        }
    }
    std::printf(
        "%s\"%s %s\": {\"points\": %llu, \"error\": %.17g, \"at\": \"%a\", \"steps\": %lld, \"hash\": \"%llx\"}",
        separator, name, Format<T>::name, (unsigned long long)points, worst.units, double(at), (long long)worst.steps,
        (unsigned long long)hash);
    separator = ",\n";
}

template <class T>
T decayed(T x) {
    return x > kLeastNormal<T> ? x : kLeastNormal<T>;
}

template <class T>
void check_all() {
    using C = gpureduce::ExpConstants<T>;
    auto const exponential = [](T x) { return gpureduce::exponential(x); };
    auto const any = [](uint64_t i) {
        return i < kEdges<T> ? edge<T>(i) : between<T>(C::least - 1, C::greatest + 1, i);
    };
    check<T>("exponential", exponential, any, [](T x, T y) { return error_of(y, std::exp(Wide<T>(x))); });

    auto const not_positive = [](uint64_t i) {
        return -std::fabs(i < kEdges<T> ? edge<T>(i) : between<T>(C::least_normal, 0, i));
    };
    auto const decay = [](T x) { return gpureduce::decay(x); };
    check<T>("decay", decay, not_positive, [](T x, T y) {
        bool const same = bits_of(y) == bits_of(gpureduce::exponential(decayed(x)));
        return same ? error_of(y, std::exp(Wide<T>(decayed(x)))) : Error{kWrong};
    });
    if constexpr (sizeof(T) == 4) {  // its error is in units of what its comment allows
        auto const brief = [](T x) { return gpureduce::brief_decay(x); };
        check<T>("brief_decay", brief, not_positive, [](T x, T y) {
            if (x == 0 && y != 1) return Error{kWrong};
            double const exact = decayed(x), want = std::exp(exact), allowed = 2e-7 - exact * 4e-8;
            return Error{y == y ? std::fabs(y - want) / (want * allowed) : kWrong};
        });
    }

    auto const not_negative = [](uint64_t i) { return i < kEdges<T> ? edge<T>(i) : positive<T>(i); };
    auto const logarithm = [](T x) { return gpureduce::logarithm(x); };
    check<T>("logarithm", logarithm, not_negative, [](T x, T y) { return error_of(y, std::log(Wide<T>(x))); });
}

}  // namespace

int main(int count, char**) {
    judged = count == 1;
    check_all<float>();
    check_all<double>();
    std::printf("}\n");
}
