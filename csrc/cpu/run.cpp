#include "run.h"

namespace gpureduce::cpu {

namespace baseline {
bool run(const Problem&, const void* in, void* out, int threads, const ParallelFor&);
}
#if defined(__x86_64__)
namespace avx2 {
bool run(const Problem&, const void* in, void* out, int threads, const ParallelFor&);
}
static bool const has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
#endif

bool run(const Problem& problem, const void* in, void* out, int threads, const ParallelFor& parallel_for) {
    if (problem.outputs == 0) return true;
#if defined(__x86_64__)
    if (has_avx2) return avx2::run(problem, in, out, threads, parallel_for);
#endif
    return baseline::run(problem, in, out, threads, parallel_for);
}

}  // namespace gpureduce::cpu
