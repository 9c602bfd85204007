// The launchers, one a kernel family. Each needs plan.path to be its own.
#pragma once

#include "run.h"

namespace gpureduce::cuda {

cudaError_t run_short_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_tiny_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_staged_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_warp_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_block_row(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_narrow_column(const Problem& problem, const Plan& plan, const Buffers& buffers);
cudaError_t run_column(const Problem& problem, const Plan& plan, const Buffers& buffers);

}  // namespace gpureduce::cuda
