// The gradients of all operators: one formula, backward and forward, for each rule of a closed set.
//
// A formula is made of this project's operators and aten's, each differentiable, so it differentiates and fuses in its turn
// (double backward, compiled autograd). A gradient may be undefined (no gradient there), may have any strides, also 0, and
// may be complex where self is real.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>
#include <torch/csrc/autograd/variable.h>

#include <vector>

namespace gpureduce::binding {

enum class GradientRule : uint8_t {
    none,      // not differentiable: counts, indices, truth
    total,     // sum: linear
    mean,      // linear
    nantotal,  // nansum
    nanmean,
    squares,   // sumsq
    product,   // prod
    extreme,   // amax, amin, max, min: shared by all elements that equal the result
    extremes,  // aminmax, two results, each shared so
    indexed,   // max.dim, min.dim: (value, index), to the element of the index
    norm,      // parameter: ord, any
    variance,  // parameter: correction
    deviation,
    variance_and_mean,   // two results
    deviation_and_mean,  // two results
    logsumexp,
    softmax_stats,  // two results: maximum, sum of exp(x - maximum)
};

// Which tensors of a call a rule wants to find in its GradientCall; the others are undefined there.
struct Saves {
    bool self = false, first = false, second = false;
};
constexpr Saves saves_of(GradientRule rule) {
    switch (rule) {
        case GradientRule::none:
        case GradientRule::total:
        case GradientRule::mean: return {};
        case GradientRule::nantotal:
        case GradientRule::nanmean:
        case GradientRule::squares:
        case GradientRule::product:
        case GradientRule::variance: return {true};
        case GradientRule::extreme:
        case GradientRule::norm:
        case GradientRule::deviation:
        case GradientRule::logsumexp: return {true, true};
        case GradientRule::variance_and_mean: return {true, false, true};
        case GradientRule::indexed: return {false, false, true};
        case GradientRule::extremes:
        case GradientRule::deviation_and_mean:
        case GradientRule::softmax_stats: return {true, true, true};
    }
    return {};
}
// Whether the tangent of the result is the operator of the tangent; it is then not asked of `forward`.
constexpr bool is_linear(GradientRule rule) { return rule == GradientRule::total || rule == GradientRule::mean; }
// Whether the second result has a gradient, too.
constexpr bool has_second_gradient(GradientRule rule) {
    return rule == GradientRule::extremes || rule == GradientRule::variance_and_mean ||
           rule == GradientRule::deviation_and_mean || rule == GradientRule::softmax_stats;
}

// What a formula may know of a call.
struct GradientCall {
    GradientRule rule = GradientRule::none;
    std::vector<c10::SymInt> sizes;  // of self
    int64_t reduced = 0;             // bit d: dim d of self is reduced. A 0-d self has none
    bool keepdim = false;
    double parameter = 0;
    at::ScalarType self_type = at::kFloat;
    at::ScalarType result_type = at::kFloat;  // of the first result
    at::Tensor self, first, second;           // defined where saves_of(rule) says so
};

// --- for formulas ---------------------------------------------------------------------------------------------------

// The reduced dims in rising order; of a 0-d self none.
std::vector<int64_t> reduced_dims(const GradientCall& call);

// Elements reduced into one result.
c10::SymInt reduced_count(const GradientCall& call);

// A result, or its gradient, with size 1 where the call has lost a dim, so that it broadcasts against self. As it is
// where it is undefined.
at::Tensor with_kept_dims(const at::Tensor& result, const GradientCall& call);

// The way back: of a tensor that has size 1 at the reduced dims, a tensor of the result's shape.
at::Tensor without_lost_dims(const at::Tensor& tensor, const GradientCall& call);

// `gradient` as one of a tensor of self's type: its real part where self is real, converted. As it is where undefined.
at::Tensor as_self_type(at::Tensor gradient, const GradientCall& call);

// --- the formulas ---------------------------------------------------------------------------------------------------

// The gradient of self, from the gradients of the results (one or two; undefined ones count as 0).
torch::autograd::variable_list backward(const GradientCall& call, const torch::autograd::variable_list& gradients);

// The tangents of the results, from that of self: as many as the operator has results, undefined for an index. `call` has
// self without its tangent, and the results.
torch::autograd::variable_list forward(const GradientCall& call, const at::Tensor& tangent);

}  // namespace gpureduce::binding
