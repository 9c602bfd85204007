// The engine for the instruction set that the compiler targets by default.
#pragma once

// On x86 few machines come here, and half of the time to compile it is saved.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O1")
#endif

#include <cstdlib>
#include <cstring>
#include <new>

#include "../core/store.h"
#include "groups.h"

namespace gpureduce::cpu::baseline {
inline constexpr int kSimdBytes = 16;
inline constexpr bool kConvertsHalf = false;

#include "engine.h"
}  // namespace gpureduce::cpu::baseline
