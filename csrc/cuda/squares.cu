#include "general.cuh"
#include "transposed_row.cuh"

namespace gpureduce::cuda {

cudaError_t run_squares(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    if (plan.path == Path::transposed_row) return launch_transposed_row<SquareOps>(problem, plan, buffers);
    return run_general<SquareOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
