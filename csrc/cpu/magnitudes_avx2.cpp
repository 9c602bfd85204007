#include "avx2.h"

namespace gpureduce::cpu {
bool magnitudes_avx2(const Task& task) { return avx2::run<MagnitudeOps>(task); }
}  // namespace gpureduce::cpu
