#include "avx2.h"

namespace gpureduce::cpu {
bool products_avx2(const Task& task) { return avx2::run<ProductOps>(task); }
}  // namespace gpureduce::cpu
