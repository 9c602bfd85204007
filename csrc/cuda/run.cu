#include "kernels.h"

namespace gpureduce::cuda {
namespace {

cudaError_t run_sum(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    switch (plan.path) {
        case Path::nothing: return cudaSuccess;
        case Path::short_row: return run_short_row(problem, plan, buffers);
        case Path::tiny_row: return run_tiny_row(problem, plan, buffers);
        case Path::thread_row: return run_thread_row(problem, plan, buffers);
        case Path::staged_row: return run_staged_row(problem, plan, buffers);
        case Path::warp_row: return run_warp_row(problem, plan, buffers);
        case Path::block_row: return run_block_row(problem, plan, buffers);
        case Path::transposed_row: return run_transposed_row(problem, plan, buffers);
        case Path::narrow_column: return run_narrow_column(problem, plan, buffers);
        case Path::staged_column: return run_staged_column(problem, plan, buffers);
        case Path::thread_column: return run_thread_column(problem, plan, buffers);
        case Path::batch_column: return run_batch_column(problem, plan, buffers);
        case Path::column: return run_column(problem, plan, buffers);
    }
    return cudaErrorInvalidValue;
}

// The entry of each list of operators.
struct Group {
    uint64_t ops;
    cudaError_t (*run)(const Problem&, const Plan&, const Buffers&);
};
constexpr Group kGroups[] = {
    {kinds_of(SumOps{}), run_sum},
    {kinds_of(ExtremeOps{}), run_extremes},
    {kinds_of(ArgOps{}), run_args},
    {kinds_of(NonzeroOps{}), run_nonzero},
    {kinds_of(NanSumOps{}), run_nansums},
    {kinds_of(SquareOps{}), run_squares},
    {kinds_of(NormOps{}), run_norms},
    {kinds_of(MagnitudeOps{}), run_magnitudes},
    {kinds_of(ProductOps{}), run_products},
    {kinds_of(MomentOps{}), run_moments},
    {kinds_of(ExponentialOps{}), run_exponentials},
};

}  // namespace

cudaError_t run(const Problem& problem, const Plan& plan, const Buffers& buffers) {
    if (plan.path == Path::nothing) return cudaSuccess;
    uint64_t const kind = kind_of({problem.op, problem.in, problem.accumulate});
    for (const Group& group : kGroups)
        if (group.ops & kind) return group.run(problem, plan, buffers);
    return cudaErrorInvalidValue;
}

}  // namespace gpureduce::cuda
