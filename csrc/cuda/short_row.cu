#include "kernels.h"
#include "short_row.cuh"

namespace gpureduce::cuda {

cudaError_t run_short_row(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return launch_short_row<SumOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
