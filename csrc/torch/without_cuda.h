// What the operators say where gpureduce was built without CUDA.
#pragma once

#include <c10/util/Exception.h>

namespace gpureduce::binding {

// `what` is the argument, and where it is or what it needs.
template <class... What>
[[noreturn]] void refuse(const char* op, const What&... what) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, op, ": ", what...,
        ", but gpureduce was built without CUDA; rebuild it where nvcc and a torch with CUDA are installed "
        "(GPUREDUCE_CUDA=1 says what is missing)");
}

}  // namespace gpureduce::binding
