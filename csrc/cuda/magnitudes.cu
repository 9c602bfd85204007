#include "general.cuh"
#include "transposed_row.cuh"

namespace gpureduce::cuda {

cudaError_t run_magnitudes(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    if (plan.path == Path::transposed_row) return launch_transposed_row<MagnitudeOps>(problem, plan, buffers);
    return run_general<MagnitudeOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
