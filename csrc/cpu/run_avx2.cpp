// The engine for AVX2 (no fma: a contraction would change bits).
#include <cstdlib>
#include <cstring>
#include <new>

#include "../core/store.h"
#include "run.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
namespace gpureduce::cpu::avx2 {
#include "engine.h"
}
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
