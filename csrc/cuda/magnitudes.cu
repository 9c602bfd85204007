#include "general.cuh"

namespace gpureduce::cuda {

cudaError_t run_magnitudes(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return run_general<MagnitudeOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
