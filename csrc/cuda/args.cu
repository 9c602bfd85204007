#include "general.cuh"

namespace gpureduce::cuda {

cudaError_t run_args(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return run_general<ArgOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
