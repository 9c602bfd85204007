#include "avx2.h"

namespace gpureduce::cpu {
bool nansums_avx2(const Task& task) { return avx2::run<NanSumOps>(task); }
}  // namespace gpureduce::cpu
