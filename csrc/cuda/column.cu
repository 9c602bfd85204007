#include "column.cuh"
#include "kernels.h"

namespace gpureduce::cuda {

cudaError_t run_column(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return launch_column<SumOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
