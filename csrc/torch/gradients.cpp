#include "gradients.h"

#include <ATen/ops/isnan.h>
#include <ATen/ops/real.h>
#include <ATen/ops/sum.h>
#include <c10/util/Exception.h>

namespace gpureduce::binding {

using torch::autograd::variable_list;

namespace {

bool is_reduced(const GradientCall& call, size_t d) { return call.reduced >> d & 1; }

// Every element of a row gets the row's gradient. The conversion comes before the expansion because it copies.
at::Tensor spread(const at::Tensor& gradient, const GradientCall& call) {
    return with_kept_dims(as_self_type(gradient, call), call).expand_symint(call.sizes);
}

[[noreturn]] void refuse() { TORCH_CHECK_NOT_IMPLEMENTED(false, "gpureduce: no gradient of this operator yet"); }

// 16-bit floats as float32: a count of elements need not fit into them.
at::Tensor in_float(const at::Tensor& tensor) {
    bool const is_short = tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
    return is_short ? tensor.to(at::kFloat) : tensor;
}

// aten's sum over the reduced dims, kept. No dims would mean all to it.
at::Tensor row_sum(const at::Tensor& tensor, const GradientCall& call) {
    auto const dims = reduced_dims(call);
    return dims.empty() ? tensor : tensor.sum(dims, /*keepdim=*/true);
}

// Elements that are not NaN, by row; counted in integers.
at::Tensor count_of_numbers(const GradientCall& call) {
    return row_sum(at::isnan(call.self).logical_not().to(at::kLong), call);
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
    bool any = false;
    for (at::Tensor const& gradient : gradients) any = any || gradient.defined();
    if (!any) return {at::Tensor()};
    switch (call.rule) {
        case GradientRule::total: return {spread(gradients[0], call)};
        case GradientRule::mean: return {spread(gradients[0].div(reduced_count(call)), call)};
        case GradientRule::nantotal: return {spread(gradients[0], call).masked_fill(at::isnan(call.self), 0)};
        case GradientRule::nanmean: {
            at::Tensor const gradient = in_float(with_kept_dims(gradients[0], call)).div(count_of_numbers(call));
            return {as_self_type(gradient, call).expand_symint(call.sizes).masked_fill(at::isnan(call.self), 0)};
        }
        default: refuse();
    }
}

variable_list forward(const GradientCall& call, const at::Tensor& tangent) {
    switch (call.rule) {
        case GradientRule::nantotal:
        case GradientRule::nanmean: {
            at::Tensor const numbers = in_float(tangent.masked_fill(at::isnan(call.self), 0));
            at::Tensor total = row_sum(numbers, call);
            if (call.rule == GradientRule::nanmean) total = total.div(count_of_numbers(call));
            return {without_lost_dims(total, call).to(call.result_type)};
        }
        default: refuse();
    }
}

}  // namespace gpureduce::binding
