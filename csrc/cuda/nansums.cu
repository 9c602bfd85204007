#include "general.cuh"

namespace gpureduce::cuda {

cudaError_t run_nansums(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return run_general<NanSumOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
