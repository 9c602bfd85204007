#include "baseline.h"

namespace gpureduce::cpu {
bool exponentials_baseline(const Task& task) { return baseline::run<ExponentialOps>(task); }
}  // namespace gpureduce::cpu
