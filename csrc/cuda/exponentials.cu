#include "general.cuh"

namespace gpureduce::cuda {

cudaError_t run_exponentials(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return run_general<ExponentialOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
