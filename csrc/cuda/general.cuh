// The kernels that suffice for any operator, for one group of them.
#pragma once

#include "block_row.cuh"
#include "column.cuh"
#include "kernels.h"
#include "short_row.cuh"
#include "warp_row.cuh"

namespace gpureduce::cuda {

template <class Ops>
cudaError_t run_general(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    switch (plan.path) {
        case Path::short_row: return launch_short_row<Ops>(problem, plan, buffers);
        case Path::warp_row: return launch_warp_row<Ops>(problem, plan, buffers);
        case Path::block_row: return launch_block_row<Ops>(problem, plan, buffers);
        case Path::column: return launch_column<Ops>(problem, plan, buffers);
        default: return cudaErrorInvalidValue;
    }
}

}  // namespace gpureduce::cuda
