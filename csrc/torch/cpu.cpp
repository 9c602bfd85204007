// gpureduce::sum on the CPU.

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>

#include "../cpu/run.h"
#include "out.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
    at::parallel_for(0, count, grain, body);
}

void run(const Prepared& call, const at::Tensor& input, const at::Tensor& result) {
    static cpu::ParallelFor const threads_of_torch = parallel_for;
    bool const done = cpu::run(call.problem, input.const_data_ptr(), result.mutable_data_ptr(), nullptr,
                               at::get_num_threads(), threads_of_torch);
    TORCH_INTERNAL_ASSERT(done, "gpureduce::sum: no CPU kernel for ", call.load_as, " -> ", call.result);
}

at::Tensor sum_cpu(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                   std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate) {
    auto const call = prepare({self, dim, keepdim, dtype, accumulate}, nullptr);
    if (call->load_as != self.scalar_type())
        return sum_cpu(self.to(call->load_as), dim, keepdim, call->result, accumulate);
    at::Tensor result = at::detail::empty_cpu(call->result_sizes, call->result);
    run(*call, self, result);
    return result;
}

at::Tensor& sum_out_cpu(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                        std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate,
                        at::Tensor& out) {
    return sum_into(out, {self, dim, keepdim, dtype, accumulate}, nullptr, run);
}

const Registration cpu_kernels(c10::DispatchKey::CPU, [](torch::Library& m) {
    m.impl("sum", sum_cpu);
    m.impl("sum.out", sum_out_cpu);
});

}  // namespace
}  // namespace gpureduce::binding
