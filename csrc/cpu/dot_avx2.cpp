#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include "avx2.h"

namespace gpureduce::cpu {
bool dot_avx2(const DotTask& task) { return avx2::dot<DotOps>(task); }
}  // namespace gpureduce::cpu
