// Built in place of cuda_dot.cpp where torch or the toolkit has no CUDA.

#include <c10/util/Exception.h>

#include "dot.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

[[noreturn]] void refuse(const char* op) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, op,
        ": an input is on CUDA, but gpureduce was built without CUDA; rebuild it where nvcc and a "
        "torch with CUDA are installed (GPUREDUCE_CUDA=1 says what is missing)");
}

at::Tensor vecdot(const at::Tensor&, const at::Tensor&, int64_t, std::optional<std::string_view>) {
    refuse("gpureduce::vecdot");
}
at::Tensor& vecdot_out(const at::Tensor&, const at::Tensor&, int64_t, std::optional<std::string_view>, at::Tensor&) {
    refuse("gpureduce::vecdot");
}
at::Tensor dot(const at::Tensor&, const at::Tensor&) { refuse("gpureduce::dot"); }
at::Tensor& dot_out(const at::Tensor&, const at::Tensor&, at::Tensor&) { refuse("gpureduce::dot"); }

const Registration no_cuda_kernels(c10::DispatchKey::CUDA, [](torch::Library& m) {
    m.impl("vecdot", vecdot);
    m.impl("vecdot.out", vecdot_out);
    m.impl("dot", dot);
    m.impl("dot.out", dot_out);
});

}  // namespace
}  // namespace gpureduce::binding
