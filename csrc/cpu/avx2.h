// The engine for AVX2, F16C and FMA, which only a written fma() uses: -ffp-contract=off.
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>

#include "../core/store.h"
#include "groups.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c,fma")
#endif
namespace gpureduce::cpu::avx2 {
inline constexpr int kSimdBytes = 32;
inline constexpr bool kConvertsHalf = true;

template <class Raw>
GPUREDUCE_HD auto halves_to_floats(Raw raw) {
    return __builtin_ia32_vcvtph2ps256((short __attribute__((vector_size(16))))raw);
}

#include "engine.h"
}  // namespace gpureduce::cpu::avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
namespace gpureduce::cpu::avx2 {
template <class Ops>
bool run(const Task&) {
    return false;
}
template <class Ops>
bool dot(const DotTask&) {
    return false;
}
template <class Elements>
bool list_norm(const ListTask&, double&) {
    return false;
}
template <class Elements>
bool list_scale(const ListTask&, double) {
    return false;
}
}  // namespace gpureduce::cpu::avx2
#endif
