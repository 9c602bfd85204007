#include "avx2.h"

namespace gpureduce::cpu {
bool nonzero_avx2(const Task& task) { return avx2::run<NonzeroOps>(task); }
}  // namespace gpureduce::cpu
