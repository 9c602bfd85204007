// Built in place of cuda_ladder.cpp where torch or the toolkit has no CUDA: the ladder can be read, but not climbed.

#include "ladder.h"
#include "registration.h"
#include "without_cuda.h"

namespace gpureduce::binding {
namespace {

at::Tensor ladder_without_cuda(const at::Tensor& self, std::string_view rung, const std::optional<at::Tensor>& other) {
    check_ladder(self, rung, other);
    refuse("gpureduce::ladder", "rung '", rung, "' runs on CUDA");
}

const Registration no_cuda_ladder_kernels(c10::DispatchKey::CUDA,
                                          [](torch::Library& m) { m.impl("ladder", ladder_without_cuda); });
const Registration cpu_ladder_kernels(c10::DispatchKey::CPU,
                                      [](torch::Library& m) { m.impl("ladder", ladder_without_cuda); });

}  // namespace
}  // namespace gpureduce::binding
