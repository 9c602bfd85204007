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
Run nansums_baseline, nansums_avx2;
Run squares_baseline, squares_avx2;
Run norms_baseline, norms_avx2;
Run magnitudes_baseline, magnitudes_avx2;
Run products_baseline, products_avx2;
Run moments_baseline, moments_avx2;
Run exponentials_baseline, exponentials_avx2;

// Whether this machine has what the avx2 entries need.
bool has_avx2();

struct DotTask {
    const DotProblem& problem;
    const void* x;
    const void* y;
    Results results;
    int threads;
    const ParallelFor& parallel_for;
};
using RunDot = bool(const DotTask&);
RunDot dot_baseline, dot_avx2;

struct ListTask {
    const ListProblem& problem;
    int threads;
    const ParallelFor& parallel_for;
};
using RunListNorm = bool(const ListTask&, double& norm);
RunListNorm list_norm_baseline, list_norm_avx2;
using RunListScale = bool(const ListTask&, double factor);
RunListScale list_scale_baseline, list_scale_avx2;

}  // namespace gpureduce::cpu
