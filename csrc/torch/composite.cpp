#include "composite.h"

#include <ATen/ATen.h>

#include <cmath>

#include "kernels.h"
#include "reduce.h"
#include "types.h"

namespace gpureduce::binding {
namespace {

constexpr size_t kSum = row_of("sum"), kAmax = row_of("amax"), kNorm = row_of("norm"), kVariance = row_of("var"),
                 kDeviation = row_of("std"), kMean = row_of("mean");

constexpr int64_t kLastDim[] = {-1};
at::IntArrayRef const kLast(kLastDim);

at::Tensor sum_of(const at::Tensor& tensor, at::OptionalIntArrayRef dim, bool keepdim) {
    return dispatch<kSum>({kOperators[kSum], tensor, dim, keepdim});
}

// The dims of a call that has lost them: `kept` has size 1 there.
at::Tensor as_lost(const at::Tensor& kept, const Call& call) {
    if (call.keepdim) return kept;
    bool reduced[kMaxDims];
    int const dims = check_dims(call, reduced);
    at::DimVector lost;
    for (int d = 0; d < dims; ++d)
        if (reduced[d]) lost.push_back(d);
    return lost.empty() ? kept : kept.squeeze(lost);
}

// (sum |x|^p)^(1/p), of |x| divided by its greatest, or for p < 0 by its least, so that nothing overflows on the way.
at::Tensor any_norm(const Call& call) {
    double const p = call.parameter;
    ResultTypes const types = result_types(call);
    bool const is_short = types.first == at::kHalf || types.first == at::kBFloat16;
    at::ScalarType const work = is_short ? at::kFloat : types.first;
    at::Tensor const size = at::abs(call.self).to(work);
    bool reduced[kMaxDims];
    int const dims = check_dims(call, reduced);
    bool empty = false;
    for (int d = 0; d < dims; ++d)
        if (reduced[d] && is_zero(size.sym_size(d))) {
            if (refuses_empty(call)) refuse_empty(call, d);
            empty = true;
        }
    if (empty) return sum_of(size, call.dim, call.keepdim).to(types.first);

    double const extreme = p < 0 ? -HUGE_VAL : HUGE_VAL;
    at::Tensor scale = dispatch<kNorm>({kOperators[kNorm], size, call.dim, true, {}, {}, extreme});
    scale = scale.masked_fill(at::logical_or(scale == 0, at::isfinite(scale).logical_not()), 1);
    at::Tensor const ratio = size / scale;
    at::Tensor const zero = ratio == 0;
    at::Tensor const powers = ratio.masked_fill(zero, 1).pow(p).masked_fill(zero, p < 0 ? HUGE_VAL : 0.0);
    at::Tensor const total = sum_of(powers, call.dim, true);
    at::Tensor const nothing = total == 0;
    at::Tensor const root = total.masked_fill(nothing, 1).pow(1 / p).masked_fill(nothing, p < 0 ? HUGE_VAL : 0.0);
    return as_lost(root * scale, call).to(types.first);
}

// Of a complex number's parts, which meet in a reduction of two: its bits are the same on every device, those of at::add
// (NaN) and at::sqrt are not.
std::tuple<at::Tensor, at::Tensor> complex_moments(const Call& call) {
    at::Tensor const re = at::real(call.self), im = at::imag(call.self);
    bool const is_deviation = call.op.form == Form::deviation;
    Call const of_re{
        kOperators[is_deviation ? kDeviation : kVariance], re, call.dim, call.keepdim, {}, {}, call.parameter};
    auto const of = [&](const Call& part) {
        return is_deviation ? dispatch<kDeviation>(part) : dispatch<kVariance>(part);
    };
    at::Tensor const both = at::stack({of(of_re), of(of_re.of(im))}, -1);
    at::Tensor const first = is_deviation ? dispatch<kNorm>({kOperators[kNorm], both, kLast, false, {}, {}, 2.0})
                                          : sum_of(both, kLast, false);
    if (call.op.second == nullptr) return {first, at::Tensor()};
    return {first, dispatch<kMean>({kOperators[kMean], call.self, call.dim, call.keepdim})};
}

// By the greatest real part, where that is finite.
at::Tensor complex_logsumexp(const Call& call) {
    at::Tensor const re = at::real(call.self);
    bool reduced[kMaxDims];
    int const dims = check_dims(call, reduced);
    for (int d = 0; d < dims; ++d)
        if (reduced[d] && is_zero(re.sym_size(d))) return at::log(sum_of(at::exp(call.self), call.dim, call.keepdim));
    at::Tensor greatest = dispatch<kAmax>({kOperators[kAmax], re, call.dim, true});
    greatest = greatest.masked_fill(at::isfinite(greatest).logical_not(), 0);
    at::Tensor const total = sum_of(at::exp(call.self - greatest), call.dim, true);
    return as_lost(at::log(total) + greatest, call);
}

}  // namespace

bool is_composite(const Call& call) {
    if (call.op.type == TypeRule::norm) {
        double const p = call.parameter;
        return p != 0 && p != 1 && p != 2 && !std::isinf(p);
    }
    return call.self.is_complex();
}

std::tuple<at::Tensor, at::Tensor> composite_results(const Call& call) {
    if (call.op.type == TypeRule::norm) return {any_norm(call), at::Tensor()};
    if (call.op.op == OpId::moments) return complex_moments(call);
    return {complex_logsumexp(call), at::Tensor()};
}

}  // namespace gpureduce::binding
