#include "avx2.h"

namespace gpureduce::cpu {
bool extremes_avx2(const Task& task) { return avx2::run<ExtremeOps>(task); }
}  // namespace gpureduce::cpu
