#include "baseline.h"

namespace gpureduce::cpu {
bool moments_baseline(const Task& task) { return baseline::run<MomentOps>(task); }
}  // namespace gpureduce::cpu
