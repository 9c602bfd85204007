// The one table of operators. An operator of a signature that is there is one row.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "../core/operator.h"
#include "call.h"
#include "gradients.h"

namespace gpureduce::binding {

// The type of the (first) result, and which types of self and dtype= are refused. types.cpp has them in full.
enum class TypeRule : uint8_t {
    sum,         // dtype, else int64 of integers, else self's
    nansum,      // the same; not of complex numbers
    mean,        // dtype, else self's, which has to be inexact
    nanmean,     // the same; self has to be real
    squares,     // as sum, but real of complex numbers
    value,       // self's, which has an order
    index,       // int64
    truth,       // bool, of uint8 uint8
    count,       // int64
    norm,        // dtype or self's, real
    variance,    // self's, which has to be inexact, real
    inexact,     // self's, of integers the default type
    statistics,  // the same, but float32 of 16-bit types
};

// What a row of no elements comes to.
enum class EmptyRule : uint8_t {
    identity,
    refuse,        // RuntimeError for all dims, IndexError for named ones
    refuse_index,  // IndexError
    norm,          // by ord
};

// What autocast does, where torch has a rule for the namesake.
enum class AutocastRule : uint8_t {
    none,
    float_result,  // CUDA: dtype=float32 where none is given
    product,       // the same; CPU: self is converted to float32
    float_input,   // CUDA: self is converted to float32
};

struct Operator {
    const char* name;
    const char* overload;
    Signature signature;
    OpId op;
    Form form;
    TypeRule type;
    EmptyRule empty;
    GradientRule gradient;
    AutocastRule autocast;
    const char* out_overload;
    const char* first;   // names of the results, and of out=
    const char* second;  // null: there is one result
};

// --- the table ------------------------------------------------------------------------------------------------------

inline constexpr Operator kOperators[] = {
    {"sum", "", Signature::additive, OpId::sum, Form::total, TypeRule::sum, EmptyRule::identity, GradientRule::total,
     AutocastRule::float_result, "out", "out", nullptr},
    {"mean", "", Signature::additive, OpId::sum, Form::mean, TypeRule::mean, EmptyRule::identity, GradientRule::mean,
     AutocastRule::none, "out", "out", nullptr},
    {"nansum", "", Signature::additive, OpId::nansum, Form::total, TypeRule::nansum, EmptyRule::identity,
     GradientRule::nantotal, AutocastRule::none, "out", "out", nullptr},
    {"nanmean", "", Signature::additive, OpId::nansum, Form::mean, TypeRule::nanmean, EmptyRule::identity,
     GradientRule::nanmean, AutocastRule::none, "out", "out", nullptr},
    {"sumsq", "", Signature::additive, OpId::squares, Form::total, TypeRule::squares, EmptyRule::identity,
     GradientRule::squares, AutocastRule::float_result, "out", "out", nullptr},
    {"prod", "", Signature::product, OpId::product, Form::total, TypeRule::sum, EmptyRule::identity,
     GradientRule::product, AutocastRule::product, "out", "out", nullptr},
    {"amax", "", Signature::dims, OpId::extremes, Form::greatest, TypeRule::value, EmptyRule::refuse,
     GradientRule::extreme, AutocastRule::none, "out", "out", nullptr},
    {"amin", "", Signature::dims, OpId::extremes, Form::least, TypeRule::value, EmptyRule::refuse,
     GradientRule::extreme, AutocastRule::none, "out", "out", nullptr},
    {"aminmax", "", Signature::keyword_dim, OpId::extremes, Form::both, TypeRule::value, EmptyRule::refuse,
     GradientRule::extremes, AutocastRule::none, "out", "min", "max"},
    {"max", "", Signature::whole, OpId::extremes, Form::greatest, TypeRule::value, EmptyRule::refuse,
     GradientRule::extreme, AutocastRule::none, "unary_out", "out", nullptr},
    {"max", "dim", Signature::one_dim, OpId::argmax, Form::both, TypeRule::value, EmptyRule::refuse,
     GradientRule::indexed, AutocastRule::none, "dim_max", "values", "indices"},
    {"min", "", Signature::whole, OpId::extremes, Form::least, TypeRule::value, EmptyRule::refuse,
     GradientRule::extreme, AutocastRule::none, "unary_out", "out", nullptr},
    {"min", "dim", Signature::one_dim, OpId::argmin, Form::both, TypeRule::value, EmptyRule::refuse,
     GradientRule::indexed, AutocastRule::none, "dim_min", "values", "indices"},
    {"argmax", "", Signature::optional_dim, OpId::argmax, Form::index, TypeRule::index, EmptyRule::refuse_index,
     GradientRule::none, AutocastRule::none, "out", "out", nullptr},
    {"argmin", "", Signature::optional_dim, OpId::argmin, Form::index, TypeRule::index, EmptyRule::refuse_index,
     GradientRule::none, AutocastRule::none, "out", "out", nullptr},
    {"any", "", Signature::optional_dims, OpId::nonzero, Form::any, TypeRule::truth, EmptyRule::identity,
     GradientRule::none, AutocastRule::none, "out", "out", nullptr},
    {"all", "", Signature::optional_dims, OpId::nonzero, Form::all, TypeRule::truth, EmptyRule::identity,
     GradientRule::none, AutocastRule::none, "out", "out", nullptr},
    {"count_nonzero", "", Signature::optional_dims, OpId::nonzero, Form::total, TypeRule::count, EmptyRule::identity,
     GradientRule::none, AutocastRule::none, "out", "out", nullptr},
    // Its OpId and form are those of ord=2; see kernel_of.
    {"norm", "", Signature::order, OpId::squares, Form::root, TypeRule::norm, EmptyRule::norm, GradientRule::norm,
     AutocastRule::float_result, "out", "out", nullptr},
    {"var", "", Signature::correction, OpId::moments, Form::variance, TypeRule::variance, EmptyRule::identity,
     GradientRule::variance, AutocastRule::none, "out", "out", nullptr},
    {"std", "", Signature::correction, OpId::moments, Form::deviation, TypeRule::variance, EmptyRule::identity,
     GradientRule::deviation, AutocastRule::none, "out", "out", nullptr},
    {"var_mean", "", Signature::correction, OpId::moments, Form::variance, TypeRule::variance, EmptyRule::identity,
     GradientRule::variance_and_mean, AutocastRule::none, "out", "out0", "out1"},
    {"std_mean", "", Signature::correction, OpId::moments, Form::deviation, TypeRule::variance, EmptyRule::identity,
     GradientRule::deviation_and_mean, AutocastRule::none, "out", "out0", "out1"},
    {"logsumexp", "", Signature::required_dims, OpId::exponentials, Form::logarithm, TypeRule::inexact,
     EmptyRule::identity, GradientRule::logsumexp, AutocastRule::float_input, "out", "out", nullptr},
    {"softmax_stats", "", Signature::last_dim, OpId::exponentials, Form::both, TypeRule::statistics,
     EmptyRule::identity, GradientRule::softmax_stats, AutocastRule::none, "out", "maximum", "sum"},
};
inline constexpr size_t kRows = std::size(kOperators);

// --- what follows from a row ----------------------------------------------------------------------------------------

constexpr size_t row_of(std::string_view name, std::string_view overload = "") {
    size_t row = 0;
    while (row < kRows && (name != kOperators[row].name || overload != kOperators[row].overload)) ++row;
    return row;
}

constexpr bool takes_dtype(const Operator& op) {
    return op.signature == Signature::additive || op.signature == Signature::product ||
           op.signature == Signature::order;
}
// An empty list of dims names all, but of torch's any and all, where it names none.
constexpr bool empty_list_is_none(const Operator& op) {
    return op.op == OpId::nonzero && (op.form == Form::any || op.form == Form::all);
}
// Whether some calls are made of others: see composite.h.
constexpr bool may_be_composite(const Operator& op) {
    return op.signature == Signature::order || op.op == OpId::moments || op.form == Form::logarithm;
}

template <size_t Row>
using ArgumentsOf = Arguments<kOperators[Row].signature>;
template <size_t Row>
inline constexpr bool has_two = kOperators[Row].second != nullptr;
template <size_t Row>
using ResultOf = std::conditional_t<has_two<Row>, std::tuple<at::Tensor, at::Tensor>, at::Tensor>;
template <size_t Row>
using OutResultOf = std::conditional_t<has_two<Row>, std::tuple<at::Tensor&, at::Tensor&>, at::Tensor&>;

template <size_t Row, bool Two>
struct Functions {
    using Plain = typename ArgumentsOf<Row>::template Function<at::Tensor>;
    using Out = typename ArgumentsOf<Row>::template Function<at::Tensor&, at::Tensor&>;
};
template <size_t Row>
struct Functions<Row, true> {
    using Plain = typename ArgumentsOf<Row>::template Function<ResultOf<Row>>;
    using Out = typename ArgumentsOf<Row>::template Function<OutResultOf<Row>, at::Tensor&, at::Tensor&>;
};
template <size_t Row>
using FunctionOf = typename Functions<Row, has_two<Row>>::Plain;
template <size_t Row>
using OutFunctionOf = typename Functions<Row, has_two<Row>>::Out;

inline std::string full_name(const Operator& op) { return std::string("gpureduce::") + op.name; }
inline std::string registered_name(const Operator& op, const char* overload) {
    return *overload ? std::string(op.name) + "." + overload : op.name;
}

// The operator itself, to call it from above or from the middle of the dispatcher.
template <size_t Row>
const c10::TypedOperatorHandle<FunctionOf<Row>>& handle() {
    static auto const found = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow(full_name(kOperators[Row]).c_str(), kOperators[Row].overload)
                                  .template typed<FunctionOf<Row>>();
    return found;
}
template <size_t Row>
const c10::TypedOperatorHandle<OutFunctionOf<Row>>& out_handle() {
    static auto const found = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow(full_name(kOperators[Row]).c_str(), kOperators[Row].out_overload)
                                  .template typed<OutFunctionOf<Row>>();
    return found;
}

// f(std::integral_constant<size_t, row>) for every row.
template <class F, size_t... Rows>
void for_rows(std::index_sequence<Rows...>, F&& f) {
    (f(std::integral_constant<size_t, Rows>{}), ...);
}
template <class F>
void for_every_row(F&& f) {
    for_rows(std::make_index_sequence<kRows>{}, f);
}

}  // namespace gpureduce::binding
