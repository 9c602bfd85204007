#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include "avx2.h"

namespace gpureduce::cpu {
bool sums_avx2(const Task& task) { return avx2::run<SumOps>(task); }
}  // namespace gpureduce::cpu
