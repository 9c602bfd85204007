#include "general.cuh"

namespace gpureduce::cuda {

cudaError_t run_nonzero(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return run_general<NonzeroOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
