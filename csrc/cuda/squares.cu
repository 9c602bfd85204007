#include "general.cuh"

namespace gpureduce::cuda {

cudaError_t run_squares(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return run_general<SquareOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
