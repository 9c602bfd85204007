// Element types: torch's and the kernels', and the types of an operator's results.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "../core/dtype.h"
#include "call.h"

namespace gpureduce::binding {

// Nothing where the kernels do not know the type.
std::optional<DType> element_of(at::ScalarType type);
// Throws there; `what` has it: "self", "a result".
DType dtype_of(at::ScalarType type, const Operator& op, const char* what);
at::ScalarType scalar_type_of(DType dtype);

struct ResultTypes {
    at::ScalarType first, second;
};

// torch's rules for the operator: what comes out, and which types of self and of dtype= are refused.
ResultTypes result_types(const Call& call);

}  // namespace gpureduce::binding
