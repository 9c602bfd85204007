#include "avx2.h"

namespace gpureduce::cpu {
bool exponentials_avx2(const Task& task) { return avx2::run<ExponentialOps>(task); }
}  // namespace gpureduce::cpu
