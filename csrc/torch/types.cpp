#include "types.h"

#include <ATen/core/Formatting.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <c10/util/Exception.h>

#include "operators.h"

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

bool is_integer(at::ScalarType type) { return at::isIntegralType(type, /*includeBool=*/true); }

at::ScalarType default_type() { return c10::typeMetaToScalarType(c10::get_default_dtype()); }

void refuse_complex(const Call& call) {
    at::ScalarType const type = call.self.scalar_type();
    // torch's amax and aminmax have no kernel for complex numbers, its max.dim and argmax say that they do not support them.
    if (call.op.op == OpId::extremes)
        TORCH_CHECK_NOT_IMPLEMENTED(!at::isComplexType(type), "gpureduce::", call.op.name,
                                    ": not implemented for self of dtype ", type, ", which has no order");
    TORCH_CHECK(!at::isComplexType(type), "gpureduce::", call.op.name,
                ": does not support complex input, got self of dtype ", type);
}

at::ScalarType sum_type(const Call& call) {
    at::ScalarType const type = call.self.scalar_type();
    return call.dtype ? *call.dtype : is_integer(type) ? at::kLong : type;
}

at::ScalarType mean_type(const Call& call) {
    at::ScalarType const type = call.dtype.value_or(call.self.scalar_type());
    TORCH_CHECK(!is_integer(type), "gpureduce::", call.op.name, ": could not infer output dtype. ",
                call.dtype ? "Optional" : "Input",
                " dtype must be either a floating point or complex dtype. Got: ", type);
    return type;
}

at::ScalarType nanmean_type(const Call& call) {
    at::ScalarType const type = call.self.scalar_type();
    TORCH_CHECK(!is_integer(type),
                "gpureduce::nanmean: expected input to have floating point or complex dtype but got ", type);
    refuse_complex(call);
    return mean_type(call);
}

at::ScalarType squares_type(const Call& call) {
    at::ScalarType const type = call.self.scalar_type();
    TORCH_CHECK(!at::isComplexType(type) || !call.dtype || !is_integer(*call.dtype),
                "gpureduce::sumsq: dtype should be floating point or complex for complex input, but got ", *call.dtype);
    return call.dtype || !at::isComplexType(type) ? sum_type(call) : at::toRealValueType(type);
}

at::ScalarType index_type(const Call& call) {
    refuse_complex(call);
    TORCH_CHECK(call.self.scalar_type() != at::kBool, "gpureduce::", call.op.name, ": does not support bool input");
    return at::kLong;
}

at::ScalarType value_type(const Call& call) {
    refuse_complex(call);
    return call.self.scalar_type();
}

at::ScalarType norm_type(const Call& call) {
    at::ScalarType const type = call.self.scalar_type();
    TORCH_CHECK(!is_integer(type),
                "gpureduce::norm: expected a floating point or complex tensor as input, got self of dtype ", type);
    if (call.dtype) {
        at::ScalarType const wanted = *call.dtype;
        TORCH_CHECK(!is_integer(wanted), "gpureduce::norm: dtype should be floating point or complex, but got ",
                    wanted);
        TORCH_CHECK(at::isComplexType(wanted) == at::isComplexType(type), "gpureduce::norm: dtype should be ",
                    at::isComplexType(type) ? "complex for complex" : "real for real", " inputs, but got ", wanted);
        TORCH_CHECK(at::promoteTypes(type, wanted) == wanted, "gpureduce::norm: the dtype of the input (", type,
                    ") should be convertible without narrowing to the specified dtype (", wanted, ")");
    }
    return at::toRealValueType(call.dtype.value_or(type));
}

at::ScalarType variance_type(const Call& call) {
    at::ScalarType const type = call.self.scalar_type();
    TORCH_CHECK(!is_integer(type), "gpureduce::", call.op.name,
                ": std and var only support floating point and complex dtypes, got self of dtype ", type);
    return at::toRealValueType(type);
}

at::ScalarType inexact_type(const Call& call) {
    at::ScalarType const type = call.self.scalar_type();
    return is_integer(type) ? default_type() : type;
}

at::ScalarType statistics_type(const Call& call) {
    at::ScalarType const type = inexact_type(call);
    TORCH_CHECK_NOT_IMPLEMENTED(!at::isComplexType(type),
                                "gpureduce::softmax_stats: not implemented for self of dtype ", type);
    return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

at::ScalarType first_type(const Call& call) {
    switch (call.op.type) {
        case TypeRule::sum: return sum_type(call);
        case TypeRule::nansum: refuse_complex(call); return sum_type(call);
        case TypeRule::mean: return mean_type(call);
        case TypeRule::nanmean: return nanmean_type(call);
        case TypeRule::squares: return squares_type(call);
        case TypeRule::value: return value_type(call);
        case TypeRule::index: return index_type(call);
        case TypeRule::truth: return call.self.scalar_type() == at::kByte ? at::kByte : at::kBool;
        case TypeRule::count: return at::kLong;
        case TypeRule::norm: return norm_type(call);
        case TypeRule::variance: return variance_type(call);
        case TypeRule::inexact: return inexact_type(call);
        case TypeRule::statistics: return statistics_type(call);
    }
    TORCH_INTERNAL_ASSERT(false, "a rule of types is missing");
}

}  // namespace

std::optional<DType> element_of(at::ScalarType type) {
    for (TypePair const pair : kTypes)
        if (pair.torch == type) return pair.ours;
    return std::nullopt;
}

DType dtype_of(at::ScalarType type, const Operator& op, const char* what) {
    if (auto const found = element_of(type)) return *found;
    TORCH_CHECK_NOT_IMPLEMENTED(false, "gpureduce::", op.name, ": not implemented for ", what, " of dtype ", type);
}

at::ScalarType scalar_type_of(DType dtype) {
    for (TypePair const pair : kTypes)
        if (pair.ours == dtype) return pair.torch;
    TORCH_INTERNAL_ASSERT(false, "a dtype is missing from the table");
}

double real_number(const at::Scalar& scalar, const Operator& op, const char* name) {
    TORCH_CHECK(!scalar.isComplex(), "gpureduce::", op.name, ": expected a real number as ", name, ", got ", scalar);
    return scalar.toDouble();
}

ResultTypes result_types(const Call& call) {
    dtype_of(call.self.scalar_type(), call.op, "self");  // before torch's helpers see a type that they do not expect
    at::ScalarType const first = first_type(call);
    bool const indexed = call.op.op == OpId::argmax || call.op.op == OpId::argmin;
    return {first, indexed ? at::kLong : call.op.op == OpId::moments ? call.self.scalar_type() : first};
}

}  // namespace gpureduce::binding
