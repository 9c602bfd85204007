#include "reduce.h"

#include <ATen/ops/nan_to_num.h>
#include <c10/util/Exception.h>
#include <c10/util/env.h>

#include <atomic>
#include <cmath>
#include <iostream>
#include <limits>
#include <mutex>
#include <set>

#include "../core/resolve.h"
#include "types.h"

namespace gpureduce::binding {
namespace {

void print_once(const std::string& text) {
    static std::mutex mutex;
    static std::set<std::string> printed;
    std::lock_guard const lock(mutex);
    if (printed.insert(text).second) std::cerr << text << std::endl;
}

std::mutex geometry_mutex;
Geometry forced_geometry;
std::atomic<int64_t> version_of_geometry{0};

// What a call accumulates, and how: by its row, and of a norm by ord.
struct Meaning {
    OpId op;
    Form form;
    Accumulate accumulate;
};

Meaning meaning_of(const Call& call) {
    if (call.op.type != TypeRule::norm) return {call.op.op, call.op.form, accumulate_of(call)};
    double const ord = call.parameter;
    if (ord == 0) return {OpId::nonzero, Form::total, Accumulate::native};
    if (ord == 1) return {OpId::magnitudes, Form::total, Accumulate::native};
    if (std::isinf(ord)) return {OpId::extreme_magnitudes, ord > 0 ? Form::greatest : Form::least, Accumulate::native};
    // Squares of 32-bit floats neither overflow nor underflow in float64.
    return {OpId::squares, Form::root, Accumulate::float64};
}

}  // namespace

int check_dims(const Call& call, bool (&reduced)[kMaxDims]) {
    int64_t const dims = call.self.dim();
    TORCH_CHECK(dims <= kMaxDims, "gpureduce::", call.op.name, ": self has ", dims, " dims, at most ", kMaxDims,
                " are supported");
    bool const all = !call.dim || (call.dim->empty() && !empty_list_is_none(call.op));
    for (int64_t d = 0; d < dims; ++d) reduced[d] = all;
    if (all) return int(dims);

    int64_t const bound = dims > 0 ? dims : 1;
    bool named[kMaxDims] = {};
    for (int64_t const d : *call.dim) {
        TORCH_CHECK_INDEX(-bound <= d && d < bound, "gpureduce::", call.op.name, ": dim ", d, " is out of range for a ",
                          dims, "-d tensor (expected ", -bound, "..", bound - 1, ")");
        int64_t const wrapped = d < 0 ? d + bound : d;
        TORCH_CHECK(!named[wrapped], "gpureduce::", call.op.name, ": dim ", wrapped,
                    " appears more than once in dim=", *call.dim);
        named[wrapped] = true;
        if (dims > 0) reduced[wrapped] = true;
    }
    return int(dims);
}

Reduction check(const Call& call) {
    Reduction reduction;
    at::ScalarType const self_type = call.self.scalar_type();
    DType const in = dtype_of(self_type, call.op, "self");
    ResultTypes const types = result_types(call);
    reduction.dims = check_dims(call, reduction.reduced);
    reduction.keepdim = call.keepdim;
    reduction.result = call.store_as.value_or(types.first);
    reduction.second_result = types.second;
    reduction.out = dtype_of(reduction.result, call.op, "a result");
    reduction.second = dtype_of(types.second, call.op, "a result");
    Meaning const meaning = meaning_of(call);
    Kernel const kernel = resolve(meaning.op, meaning.form, in, reduction.out, meaning.accumulate);
    reduction.load_as = kernel.load_as == in ? self_type : scalar_type_of(kernel.load_as);
    reduction.key = kernel.key;
    reduction.form = meaning.form;
    reduction.parameter = call.parameter;
    TORCH_CHECK_NOT_IMPLEMENTED(is_implemented(kernel.key), "gpureduce::", call.op.name,
                                ": not implemented for self of dtype ", self_type, " with a result of dtype ",
                                reduction.result);
    return reduction;
}

bool refuses_empty(const Call& call) {
    return call.op.empty != EmptyRule::norm || call.parameter < 0 || std::isinf(call.parameter);
}

void refuse_empty(const Call& call, size_t dim) {
    std::string const why = c10::str("gpureduce::", call.op.name, ": expected reduction dim ", dim,
                                     " to have non-zero size, as there is no result of no elements");
    if (call.op.empty == EmptyRule::norm) TORCH_CHECK(false, why, " for ord=", call.parameter);
    bool const all = !call.dim || call.dim->empty();
    if (all && call.op.empty == EmptyRule::refuse)
        TORCH_CHECK(false, why, "; specify the reduction dim with the 'dim' argument");
    TORCH_CHECK_INDEX(false, why);
}

Accumulate accumulate_of(const Call& call) {
    if (!call.accumulate) return Accumulate::native;
    if (*call.accumulate == "compensated") return Accumulate::compensated;
    if (*call.accumulate == "double") return Accumulate::float64;
    TORCH_CHECK_VALUE(false, "gpureduce::", call.op.name,
                      ": accumulate must be None, \"compensated\" or \"double\", got \"", *call.accumulate, "\"");
}

at::Tensor converted(const Call& call, at::ScalarType load_as) {
    // No integer stands for NaN.
    if (call.op.op == OpId::nansum && at::isIntegralType(load_as, /*includeBool=*/true)) {
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        return at::nan_to_num(call.self, 0.0, kInfinity, -kInfinity).to(load_as);
    }
    return call.self.to(load_as);
}

int misalignment_of(const at::Tensor& input) {
    return int(reinterpret_cast<uintptr_t>(input.const_data_ptr()) % kVectorBytes);
}

Problem problem_of(const at::Tensor& input, const Reduction& reduction) {
    Problem problem = make_problem(input.sizes().data(), input.strides().data(), reduction.reduced, reduction.dims,
                                   reduction.key, reduction.out, misalignment_of(input));
    problem.form = reduction.form;
    problem.second = reduction.second;
    problem.parameter = reduction.parameter;
    return problem;
}

Plan plan_of(const Problem& problem, const DeviceTraits& device) {
    static bool const print = c10::utils::check_env("GPUREDUCE_PRINT_PLAN") == true;
    Plan const plan = make_plan(problem, device, current_geometry());
    if (print) print_once(to_json(problem, plan));
    return plan;
}

std::string explain_call(const Call& call, int64_t sms, DeviceTraits device) {
    Reduction const reduction = check(call);
    bool const converts = reduction.load_as != call.self.scalar_type();
    at::Tensor const input = converts ? converted(call, reduction.load_as) : call.self;
    Problem const problem = problem_of(input, reduction);
    if (sms > 0) device.sm_count = int(sms);
    return to_json(problem, plan_of(problem, device));
}

Call call_named(std::string_view name, const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, Dtype dtype,
                Text accumulate) {
    for (Operator const& op : kOperators)
        if (registered_name(op, op.overload) == name) {
            double const usual = op.signature == Signature::order ? 2 : op.signature == Signature::correction ? 1 : 0;
            return {op, self, dim, keepdim, dtype, accumulate, usual};
        }
    TORCH_CHECK_VALUE(false, "gpureduce::_explain: there is no operator \"", name, "\"");
}

void force_geometry(const Geometry& geometry) {
    std::lock_guard const lock(geometry_mutex);
    forced_geometry = geometry;
    version_of_geometry.fetch_add(1, std::memory_order_release);
}

Geometry current_geometry() {
    std::lock_guard const lock(geometry_mutex);
    return forced_geometry;
}

int64_t geometry_version() { return version_of_geometry.load(std::memory_order_acquire); }

}  // namespace gpureduce::binding
