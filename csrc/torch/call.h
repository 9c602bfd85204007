// The arguments of a call, whichever operator's, and the signatures that they come in.
#pragma once

#include <ATen/core/Scalar.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace gpureduce::binding {

struct Operator;

// Borrowed for the time of one call.
struct Call {
    const Operator& op;
    const at::Tensor& self;
    at::OptionalIntArrayRef dim = std::nullopt;
    bool keepdim = false;
    std::optional<at::ScalarType> dtype = std::nullopt;
    std::optional<std::string_view> accumulate = std::nullopt;
    double parameter = 0;                                   // ord, correction
    std::optional<at::ScalarType> store_as = std::nullopt;  // the type of `out`, where it may differ from the result's

    Call of(const at::Tensor& other) const { return {op, other, dim, keepdim, dtype, accumulate, parameter, store_as}; }
};

enum class Signature : uint8_t {
    additive,       // sum
    product,        // prod
    dims,           // amax
    required_dims,  // logsumexp
    optional_dims,  // any
    optional_dim,   // argmax
    keyword_dim,    // aminmax
    one_dim,        // max.dim
    last_dim,       // softmax_stats
    whole,          // max
    order,          // norm
    correction,     // var
};

// Of each signature: its schema, its type in C++, the way from arguments to a Call and back. A Call points into the
// arguments that it was packed from.
template <Signature>
struct Arguments;

double real_number(const at::Scalar& scalar, const Operator& op, const char* name);

using Dtype = std::optional<at::ScalarType>;
using Text = std::optional<std::string_view>;

template <>
struct Arguments<Signature::additive> {
    static constexpr char schema[] =
        "Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, str? accumulate=None";
    template <class R, class... Out>
    using Function = R(const at::Tensor&, at::OptionalIntArrayRef, bool, Dtype, Text, Out...);
    static Call pack(const Operator& op, const at::Tensor& self, const at::OptionalIntArrayRef& dim, bool keepdim,
                     const Dtype& dtype, const Text& accumulate) {
        return {op, self, dim, keepdim, dtype, accumulate};
    }
    template <class F>
    static decltype(auto) unpack(const Call& c, F&& f) {
        return f(c.self, c.dim, c.keepdim, c.dtype, c.accumulate);
    }
};

template <>
struct Arguments<Signature::product> {
    static constexpr char schema[] = "Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None";
    template <class R, class... Out>
    using Function = R(const at::Tensor&, at::OptionalIntArrayRef, bool, Dtype, Out...);
    static Call pack(const Operator& op, const at::Tensor& self, const at::OptionalIntArrayRef& dim, bool keepdim,
                     const Dtype& dtype) {
        return {op, self, dim, keepdim, dtype};
    }
    template <class F>
    static decltype(auto) unpack(const Call& c, F&& f) {
        return f(c.self, c.dim, c.keepdim, c.dtype);
    }
};

struct ListArguments {
    template <class R, class... Out>
    using Function = R(const at::Tensor&, at::IntArrayRef, bool, Out...);
    static Call pack(const Operator& op, const at::Tensor& self, const at::IntArrayRef& dim, bool keepdim) {
        return {op, self, dim, keepdim};
    }
    template <class F>
    static decltype(auto) unpack(const Call& c, F&& f) {
        return f(c.self, c.dim ? at::IntArrayRef(*c.dim) : at::IntArrayRef(), c.keepdim);
    }
};
template <>
struct Arguments<Signature::dims> : ListArguments {
    static constexpr char schema[] = "Tensor self, int[1] dim=[], bool keepdim=False";
};
template <>
struct Arguments<Signature::required_dims> : ListArguments {
    static constexpr char schema[] = "Tensor self, int[1] dim, bool keepdim=False";
};

template <>
struct Arguments<Signature::optional_dims> {
    static constexpr char schema[] = "Tensor self, int[1]? dim=None, bool keepdim=False";
    template <class R, class... Out>
    using Function = R(const at::Tensor&, at::OptionalIntArrayRef, bool, Out...);
    static Call pack(const Operator& op, const at::Tensor& self, const at::OptionalIntArrayRef& dim, bool keepdim) {
        return {op, self, dim, keepdim};
    }
    template <class F>
    static decltype(auto) unpack(const Call& c, F&& f) {
        return f(c.self, c.dim, c.keepdim);
    }
};

struct OptionalDimArguments {
    template <class R, class... Out>
    using Function = R(const at::Tensor&, std::optional<int64_t>, bool, Out...);
    static Call pack(const Operator& op, const at::Tensor& self, const std::optional<int64_t>& dim, bool keepdim) {
        return {op, self, dim ? at::OptionalIntArrayRef(at::IntArrayRef(&*dim, 1)) : std::nullopt, keepdim};
    }
    template <class F>
    static decltype(auto) unpack(const Call& c, F&& f) {
        return f(c.self, c.dim ? std::optional<int64_t>(c.dim->front()) : std::nullopt, c.keepdim);
    }
};
template <>
struct Arguments<Signature::optional_dim> : OptionalDimArguments {
    static constexpr char schema[] = "Tensor self, int? dim=None, bool keepdim=False";
};
template <>
struct Arguments<Signature::keyword_dim> : OptionalDimArguments {
    static constexpr char schema[] = "Tensor self, *, int? dim=None, bool keepdim=False";
};

struct DimArguments {
    template <class R, class... Out>
    using Function = R(const at::Tensor&, int64_t, bool, Out...);
    static Call pack(const Operator& op, const at::Tensor& self, const int64_t& dim, bool keepdim) {
        return {op, self, at::IntArrayRef(&dim, 1), keepdim};
    }
    template <class F>
    static decltype(auto) unpack(const Call& c, F&& f) {
        return f(c.self, c.dim->front(), c.keepdim);
    }
};
template <>
struct Arguments<Signature::one_dim> : DimArguments {
    static constexpr char schema[] = "Tensor self, int dim, bool keepdim=False";
};
template <>
struct Arguments<Signature::last_dim> : DimArguments {
    static constexpr char schema[] = "Tensor self, int dim=-1, bool keepdim=False";
};

template <>
struct Arguments<Signature::whole> {
    static constexpr char schema[] = "Tensor self";
    template <class R, class... Out>
    using Function = R(const at::Tensor&, Out...);
    static Call pack(const Operator& op, const at::Tensor& self) { return {op, self}; }
    template <class F>
    static decltype(auto) unpack(const Call& c, F&& f) {
        return f(c.self);
    }
};

template <>
struct Arguments<Signature::order> {
    static constexpr char schema[] =
        "Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None";
    template <class R, class... Out>
    using Function = R(const at::Tensor&, const at::Scalar&, at::OptionalIntArrayRef, bool, Dtype, Out...);
    static Call pack(const Operator& op, const at::Tensor& self, const at::Scalar& ord,
                     const at::OptionalIntArrayRef& dim, bool keepdim, const Dtype& dtype) {
        return {op, self, dim, keepdim, dtype, std::nullopt, real_number(ord, op, "ord")};
    }
    template <class F>
    static decltype(auto) unpack(const Call& c, F&& f) {
        return f(c.self, at::Scalar(c.parameter), c.dim, c.keepdim, c.dtype);
    }
};

template <>
struct Arguments<Signature::correction> {
    static constexpr char schema[] = "Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False";
    template <class R, class... Out>
    using Function = R(const at::Tensor&, at::OptionalIntArrayRef, const std::optional<at::Scalar>&, bool, Out...);
    static Call pack(const Operator& op, const at::Tensor& self, const at::OptionalIntArrayRef& dim,
                     const std::optional<at::Scalar>& correction, bool keepdim) {
        double const parameter = correction ? real_number(*correction, op, "correction") : 1.0;
        return {op, self, dim, keepdim, std::nullopt, std::nullopt, parameter};
    }
    template <class F>
    static decltype(auto) unpack(const Call& c, F&& f) {
        return f(c.self, c.dim, std::optional<at::Scalar>(c.parameter), c.keepdim);
    }
};

}  // namespace gpureduce::binding
