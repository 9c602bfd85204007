#include "baseline.h"

namespace gpureduce::cpu {
bool args_baseline(const Task& task) { return baseline::run<ArgOps>(task); }
}  // namespace gpureduce::cpu
