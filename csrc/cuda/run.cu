#include "kernels.h"

namespace gpureduce::cuda {
namespace {

cudaError_t run_sum(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    switch (plan.path) {
        case Path::nothing: return cudaSuccess;
        case Path::short_row: return run_short_row(problem, plan, buffers);
        case Path::tiny_row: return run_tiny_row(problem, plan, buffers);
        case Path::staged_row: return run_staged_row(problem, plan, buffers);
        case Path::warp_row: return run_warp_row(problem, plan, buffers);
        case Path::block_row: return run_block_row(problem, plan, buffers);
        case Path::narrow_column: return run_narrow_column(problem, plan, buffers);
        case Path::thread_column: return run_thread_column(problem, plan, buffers);
        case Path::column: return run_column(problem, plan, buffers);
    }
    return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t run(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    if (plan.path == Path::nothing) return cudaSuccess;
    switch (problem.op) {
        case OpId::sum: return run_sum(problem, plan, buffers);
        case OpId::extremes:
        case OpId::extreme_magnitudes: return run_extremes(problem, plan, buffers);
        case OpId::argmin:
        case OpId::argmax: return run_args(problem, plan, buffers);
        case OpId::nonzero: return run_nonzero(problem, plan, buffers);
        case OpId::nansum: return run_nansums(problem, plan, buffers);
        case OpId::squares:
            return problem.accumulate == Accumulate::float64 ? run_norms(problem, plan, buffers)
                                                             : run_squares(problem, plan, buffers);
        case OpId::magnitudes: return run_magnitudes(problem, plan, buffers);
        case OpId::product: return run_products(problem, plan, buffers);
        case OpId::moments: return run_moments(problem, plan, buffers);
        case OpId::exponentials: return run_exponentials(problem, plan, buffers);
    }
    return cudaErrorInvalidValue;
}

}  // namespace gpureduce::cuda
