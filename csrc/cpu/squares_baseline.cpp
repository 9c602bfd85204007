#include "baseline.h"

namespace gpureduce::cpu {
bool squares_baseline(const Task& task) { return baseline::run<SquareOps>(task); }
}  // namespace gpureduce::cpu
