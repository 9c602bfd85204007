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

// The entries of each list of operators.
struct Group {
    uint64_t ops;
    Run *baseline, *avx2;
};
constexpr Group kGroups[] = {
    {kinds_of(SumOps{}), sums_baseline, sums_avx2},
    {kinds_of(ExtremeOps{}), extremes_baseline, extremes_avx2},
    {kinds_of(ArgOps{}), args_baseline, args_avx2},
    {kinds_of(NonzeroOps{}), nonzero_baseline, nonzero_avx2},
    {kinds_of(NanSumOps{}), nansums_baseline, nansums_avx2},
    {kinds_of(SquareOps{}), squares_baseline, squares_avx2},
    {kinds_of(NormOps{}), norms_baseline, norms_avx2},
    {kinds_of(MagnitudeOps{}), magnitudes_baseline, magnitudes_avx2},
    {kinds_of(ProductOps{}), products_baseline, products_avx2},
    {kinds_of(MomentOps{}), moments_baseline, moments_avx2},
    {kinds_of(ExponentialOps{}), exponentials_baseline, exponentials_avx2},
};

}  // namespace

bool run(const Problem& problem, const void* in, void* out, void* second, int threads,
         const ParallelFor& parallel_for) {
    if (problem.outputs == 0) return true;
    Results const results = results_in(out, second, problem.out, problem.second, ending_of(problem));
    Task const task{problem, in, results, threads, parallel_for};
    uint64_t const kind = kind_of({problem.op, problem.in, problem.accumulate});
    for (const Group& group : kGroups)
        if (group.ops & kind) return (has_avx2() ? group.avx2 : group.baseline)(task);
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
