#include "general.cuh"

namespace gpureduce::cuda {

cudaError_t run_norms(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return run_general<NormOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
