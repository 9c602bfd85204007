#include "baseline.h"

namespace gpureduce::cpu {
bool extremes_baseline(const Task& task) { return baseline::run<ExtremeOps>(task); }
}  // namespace gpureduce::cpu
