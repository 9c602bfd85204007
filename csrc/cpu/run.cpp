#include "run.h"

#include "groups.h"

namespace gpureduce::cpu {

bool has_avx2() {
#if defined(__x86_64__)
    static bool const has =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("fma");
    return has;
#else
    return false;
#endif
}

namespace {

// Of a group, the entry for this machine.
bool run_group(Run* baseline, Run* avx2, const Task& task) { return has_avx2() ? avx2(task) : baseline(task); }

}  // namespace

bool run(const Problem& problem, const void* in, void* out, void* second, int threads,
         const ParallelFor& parallel_for) {
    if (problem.outputs == 0) return true;
    Results const results = results_in(out, second, problem.out, problem.second, ending_of(problem));
    Task const task{problem, in, results, threads, parallel_for};
    switch (problem.op) {
        case OpId::sum: return run_group(sums_baseline, sums_avx2, task);
        case OpId::extremes:
        case OpId::extreme_magnitudes: return run_group(extremes_baseline, extremes_avx2, task);
        case OpId::argmin:
        case OpId::argmax: return run_group(args_baseline, args_avx2, task);
        case OpId::nonzero: return run_group(nonzero_baseline, nonzero_avx2, task);
        case OpId::nansum: return run_group(nansums_baseline, nansums_avx2, task);
        case OpId::squares:
            if (problem.accumulate == Accumulate::float64) return run_group(norms_baseline, norms_avx2, task);
            return run_group(squares_baseline, squares_avx2, task);
        case OpId::magnitudes: return run_group(magnitudes_baseline, magnitudes_avx2, task);
        case OpId::product: return run_group(products_baseline, products_avx2, task);
        case OpId::moments: return run_group(moments_baseline, moments_avx2, task);
        case OpId::exponentials: return run_group(exponentials_baseline, exponentials_avx2, task);
    }
    return false;
}

bool run_dot(const DotProblem& problem, const void* x, const void* y, void* out, int threads,
             const ParallelFor& parallel_for) {
    if (problem.outputs == 0) return true;
    Results const results{out, nullptr, problem.in, problem.in, ending_of(problem)};
    DotTask const task{problem, x, y, results, threads, parallel_for};
    return has_avx2() ? dot_avx2(task) : dot_baseline(task);
}

bool run_list_norm(const ListProblem& problem, int threads, const ParallelFor& parallel_for, double& norm) {
    ListTask const task{problem, threads, parallel_for};
    return has_avx2() ? list_norm_avx2(task, norm) : list_norm_baseline(task, norm);
}

bool run_list_scale(const ListProblem& problem, int threads, const ParallelFor& parallel_for, double factor) {
    ListTask const task{problem, threads, parallel_for};
    return has_avx2() ? list_scale_avx2(task, factor) : list_scale_baseline(task, factor);
}

}  // namespace gpureduce::cpu
