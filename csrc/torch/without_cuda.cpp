// Built in place of the CUDA files where torch or the toolkit has no CUDA: says so when it is handed a CUDA tensor.

#include <c10/util/Exception.h>

#include "reduce.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

[[noreturn]] void refuse(const at::Tensor& self) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "gpureduce::sum: self is on ", self.device(),
        ", but gpureduce was built without CUDA; rebuild it where nvcc and a torch with CUDA are "
        "installed (GPUREDUCE_CUDA=1 says what is missing)");
}

at::Tensor sum_without_cuda(const at::Tensor& self, at::OptionalIntArrayRef, bool, std::optional<at::ScalarType>,
                            std::optional<std::string_view>) {
    refuse(self);
}

at::Tensor& sum_out_without_cuda(const at::Tensor& self, at::OptionalIntArrayRef, bool, std::optional<at::ScalarType>,
                                 std::optional<std::string_view>, at::Tensor&) {
    refuse(self);
}

const Registration no_cuda_kernels(c10::DispatchKey::CUDA, [](torch::Library& m) {
    m.impl("sum", sum_without_cuda);
    m.impl("sum.out", sum_out_without_cuda);
});

}  // namespace
}  // namespace gpureduce::binding
