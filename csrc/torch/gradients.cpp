#include "gradients.h"

#include <ATen/ATen.h>

#include "slopes.h"

namespace gpureduce::binding {

using torch::autograd::variable_list;

namespace {

bool is_reduced(const GradientCall& call, size_t d) { return call.reduced >> d & 1; }

// The number of elements that are not 0 has none.
bool is_flat(const GradientCall& call) {
    return call.rule == GradientRule::none || (call.rule == GradientRule::norm && call.parameter == 0);
}

// What has a value a row is divided and converted before it is spread over the elements.
at::Tensor backward_by(const Slope& slope, at::Tensor gradient, const GradientCall& call) {
    gradient = with_kept_dims(gradient, call);
    if (slope.count.defined()) gradient = in_float(gradient).div(slope.count);
    if (slope.divisor) gradient = in_float(gradient).div(*slope.divisor);
    if (slope.elements.defined()) gradient = gradient * slope.elements;
    gradient = as_self_type(gradient, call);
    if (slope.mask.defined()) return at::where(slope.mask, gradient, 0);
    return slope.elements.defined() ? gradient : gradient.expand_symint(call.sizes);
}

// A tangent of the result's type, which is real where a variance or a norm is, but not of a mean beside it.
at::Tensor forward_by(const Slope& slope, at::Tensor tangent, at::ScalarType type, const GradientCall& call) {
    if (slope.elements.defined()) tangent = slope.elements.conj() * tangent;
    if (slope.mask.defined()) tangent = at::where(slope.mask, tangent, 0);
    if (tangent.is_complex() && !at::isComplexType(type)) tangent = at::real(tangent);
    at::Tensor result = row_sum(tangent, call);
    if (slope.count.defined()) result = result.div(slope.count);
    if (slope.divisor) result = result.div(*slope.divisor);
    return without_lost_dims(result.to(type), call);
}

int64_t the_dim(const GradientCall& call) {
    auto const dims = reduced_dims(call);
    return dims.empty() ? 0 : dims[0];
}

at::Tensor indexed_backward(const GradientCall& call, const at::Tensor& gradient) {
    return at::value_selecting_reduction_backward_symint(gradient, the_dim(call), call.second, call.sizes,
                                                         call.keepdim);
}

// Where the maximum rises, the sum of exp(x - maximum) falls by as many times itself.
at::Tensor stats_backward(const GradientCall& call, const at::Tensor& maximum, const at::Tensor& sum) {
    if (!sum.defined()) return backward_by(slope_of_maximum(call), maximum, call);
    at::Tensor const falls = sum * call.second;
    at::Tensor const rest = maximum.defined() ? maximum - falls : -falls;
    return backward_by(slope_of_maximum(call), rest, call) + backward_by(slope_of_exponentials(call), sum, call);
}

variable_list stats_forward(const GradientCall& call, const at::Tensor& tangent) {
    at::Tensor const maximum = forward_by(slope_of_maximum(call), tangent, call.result_type, call);
    at::Tensor const sum = forward_by(slope_of_exponentials(call), tangent, call.result_type, call);
    return {maximum, sum - call.second * maximum};
}

}  // namespace

std::vector<int64_t> reduced_dims(const GradientCall& call) {
    std::vector<int64_t> dims;
    for (size_t d = 0; d < call.sizes.size(); ++d)
        if (is_reduced(call, d)) dims.push_back(int64_t(d));
    return dims;
}

c10::SymInt reduced_count(const GradientCall& call) {
    c10::SymInt count = 1;
    for (size_t d = 0; d < call.sizes.size(); ++d)
        if (is_reduced(call, d)) count = count * call.sizes[d];
    return count;
}

at::Tensor with_kept_dims(const at::Tensor& result, const GradientCall& call) {
    at::Tensor wide = result;
    for (size_t d = 0; d < call.sizes.size() && wide.defined() && !call.keepdim; ++d)
        if (is_reduced(call, d)) wide = wide.unsqueeze(int64_t(d));
    return wide;
}

at::Tensor without_lost_dims(const at::Tensor& tensor, const GradientCall& call) {
    auto const dims = reduced_dims(call);
    return call.keepdim || dims.empty() ? tensor : tensor.squeeze(dims);
}

at::Tensor as_self_type(at::Tensor gradient, const GradientCall& call) {
    if (!gradient.defined()) return gradient;
    if (gradient.is_complex() && !at::isComplexType(call.self_type)) gradient = at::real(gradient);
    return gradient.to(call.self_type);
}

variable_list backward(const GradientCall& call, const variable_list& gradients) {
    at::Tensor const& first = gradients[0];
    at::Tensor const second = gradients.size() > 1 ? gradients[1] : at::Tensor();
    bool const uses_second = second.defined() && has_second_gradient(call.rule);
    if (is_flat(call) || (!first.defined() && !uses_second)) return {at::Tensor()};
    if (call.rule == GradientRule::indexed) return {indexed_backward(call, first)};
    if (call.rule == GradientRule::softmax_stats) return {stats_backward(call, first, second)};
    at::Tensor of_first, of_second;
    if (first.defined()) of_first = backward_by(slope_of(call, /*of_second=*/false), first, call);
    if (uses_second) of_second = backward_by(slope_of(call, /*of_second=*/true), second, call);
    if (!of_first.defined() || !of_second.defined()) return {of_first.defined() ? of_first : of_second};
    return {of_first + of_second};
}

variable_list forward(const GradientCall& call, const at::Tensor& tangent) {
    if (is_flat(call)) return variable_list(1);
    if (call.rule == GradientRule::indexed) {
        at::Tensor const chosen = tangent.gather(the_dim(call), with_kept_dims(call.second, call));
        return {without_lost_dims(chosen, call), at::Tensor()};
    }
    if (call.rule == GradientRule::softmax_stats) return stats_forward(call, tangent);
    variable_list tangents{forward_by(slope_of(call, /*of_second=*/false), tangent, call.result_type, call)};
    if (!has_second_gradient(call.rule)) return tangents;
    bool const complex = at::isComplexType(call.self_type);
    at::ScalarType const type = complex ? at::toComplexType(call.result_type) : call.result_type;
    tangents.push_back(forward_by(slope_of(call, /*of_second=*/true), tangent, type, call));
    return tangents;
}

}  // namespace gpureduce::binding
