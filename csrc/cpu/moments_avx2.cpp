#include "avx2.h"

namespace gpureduce::cpu {
bool moments_avx2(const Task& task) { return avx2::run<MomentOps>(task); }
}  // namespace gpureduce::cpu
