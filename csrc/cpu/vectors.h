// Elements as vectors of accumulators. A load reads kLoadValues elements; widened, they are `Sums`, to which the loads
// of other elements are added lane by lane; folded, a vector of values in order of their index, for fold.h.
#pragma once

#include "fold.h"

template <int Count>
struct BytesOf;  // specialised one by one: GCC drops the attribute where the
                 // size depends on a parameter
template <> struct BytesOf<8> {
    using type = uint8_t __attribute__((vector_size(8)));
};
template <> struct BytesOf<16> {
    using type = uint8_t __attribute__((vector_size(16)));
};
template <> struct BytesOf<32> {
    using type = uint8_t __attribute__((vector_size(32)));
};
template <int Count>
using Bytes = typename BytesOf<Count>::type;

using HalfVectorOfFloats = float __attribute__((vector_size(kSimdBytes / 2)));

// By default there are none, and elements are handled value by value.
template <class E, class A>
struct VectorsOf {
    static constexpr int kLoadValues = 0;
};

// Lane i of the sums is the i-th element of each load.
template <class E, class A>
struct PlainVectors {
    static constexpr int kLoadValues = kValues<A>;
    using Raw = Bytes<kLoadValues* int(sizeof(E))>;
    using Sums = Vector<A>;

    static GPUREDUCE_HD Sums widen(Raw raw) {
        if constexpr (std::is_same_v<E, A>)
            return (Vector<A>)raw;
        else if constexpr (std::is_same_v<E, Half>)
            return halves_to_floats(raw);
        else
            return __builtin_convertvector((HalfVectorOfFloats)raw, Vector<A>);
    }
    static GPUREDUCE_HD Vector<A> fold(Sums sums) { return sums; }
    static GPUREDUCE_HD Sums add(Sums a, Sums b) { return a + b; }
    static GPUREDUCE_HD void to_values(const Sums& sums, A (&values)[kLoadValues]) {
        memcpy(values, &sums, sizeof sums);
    }
    static Sums from_values(const A (&values)[kLoadValues]) { return load_vector<A>(values); }
};

GPUREDUCE_HD Vector<float> low_to_float(BFloat16, Vector<uint32_t> pairs) { return (Vector<float>)(pairs << 16); }
GPUREDUCE_HD Vector<float> high_to_float(BFloat16, Vector<uint32_t> pairs) {
    return (Vector<float>)(pairs & 0xffff0000u);
}

// As to_float(Half), but for a subnormal number, which is read as the last bits of 2^-14 + the number.
GPUREDUCE_HD Vector<float> half_to_float(Vector<uint32_t> bits) {
    Vector<uint32_t> const magnitude = bits & 0x7fffu;
    Vector<uint32_t> const sign = (bits & 0x8000u) << 16;
    Vector<uint32_t> const rebiased = (magnitude << 13) + (112u << 23);
    Vector<uint32_t> const normal = rebiased + ((Vector<uint32_t>)(magnitude >= 0x7c00u) & (112u << 23));
    Vector<float> const subnormal = (Vector<float>)(rebiased + (1u << 23)) - 0x1p-14f;
    return (Vector<float>)((magnitude < 0x0400u ? (Vector<uint32_t>)subnormal : normal) | sign);
}
GPUREDUCE_HD Vector<float> low_to_float(Half, Vector<uint32_t> pairs) { return half_to_float(pairs & 0xffffu); }
GPUREDUCE_HD Vector<float> high_to_float(Half, Vector<uint32_t> pairs) { return half_to_float(pairs >> 16); }

// Neighbours of a 16-bit type share 32 bits, so widening needs no shuffle, nor does the first step of the fold.
template <class E>
struct PairVectors {
    static constexpr int kLoadValues = 2 * kValues<float>;
    using Raw = Bytes<kSimdBytes>;
    struct Sums {
        Vector<float> low, high;  // elements 0, 2, 4, .. and 1, 3, 5, ..
    };

    static GPUREDUCE_HD Sums widen(Raw raw) {
        Vector<uint32_t> const pairs = (Vector<uint32_t>)raw;
        return {low_to_float(E{}, pairs), high_to_float(E{}, pairs)};
    }
    static GPUREDUCE_HD Vector<float> fold(Sums sums) { return sums.low + sums.high; }
    static GPUREDUCE_HD Sums add(Sums a, Sums b) { return {a.low + b.low, a.high + b.high}; }
    static GPUREDUCE_HD void to_values(const Sums& sums, float (&values)[kLoadValues]) {
        for (int i = 0; i < kLoadValues / 2; ++i) {
            values[2 * i] = sums.low[i];
            values[2 * i + 1] = sums.high[i];
        }
    }
    static Sums from_values(const float (&values)[kLoadValues]) {
        Sums sums;
        for (int i = 0; i < kLoadValues / 2; ++i) {
            sums.low[i] = values[2 * i];
            sums.high[i] = values[2 * i + 1];
        }
        return sums;
    }
};

template <> struct VectorsOf<float, float> : PlainVectors<float, float> {};
template <> struct VectorsOf<double, double> : PlainVectors<double, double> {};
template <> struct VectorsOf<float, double> : PlainVectors<float, double> {};
template <> struct VectorsOf<BFloat16, float> : PairVectors<BFloat16> {};
template <>
struct VectorsOf<Half, float> : std::conditional_t<kConvertsHalf, PlainVectors<Half, float>, PairVectors<Half>> {};

GPUREDUCE_HD float padding_of(float) { return -0.0f; }
GPUREDUCE_HD double padding_of(double) { return -0.0; }
GPUREDUCE_HD Half padding_of(Half) { return {0x8000}; }
GPUREDUCE_HD BFloat16 padding_of(BFloat16) { return {0x8000}; }

template <class Vectors, class E>
GPUREDUCE_HD typename Vectors::Raw read(const E* x) {  // the address may be misaligned
    typename Vectors::Raw raw;
    memcpy(&raw, x, sizeof raw);
    return raw;
}

// Of one load the first `count` elements, the rest -0.0. Memory may be read up to `end`.
template <class Vectors, class E>
GPUREDUCE_HD typename Vectors::Raw read_first(const E* x, int count, const E* end) {
    using Raw = typename Vectors::Raw;
    alignas(64) static constexpr struct {
        uint64_t ones[4] = {~0ull, ~0ull, ~0ull, ~0ull}, zeros[4] = {};
    } kMasks;
    static_assert(sizeof(Raw) <= sizeof kMasks.ones);
    E padding[Vectors::kLoadValues];
    for (int i = 0; i < Vectors::kLoadValues; ++i) padding[i] = padding_of(E{});
    if (end - x < Vectors::kLoadValues) {
        if (count > 0) memcpy(padding, x, size_t(count) * sizeof(E));
        return read<Vectors>(padding);
    }
    Raw mask;
    memcpy(&mask, reinterpret_cast<const char*>(kMasks.zeros) - size_t(count) * sizeof(E), sizeof mask);
    return (read<Vectors>(x) & mask) | (read<Vectors>(padding) & ~mask);
}
