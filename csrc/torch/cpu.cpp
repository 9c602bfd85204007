// gpureduce::sum on the CPU.

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>

#include "../cpu/run.h"
#include "reduce.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
    at::parallel_for(0, count, grain, body);
}

at::Tensor sum_cpu(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                   std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate) {
    Reduction const reduction = check_sum({self, dim, keepdim, dtype, accumulate});
    auto const input = input_of(self, reduction);
    at::Tensor result = at::detail::empty_cpu(result_sizes<at::DimVector>(self.sizes(), reduction), reduction.result);
    if (result.numel() == 0) return result;

    static cpu::ParallelFor const threads_of_torch = parallel_for;
    bool const done = cpu::run(problem_of(*input, reduction), input->const_data_ptr(), result.mutable_data_ptr(),
                               at::get_num_threads(), threads_of_torch);
    TORCH_INTERNAL_ASSERT(done, "gpureduce::sum: no CPU kernel for ", reduction.load_as, " -> ", reduction.result);
    return result;
}

const Registration cpu_kernels(c10::DispatchKey::CPU, [](torch::Library& m) { m.impl("sum", sum_cpu); });

}  // namespace
}  // namespace gpureduce::binding
