#include "general.cuh"

namespace gpureduce::cuda {

cudaError_t run_products(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    return run_general<ProductOps>(problem, plan, buffers);
}

}  // namespace gpureduce::cuda
