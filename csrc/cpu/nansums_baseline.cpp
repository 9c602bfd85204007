#include "baseline.h"

namespace gpureduce::cpu {
bool nansums_baseline(const Task& task) { return baseline::run<NanSumOps>(task); }
}  // namespace gpureduce::cpu
