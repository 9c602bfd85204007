#include "avx2.h"

namespace gpureduce::cpu {
bool norms_avx2(const Task& task) { return avx2::run<NormOps>(task); }
}  // namespace gpureduce::cpu
