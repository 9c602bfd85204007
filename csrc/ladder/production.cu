// production: gpureduce::sum, by the CUDA engine's one entry.
#include "../core/plan.h"
#include "../cuda/run.h"
#include "sums.h"

namespace gpureduce::ladder {
namespace {

Problem problem_of(const SumArgs& args) {
    int64_t const stride = 1;
    bool const reduced = true;
    int const misalignment = int(reinterpret_cast<uintptr_t>(args.in) % kVectorBytes);
    return make_problem(&args.n, &stride, &reduced, 1, Sum<float, float>::key, DType::float32, misalignment);
}

Plan plan_of(const SumArgs& args, const Launch& launch) { return make_plan(problem_of(args), {launch.sm_count}); }

}  // namespace

Needs Production::needs(const SumArgs& args, const Launch& launch) { return {0, plan_of(args, launch).mailbox_bytes}; }

Error Production::launch(const SumArgs& args, const Launch& launch) {
    return cuda::run(problem_of(args), plan_of(args, launch),
                     {args.in, args.out, nullptr, launch.mailbox, launch.stream});
}

}  // namespace gpureduce::ladder
