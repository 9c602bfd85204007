#include "baseline.h"

namespace gpureduce::cpu {
bool nonzero_baseline(const Task& task) { return baseline::run<NonzeroOps>(task); }
}  // namespace gpureduce::cpu
