#include "baseline.h"

namespace gpureduce::cpu {
bool norms_baseline(const Task& task) { return baseline::run<NormOps>(task); }
}  // namespace gpureduce::cpu
