// torch's element types as the kernels name them.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "../core/dtype.h"

namespace gpureduce::binding {

inline std::optional<DType> element_of(at::ScalarType type) {
    switch (type) {
        case at::kDouble: return DType::float64;
        case at::kFloat: return DType::float32;
        case at::kHalf: return DType::float16;
        case at::kBFloat16: return DType::bfloat16;
        case at::kLong: return DType::int64;
        case at::kInt: return DType::int32;
        case at::kShort: return DType::int16;
        case at::kChar: return DType::int8;
        case at::kByte: return DType::uint8;
        case at::kBool: return DType::boolean;
        case at::kComplexFloat: return DType::complex64;
        case at::kComplexDouble: return DType::complex128;
        default: return std::nullopt;
    }
}

}  // namespace gpureduce::binding
