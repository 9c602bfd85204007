#include "avx2.h"

namespace gpureduce::cpu {
bool squares_avx2(const Task& task) { return avx2::run<SquareOps>(task); }
}  // namespace gpureduce::cpu
