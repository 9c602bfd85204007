#include "run.h"

#include <cstring>
#include <utility>
#include <vector>

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

bool run_group(const Problem& problem, const void* in, void* out, void* second, int threads,
               const ParallelFor& parallel_for) {
    Results const results = results_in(out, second, problem.out, problem.second, ending_of(problem));
    Task const task{problem, in, results, threads, parallel_for};
    uint64_t const kind = kind_of({problem.op, problem.in, problem.accumulate});
    for (const Group& group : kGroups)
        if (group.ops & kind) return (has_avx2() ? group.avx2 : group.baseline)(task);
    return false;
}

bool is_repeated(const Axis& axis) { return axis.stride == 0; }
bool repeats(const Problem& p) {
    for (int d = 0; d < p.kept.count; ++d)
        if (is_repeated(p.kept.axis[d])) return true;
    return false;
}

// A problem whose kept axes are in part those of an expanded tensor, along which results are repeated.
class Expanded {
  public:
    explicit Expanded(const Problem& p) : once(p), results(p.kept) {
        for (int i = 1; i < results.count; ++i)  // in the order of the results
            for (int j = i; j > 0 && results.axis[j - 1].out_stride < results.axis[j].out_stride; --j)
                std::swap(results.axis[j - 1], results.axis[j]);
        once.outputs = 1;
        for (int d = results.count - 1; d >= 0; --d) {
            Axis& axis = results.axis[d];
            int64_t const stride = is_repeated(axis) ? 0 : once.outputs;
            for (int k = 0; k < p.kept.count; ++k)
                if (p.kept.axis[k].out_stride == axis.out_stride) once.kept.axis[k].out_stride = stride;
            axis.out_stride = stride;
            if (!is_repeated(axis)) once.outputs *= axis.size;
        }
        once.kept.count = 0;
        for (int d = 0; d < p.kept.count; ++d)
            if (!is_repeated(p.kept.axis[d])) once.kept.axis[once.kept.count++] = once.kept.axis[d];
    }

    // The problem of the results that differ.
    Problem once;

    // Copies those to where all are; returns what is behind them.
    char* copy(const char* from, char* to, int64_t bytes, int d = 0) const {
        if (d == results.count) {
            std::memcpy(to, from, size_t(bytes));
            return to + bytes;
        }
        Axis const& axis = results.axis[d];
        if (!is_repeated(axis)) {
            if (d + 1 == results.count) return copy(from, to, axis.size * bytes, d + 1);
            for (int64_t i = 0; i < axis.size; ++i) to = copy(from + i * axis.out_stride * bytes, to, bytes, d + 1);
            return to;
        }
        char* const first = to;
        to = copy(from, to, bytes, d + 1);
        size_t const length = size_t(to - first);
        for (int64_t i = 1; i < axis.size; ++i, to += length) std::memcpy(to, first, length);
        return to;
    }

  private:
    AxisList results;
};

bool run_expanded(const Problem& problem, const void* in, void* out, void* second, int threads,
                  const ParallelFor& parallel_for) {
    Expanded const expanded(problem);
    int64_t const bytes = dtype_info(problem.out).bytes, second_bytes = second ? dtype_info(problem.second).bytes : 0;
    std::vector<char> some(size_t(expanded.once.outputs * bytes)),
        seconds(size_t(expanded.once.outputs * second_bytes));
    void* const beside = second ? seconds.data() : nullptr;
    if (!run_group(expanded.once, in, some.data(), beside, threads, parallel_for)) return false;
    expanded.copy(some.data(), static_cast<char*>(out), bytes);
    if (second) expanded.copy(seconds.data(), static_cast<char*>(second), second_bytes);
    return true;
}

}  // namespace

bool run(const Problem& problem, const void* in, void* out, void* second, int threads,
         const ParallelFor& parallel_for) {
    if (problem.outputs == 0) return true;
    return (repeats(problem) ? run_expanded : run_group)(problem, in, out, second, threads, parallel_for);
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
