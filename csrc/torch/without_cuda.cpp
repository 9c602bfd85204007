// Built in place of the CUDA files where torch or the toolkit has no CUDA: says so when it is handed a CUDA tensor.

#include <c10/util/Exception.h>

#include "kernels.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

struct WithoutCuda {
    static constexpr bool composes = false;
    template <size_t Row>
    static ResultOf<Row> run(const Call& call) {
        TORCH_CHECK_NOT_IMPLEMENTED(
            false, "gpureduce::", call.op.name, ": self is on ", call.self.device(),
            ", but gpureduce was built without CUDA; rebuild it where nvcc and a torch with CUDA are "
            "installed (GPUREDUCE_CUDA=1 says what is missing)");
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
