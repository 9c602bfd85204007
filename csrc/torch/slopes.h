// The slope of a result with respect to each element, from which backward and forward mode both follow.
#pragma once

#include <optional>

#include "gradients.h"

namespace gpureduce::binding {

// d result / d x of every element x: the factor of an incoming gradient; of complex numbers its conjugate is the factor of
// a tangent. A field that is not set counts as 1, or as everywhere.
struct Slope {
    at::Tensor elements;                // a factor for each element
    at::Tensor mask;                    // elsewhere it is 0, whatever would be multiplied by it
    at::Tensor count;                   // a divisor for each row: integers, which 16-bit floats might not hold
    std::optional<at::Scalar> divisor;  // a divisor of all
};

// Of the first result, or of the second one.
Slope slope_of(const GradientCall& call, bool of_second);

// softmax_stats: of its maximum; and of its sum of exp(x - maximum), that the maximum stays as it is.
Slope slope_of_maximum(const GradientCall& call);
Slope slope_of_exponentials(const GradientCall& call);

// The sum over the reduced dims, which stay with size 1. 16-bit floats give float32.
at::Tensor row_sum(const at::Tensor& tensor, const GradientCall& call);

// 16-bit floats as float32.
at::Tensor in_float(const at::Tensor& tensor);

}  // namespace gpureduce::binding
