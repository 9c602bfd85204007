// The engine for the instruction set that the compiler targets by default.
#pragma once

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
