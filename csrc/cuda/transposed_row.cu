#include "transposed_row.cuh"

#include "kernels.h"

namespace gpureduce::cuda {

cudaError_t run_transposed_row(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return launch_transposed_row<SumOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
