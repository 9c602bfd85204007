// Built in place of the CUDA files where torch or the toolkit has no CUDA: says so when it is handed a CUDA tensor.

#include "without_cuda.h"

#include "kernels.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

struct WithoutCuda {
    static constexpr bool composes = false;
    template <size_t Row>
    static ResultOf<Row> run(const Call& call) {
        refuse(full_name(call.op).c_str(), "self is on ", call.self.device());
    }
    template <size_t Row>
    static void run_out(const Call& call, at::Tensor* const*) {
        run<Row>(call);
    }
};

const Registration no_cuda_kernels(c10::DispatchKey::CUDA, [](torch::Library& m) {
    add_plain<WithoutCuda>(m);
    add_out<WithoutCuda>(m);
});

}  // namespace
}  // namespace gpureduce::binding
