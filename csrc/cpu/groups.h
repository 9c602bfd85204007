// The engine's entries: one a group of operators and instruction set, each in a file of its own.
#pragma once

#include "../core/store.h"
#include "run.h"

namespace gpureduce::cpu {

struct Task {
    const Problem& problem;
    const void* in;
    Results results;
    int threads;
    const ParallelFor& parallel_for;
};

// Each returns false for an operator that is not of its group.
using Run = bool(const Task&);
Run sums_baseline, sums_avx2;
Run extremes_baseline, extremes_avx2;
Run args_baseline, args_avx2;
Run nonzero_baseline, nonzero_avx2;

}  // namespace gpureduce::cpu
