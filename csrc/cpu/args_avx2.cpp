#include "avx2.h"

namespace gpureduce::cpu {
bool args_avx2(const Task& task) { return avx2::run<ArgOps>(task); }
}  // namespace gpureduce::cpu
