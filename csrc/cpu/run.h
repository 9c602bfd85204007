// The CPU engine's one entry.
#pragma once

#include <functional>

#include "../core/dot.h"
#include "../core/list.h"

namespace gpureduce::cpu {

// Runs body(begin, end) over disjoint ranges that cover [0, count), possibly on several threads, at least `grain` each.
using ParallelFor =
    std::function<void(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body)>;

// Writes problem.outputs results to `out`, contiguous, and second results, if `second` is not null, to that. `threads` is how many may run at once. False if no kernel fits.
bool run(const Problem& problem, const void* in, void* out, void* second, int threads, const ParallelFor& parallel_for);

// Sums of products, problem.outputs of them; as run.
bool run_dot(const DotProblem& problem, const void* x, const void* y, void* out, int threads,
             const ParallelFor& parallel_for);

// The norm of a list of tensors; and each of them multiplied by a number.
bool run_list_norm(const ListProblem& problem, int threads, const ParallelFor& parallel_for, double& norm);
bool run_list_scale(const ListProblem& problem, int threads, const ParallelFor& parallel_for, double factor);

}  // namespace gpureduce::cpu
