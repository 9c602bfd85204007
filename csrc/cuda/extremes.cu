#include "general.cuh"

namespace gpureduce::cuda {

cudaError_t run_extremes(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return run_general<ExtremeOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
