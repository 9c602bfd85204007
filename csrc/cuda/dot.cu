#include "kernels.h"

namespace gpureduce::cuda {

cudaError_t run_dot(const DotProblem& problem, const Plan& plan, const DotBuffers& buffers) {
    switch (plan.path) {
        case Path::nothing: return cudaSuccess;
        case Path::short_row: return run_dot_short_row(problem, plan, buffers);
        case Path::warp_row:
        case Path::block_row: return run_dot_row(problem, plan, buffers);
        case Path::column: return run_dot_column(problem, plan, buffers);
        default: return cudaErrorInvalidValue;
    }
}

}  // namespace gpureduce::cuda
