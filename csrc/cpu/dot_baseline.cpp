#include "baseline.h"

namespace gpureduce::cpu {
bool dot_baseline(const DotTask& task) { return baseline::dot<DotOps>(task); }
}  // namespace gpureduce::cpu
