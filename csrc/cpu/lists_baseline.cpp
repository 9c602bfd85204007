#include "baseline.h"

namespace gpureduce::cpu {
bool list_norm_baseline(const ListTask& task, double& norm) { return baseline::list_norm<ListTypes>(task, norm); }
bool list_scale_baseline(const ListTask& task, double factor) { return baseline::list_scale<ListTypes>(task, factor); }
}  // namespace gpureduce::cpu
