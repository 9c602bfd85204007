#include "avx2.h"

namespace gpureduce::cpu {
bool list_norm_avx2(const ListTask& task, double& norm) { return avx2::list_norm<ListTypes>(task, norm); }
bool list_scale_avx2(const ListTask& task, double factor) { return avx2::list_scale<ListTypes>(task, factor); }
}  // namespace gpureduce::cpu
