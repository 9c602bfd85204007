#include "slopes.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "operators.h"

namespace gpureduce::binding {
namespace {

using at::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_short(const Tensor& tensor) {
    return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

// The elements in the type that the reduction saw them in: that of the result, but complex if they are.
Tensor elements_of(const GradientCall& call) {
    bool const lost_a_part = at::isComplexType(call.self_type) && !at::isComplexType(call.result_type);
    return call.self.to(lost_a_part ? at::toComplexType(call.result_type) : call.result_type);
}

Tensor count_of(const Tensor& mask, const GradientCall& call) {
    auto const dims = reduced_dims(call);
    return dims.empty() ? mask.to(at::kLong) : mask.sum(dims, /*keepdim=*/true);
}

// A function of rows, which are its tensor's last dim, applied to the rows of x.
template <class Function>
Tensor by_rows(const Tensor& x, const GradientCall& call, Function function) {
    std::vector<int64_t> order, back(call.sizes.size());
    std::vector<c10::SymInt> permuted, flat;
    for (bool const reduced : {false, true}) {
        for (size_t d = 0; d < call.sizes.size(); ++d) {
            if ((call.reduced >> d & 1) != int(reduced)) continue;
            back[d] = int64_t(order.size());
            order.push_back(int64_t(d));
            permuted.push_back(call.sizes[d]);
            if (!reduced) flat.push_back(call.sizes[d]);
        }
    }
    flat.push_back(reduced_count(call));
    return function(x.permute(order).reshape_symint(flat)).reshape_symint(permuted).permute(back);
}

// For every element of the last dim the product of all others, without a division: neighbours are multiplied; what their
// product is to be multiplied by is found in the same way, and times one neighbour it is that of the other.
Tensor products_of_others(const Tensor& x) {
    c10::SymInt const n = x.sym_size(-1);
    if (n <= 1) return at::ones_like(x);
    auto const known = n.maybe_as_int();
    bool const even = known && *known % 2 == 0;
    Tensor const padded = even ? x : at::constant_pad_nd_symint(x, std::vector<c10::SymInt>{0, n % 2}, 1);
    std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
    sizes.back() = (n + 1) / 2;
    sizes.push_back(2);
    Tensor const pairs = padded.reshape_symint(sizes);
    Tensor const above = products_of_others(pairs.select(-1, 0) * pairs.select(-1, 1));
    return (above.unsqueeze(-1) * pairs.flip({-1})).flatten(-2).narrow_symint(-1, 0, n);
}

// By parts: a division of complex numbers squares the divisor, which may underflow.
Tensor divided_by_real(const Tensor& x, const Tensor& y) {
    return x.is_complex() ? at::complex(at::real(x) / y, at::imag(x) / y) : x / y;
}

// x / |x|, and 0 of 0. aten's sgn of a tiny complex number is NaN.
Tensor direction_of(const Tensor& x) {
    if (!x.is_complex()) return x.sgn();
    Tensor const size = x.abs();
    return divided_by_real(x, size.masked_fill(size == 0, kInfinity));
}

// Shared equally by the elements that equal the result; where it is NaN, by those that are.
Slope slope_of_ties(const Tensor& x, const Tensor& result, const GradientCall& call) {
    Slope slope;
    slope.mask = at::logical_or(x == result, at::isnan(x));
    slope.count = count_of(slope.mask, call);
    return slope;
}

Slope slope_of_numbers(const GradientCall& call) {
    Slope slope;
    slope.mask = at::isnan(elements_of(call)).logical_not();
    if (call.rule == GradientRule::nanmean) slope.count = count_of(slope.mask, call);
    return slope;
}

Slope slope_of_mean(const GradientCall& call) {
    Slope slope;
    slope.divisor = at::Scalar(reduced_count(call));
    return slope;
}

Slope slope_of_squares(const GradientCall& call) {
    Slope slope;
    slope.elements = elements_of(call);
    slope.divisor = 0.5;
    return slope;
}

// The largest or the smallest of each row as aten sees them: its |z| need not have the bits of ours.
Tensor extreme_of(const Tensor& sizes, bool largest, const GradientCall& call) {
    return by_rows(sizes.detach(), call, [&](const Tensor& rows) {
        return (largest ? rows.amax(-1, true) : rows.amin(-1, true)).expand_as(rows);
    });
}

Slope slope_of_norm(const GradientCall& call) {
    double const order = call.parameter;
    Tensor const x = elements_of(call), result = with_kept_dims(call.first, call);
    Slope slope;
    if (order == 1) {
        slope.elements = direction_of(x);
    } else if (order == 2) {
        slope.elements = divided_by_real(x, result.masked_fill(result == 0, kInfinity));
    } else if (std::isinf(order)) {
        Tensor const size = x.abs();
        slope = slope_of_ties(size, x.is_complex() ? extreme_of(size, order > 0, call) : result, call);
        slope.elements = direction_of(x);
    } else {  // (|x| / norm)^(order - 1): a ratio that does not overflow. 0 where the element is 0, or the norm
        Tensor const size = x.abs(), zero = result == 0;
        Tensor const ratio = (size / result.masked_fill(zero, 1)).masked_fill(at::logical_or(zero, size == 0), 1);
        slope.elements = direction_of(x).masked_fill(zero, 0) * ratio.pow(order - 1);
    }
    return slope;
}

// The differences from the mean are taken in float32 at least; and the degrees of freedom are at least 0, as in the result.
Slope slope_of_variance(const GradientCall& call) {
    Tensor const x = elements_of(call);
    c10::SymInt const n = reduced_count(call);
    bool const known = call.second.defined() && !is_short(call.second);
    Tensor const mean = known ? with_kept_dims(call.second, call) : row_sum(x, call).div(at::Scalar(n));
    Tensor const difference = x - mean;
    c10::SymFloat const freedom = (c10::SymFloat(n) - call.parameter).max(0.0);
    bool const root = call.rule == GradientRule::deviation || call.rule == GradientRule::deviation_and_mean;
    Slope slope;
    if (root) {
        Tensor const result = with_kept_dims(call.first, call);
        slope.elements = divided_by_real(difference, result.masked_fill(result == 0, kInfinity));
        slope.divisor = at::Scalar(freedom);
    } else {
        slope.elements = difference;
        slope.divisor = at::Scalar(freedom / 2.0);
    }
    return slope;
}

// `otherwise`, but in rows whose maximum is infinite 0 for the elements that are it and -inf for the others.
Tensor below_maximum(const Tensor& otherwise, const Tensor& x, const Tensor& maximum) {
    Tensor const zero = at::zeros({}, x.options());
    return at::where(at::isinf(maximum), at::where(x == maximum, zero, -kInfinity), otherwise);
}

// Softmax: it adds up to 1 however coarsely the result is rounded, which exp(x - result) does not. +inf takes all; a row
// of -inf has no gradient.
Slope slope_of_logarithm(const GradientCall& call) {
    Tensor const x = elements_of(call), result = with_kept_dims(call.first, call);
    Slope slope;
    if (x.is_complex()) {
        slope.elements = (x - result).exp().conj();
        return slope;
    }
    slope.elements = by_rows(below_maximum(x, x, result), call, [](const Tensor& rows) { return rows.softmax(-1); });
    slope.mask = result != -kInfinity;
    return slope;
}

}  // namespace

Tensor in_float(const Tensor& tensor) { return is_short(tensor) ? tensor.to(at::kFloat) : tensor; }

Tensor row_sum(const Tensor& tensor, const GradientCall& call) {
    auto const dims = reduced_dims(call);
    at::ScalarType const type = is_short(tensor) ? at::kFloat : tensor.scalar_type();
    return handle<row_of("sum")>().call(tensor, at::IntArrayRef(dims), /*keepdim=*/true, type, std::nullopt);
}

Slope slope_of_maximum(const GradientCall& call) {
    Tensor const maximum = with_kept_dims(call.first, call);
    Slope slope = slope_of_ties(elements_of(call), maximum, call);
    slope.mask = at::logical_and(slope.mask, maximum != -kInfinity);
    return slope;
}

Slope slope_of_exponentials(const GradientCall& call) {
    Tensor const x = elements_of(call), maximum = with_kept_dims(call.first, call);
    Slope slope;
    slope.elements = below_maximum(x - maximum, x, maximum).exp();
    slope.mask = maximum != -kInfinity;
    return slope;
}

Slope slope_of(const GradientCall& call, bool of_second) {
    switch (call.rule) {
        case GradientRule::mean: return slope_of_mean(call);
        case GradientRule::nantotal:
        case GradientRule::nanmean: return slope_of_numbers(call);
        case GradientRule::squares: return slope_of_squares(call);
        case GradientRule::product: {
            Slope slope;
            slope.elements = by_rows(in_float(elements_of(call)), call, products_of_others).conj();
            return slope;
        }
        case GradientRule::extreme:
        case GradientRule::extremes:
            return slope_of_ties(elements_of(call), with_kept_dims(of_second ? call.second : call.first, call), call);
        case GradientRule::norm: return slope_of_norm(call);
        case GradientRule::variance:
        case GradientRule::deviation: return slope_of_variance(call);
        case GradientRule::variance_and_mean:
        case GradientRule::deviation_and_mean: return of_second ? slope_of_mean(call) : slope_of_variance(call);
        case GradientRule::logsumexp: return slope_of_logarithm(call);
        default: return {};
    }
}

}  // namespace gpureduce::binding
