// Built in place of cuda_dot.cpp where torch or the toolkit has no CUDA.

#include "dot.h"
#include "registration.h"
#include "without_cuda.h"

namespace gpureduce::binding {
namespace {

at::Tensor vecdot_without_cuda(const at::Tensor&, const at::Tensor&, int64_t, std::optional<std::string_view>) {
    refuse("gpureduce::vecdot", "an input is on CUDA");
}
at::Tensor& vecdot_out_without_cuda(const at::Tensor&, const at::Tensor&, int64_t, std::optional<std::string_view>,
                                    at::Tensor&) {
    refuse("gpureduce::vecdot", "an input is on CUDA");
}
at::Tensor dot_without_cuda(const at::Tensor&, const at::Tensor&) { refuse("gpureduce::dot", "an input is on CUDA"); }
at::Tensor& dot_out_without_cuda(const at::Tensor&, const at::Tensor&, at::Tensor&) {
    refuse("gpureduce::dot", "an input is on CUDA");
}

const Registration no_cuda_dot_kernels(c10::DispatchKey::CUDA, [](torch::Library& m) {
    m.impl("vecdot", vecdot_without_cuda);
    m.impl("vecdot.out", vecdot_out_without_cuda);
    m.impl("dot", dot_without_cuda);
    m.impl("dot.out", dot_out_without_cuda);
});

}  // namespace
}  // namespace gpureduce::binding
