// The launchers of sums, one a kernel family; each needs plan.path to be its own. And those of the other groups of operators.
#pragma once

#include "run.h"

namespace gpureduce::cuda {

cudaError_t run_short_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_tiny_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_thread_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_staged_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_warp_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_block_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_transposed_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_narrow_column(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_staged_column(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_thread_column(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_batch_column(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_column(const Problem& problem, const Plan& plan, const Buffers& buffers);

cudaError_t run_dot_short_row(const DotProblem& problem, const Plan& plan, const DotBuffers& buffers);
cudaError_t run_dot_row(const DotProblem& problem, const Plan& plan, const DotBuffers& buffers);
cudaError_t run_dot_column(const DotProblem& problem, const Plan& plan, const DotBuffers& buffers);

cudaError_t run_extremes(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_args(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_nonzero(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_nansums(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_squares(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_norms(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_magnitudes(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_products(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_moments(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_exponentials(const Problem& problem, const Plan& plan, const Buffers& buffers);

}  // namespace gpureduce::cuda
