#include "reduce.h"

#include <c10/util/Exception.h>
#include <c10/util/env.h>

#include <atomic>
#include <iostream>
#include <mutex>
#include <set>

namespace gpureduce::binding {
namespace {

struct TypePair {
    at::ScalarType torch;
    DType ours;
};

// The one table of element types.
constexpr TypePair kTypes[] = {
    {at::kDouble, DType::float64},
    {at::kFloat, DType::float32},
    {at::kHalf, DType::float16},
    {at::kBFloat16, DType::bfloat16},
    {at::kLong, DType::int64},
    {at::kInt, DType::int32},
    {at::kShort, DType::int16},
    {at::kChar, DType::int8},
    {at::kByte, DType::uint8},
    {at::kBool, DType::boolean},
    {at::kComplexFloat, DType::complex64},
    {at::kComplexDouble, DType::complex128},
};

DType dtype_of(at::ScalarType type, const char* argument) {
    for (TypePair const pair : kTypes)
        if (pair.torch == type) return pair.ours;
    TORCH_CHECK_NOT_IMPLEMENTED(false, "gpureduce::sum: not implemented for ", argument, " of dtype ", type);
}

at::ScalarType scalar_type_of(DType dtype) {
    for (TypePair const pair : kTypes)
        if (pair.ours == dtype) return pair.torch;
    TORCH_INTERNAL_ASSERT(false, "a dtype is missing from the table");
}

void print_once(const std::string& text) {
    static std::mutex mutex;
    static std::set<std::string> printed;
    std::lock_guard const lock(mutex);
    if (printed.insert(text).second) std::cerr << text << std::endl;
}

std::mutex geometry_mutex;
Geometry forced_geometry;
std::atomic<int64_t> version_of_geometry{0};

}  // namespace

const c10::TypedOperatorHandle<SumSignature>& sum_operator() {
    static auto const found =
        c10::Dispatcher::singleton().findSchemaOrThrow("gpureduce::sum", "").typed<SumSignature>();
    return found;
}

int check_dims(at::OptionalIntArrayRef dim, int64_t dims, bool (&reduced)[kMaxDims]) {
    TORCH_CHECK(dims <= kMaxDims, "gpureduce::sum: self has ", dims, " dims, at most ", kMaxDims, " are supported");
    bool const all = !dim || dim->empty();
    for (int64_t d = 0; d < dims; ++d) reduced[d] = all;
    if (all) return int(dims);

    int64_t const bound = dims > 0 ? dims : 1;
    bool named[kMaxDims] = {};
    for (int64_t const d : *dim) {
        TORCH_CHECK_INDEX(-bound <= d && d < bound, "gpureduce::sum: dim ", d, " is out of range for a ", dims,
                          "-d tensor (expected ", -bound, "..", bound - 1, ")");
        int64_t const wrapped = d < 0 ? d + bound : d;
        TORCH_CHECK(!named[wrapped], "gpureduce::sum: dim ", wrapped, " appears more than once in dim=", *dim);
        named[wrapped] = true;
        if (dims > 0) reduced[wrapped] = true;
    }
    return int(dims);
}

Reduction check_sum(const SumArguments& arguments) {
    Reduction reduction;
    reduction.dims = check_dims(arguments.dim, arguments.self.dim(), reduction.reduced);
    reduction.keepdim = arguments.keepdim;
    at::ScalarType const self_type = arguments.self.scalar_type();
    DType const in = dtype_of(self_type, "self");
    bool const promotes = !arguments.dtype && at::isIntegralType(self_type, /*includeBool=*/true);
    reduction.result = promotes ? at::kLong : arguments.dtype.value_or(self_type);
    reduction.out = dtype_of(reduction.result, "a result");
    Resolved const how = resolve_sum(in, reduction.out, accumulate_of(arguments.accumulate));
    reduction.load_as = how.load_as == in ? self_type : scalar_type_of(how.load_as);
    reduction.key = {OpId::sum, how.load_as, how.accumulate};
    return reduction;
}

Accumulate accumulate_of(std::optional<std::string_view> name) {
    if (!name) return Accumulate::native;
    if (*name == "compensated") return Accumulate::compensated;
    if (*name == "double") return Accumulate::float64;
    TORCH_CHECK_VALUE(false, "gpureduce::sum: accumulate must be None, \"compensated\" or \"double\", got \"", *name,
                      "\"");
}

int misalignment_of(const at::Tensor& input) {
    return int(reinterpret_cast<uintptr_t>(input.const_data_ptr()) % kVectorBytes);
}

Problem problem_of(const at::Tensor& input, const Reduction& reduction) {
    return make_problem(input.sizes().data(), input.strides().data(), reduction.reduced, reduction.dims, reduction.key,
                        reduction.out, misalignment_of(input));
}

Plan plan_of(const Problem& problem, const DeviceTraits& device) {
    static bool const print = c10::utils::check_env("GPUREDUCE_PRINT_PLAN") == true;
    Plan const plan = make_plan(problem, device, current_geometry());
    if (print) print_once(to_json(problem, plan));
    return plan;
}

std::string explain_sum(const SumArguments& arguments, int64_t sms, DeviceTraits device) {
    Reduction const reduction = check_sum(arguments);
    bool const converts = reduction.load_as != arguments.self.scalar_type();
    at::Tensor const input = converts ? arguments.self.to(reduction.load_as) : arguments.self;
    Problem const problem = problem_of(input, reduction);
    if (sms > 0) device.sm_count = int(sms);
    return to_json(problem, plan_of(problem, device));
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
