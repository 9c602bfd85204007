#include "baseline.h"

namespace gpureduce::cpu {
bool products_baseline(const Task& task) { return baseline::run<ProductOps>(task); }
}  // namespace gpureduce::cpu
