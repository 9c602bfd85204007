#include "general.cuh"

namespace gpureduce::cuda {

cudaError_t run_moments(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return run_general<MomentOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
