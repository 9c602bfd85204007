#include "baseline.h"

namespace gpureduce::cpu {
bool magnitudes_baseline(const Task& task) { return baseline::run<MagnitudeOps>(task); }
}  // namespace gpureduce::cpu
