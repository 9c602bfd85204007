#include "kernels.h"
#include "warp_row.cuh"

namespace gpureduce::cuda {

cudaError_t run_warp_row(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return launch_warp_row<SumOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
