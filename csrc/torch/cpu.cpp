// The operators on the CPU.

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>

#include "../cpu/run.h"
#include "kernels.h"
#include "out.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
    at::parallel_for(0, count, grain, body);
}

void run(const Operator& op, const Prepared& call, const at::Tensor& input, const at::Tensor& first,
         const at::Tensor& second) {
    static cpu::ParallelFor const threads_of_torch = parallel_for;
    void* const beside = second.defined() ? second.mutable_data_ptr() : nullptr;
    bool const done = cpu::run(call.problem, input.const_data_ptr(), first.mutable_data_ptr(), beside,
                               at::get_num_threads(), threads_of_torch);
    TORCH_INTERNAL_ASSERT(done, "gpureduce::", op.name, ": no CPU kernel for ", call.load_as, " -> ", call.result);
}

template <class R>
R reduce(const Call& call) {
    auto const prepared = prepare(call, nullptr);
    if (prepared->load_as != call.self.scalar_type()) return reduce<R>(call.of(converted(call, prepared->load_as)));
    at::Tensor first = at::detail::empty_cpu(prepared->result_sizes, prepared->result), second;
    if constexpr (!std::is_same_v<R, at::Tensor>)
        second = at::detail::empty_cpu(prepared->result_sizes, prepared->second_result);
    run(call.op, *prepared, call.self, first, second);
    return as_results<R>(std::move(first), std::move(second));
}

struct Cpu {
    static constexpr bool composes = true;
    template <size_t Row>
    static ResultOf<Row> run(const Call& call) {
        return reduce<ResultOf<Row>>(call);
    }
    template <size_t Row>
    static void run_out(const Call& call, at::Tensor* const* outs) {
        reduce_into(outs, call, nullptr, gpureduce::binding::run);
    }
};

const Registration cpu_kernels(c10::DispatchKey::CPU, [](torch::Library& m) {
    add_plain<Cpu>(m);
    add_out<Cpu>(m);
});

}  // namespace
}  // namespace gpureduce::binding
