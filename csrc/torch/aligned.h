// Inputs whose elements lie where their type allows.
#pragma once

#include <ATen/core/Tensor.h>

namespace gpureduce::binding {

// Elements at addresses that their type does not allow are rare enough to be copied.
inline at::Tensor with_aligned_elements(const at::Tensor& tensor) {
    bool const aligned = reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % tensor.element_size() == 0;
    return aligned ? tensor : tensor.clone();
}

}  // namespace gpureduce::binding
