#include "kernels.h"

namespace gpureduce::cuda {

cudaError_t run(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    switch (plan.path) {
        case Path::nothing: return cudaSuccess;
        case Path::short_row: return run_short_row(problem, plan, buffers);
        case Path::tiny_row: return run_tiny_row(problem, plan, buffers);
        case Path::staged_row: return run_staged_row(problem, plan, buffers);
        case Path::warp_row: return run_warp_row(problem, plan, buffers);
        case Path::block_row: return run_block_row(problem, plan, buffers);
        case Path::narrow_column: return run_narrow_column(problem, plan, buffers);
        case Path::column: return run_column(problem, plan, buffers);
    }
    return cudaErrorInvalidValue;
}

}  // namespace gpureduce::cuda
