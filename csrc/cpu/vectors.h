// What a leaf's loads add up to, as vectors of values to fold: vector(x, i) for i < kVectors, in order of the index.
#pragma once

#include "fold.h"

// By default there are none, and the leaf is folded value by value.
template <class E, class A>
struct LeafVectors {
    static constexpr int kVectors = 0;
};

GPUREDUCE_HD Vector<float> load_as(float, const float* x) { return load_vector<float>(x); }
GPUREDUCE_HD Vector<double> load_as(double, const double* x) { return load_vector<double>(x); }
GPUREDUCE_HD Vector<double> load_as(double, const float* x) {
    float values __attribute__((vector_size(kSimdBytes / 2)));
    memcpy(&values, x, sizeof values);
    return __builtin_convertvector(values, Vector<double>);
}
template <class E, class A>
struct PlainVectors {
    static constexpr int kLoadValues = kValues<A>;  // elements read into a vector
    static constexpr int kVectors = kLanes * components<E> / kLoadValues;

    static GPUREDUCE_HD Vector<A> first_load(const E* x, int i) { return load_as(A{}, x + i * kLoadValues); }

    static GPUREDUCE_HD Vector<A> vector(const E* x, int i) {
        Vector<A> sum = first_load(x, i);
        for (int k = 1; k < kLoads; ++k) sum += first_load(x, i + k * kVectors);
        return sum;
    }
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

// Neighbours of a 16-bit type share 32 bits, so the first step of the fold needs no shuffle.
template <class E>
struct PairVectors {
    static constexpr int kLoadValues = 2 * kValues<float>;
    static constexpr int kVectors = kLanes * components<E> / kLoadValues;

    static GPUREDUCE_HD Vector<float> first_load(const E* x, int i) {
        Vector<uint32_t> const pairs = load_vector<uint32_t>(x + i * kLoadValues);
        return low_to_float(E{}, pairs) + high_to_float(E{}, pairs);
    }

    static GPUREDUCE_HD Vector<float> vector(const E* x, int i) {
        Vector<uint32_t> pairs = load_vector<uint32_t>(x + i * kLoadValues);
        Vector<float> low = low_to_float(E{}, pairs), high = high_to_float(E{}, pairs);
        for (int k = 1; k < kLoads; ++k) {
            pairs = load_vector<uint32_t>(x + (i + k * kVectors) * kLoadValues);
            low += low_to_float(E{}, pairs);
            high += high_to_float(E{}, pairs);
        }
        return low + high;
    }
};

template <> struct LeafVectors<float, float> : PlainVectors<float, float> {};
template <> struct LeafVectors<double, double> : PlainVectors<double, double> {};
template <> struct LeafVectors<float, double> : PlainVectors<float, double> {};
template <> struct LeafVectors<BFloat16, float> : PairVectors<BFloat16> {};
template <>
struct LeafVectors<Half, float> : std::conditional_t<kConvertsHalf, PlainVectors<Half, float>, PairVectors<Half>> {};
