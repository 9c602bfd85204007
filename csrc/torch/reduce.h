// From a call to what every backend needs: checked, with torch's rules, and with one error text for all.
#pragma once

#include <ATen/core/DimVector.h>
#include <ATen/core/Tensor.h>

#include <string>

#include "../core/plan.h"
#include "operators.h"

namespace gpureduce::binding {

// What a call means, apart from its sizes.
struct Reduction {
    bool reduced[kMaxDims];  // by dim of the input
    int dims;
    bool keepdim;
    at::ScalarType load_as;  // each element is converted to this type before it is read
    at::ScalarType result, second_result;
    OpKey key;
    Form form;
    double parameter;
    DType out, second;
};

// Throws what torch throws, with the op, the argument and its value. Looks at no size.
Reduction check(const Call& call);

// Which dims the call names: None and [] name all, but for any and all, and a 0-d tensor has one dim, 0 or -1. Returns the
// number of dims.
int check_dims(const Call& call, bool (&reduced)[kMaxDims]);

inline bool is_zero(int64_t size) { return size == 0; }
inline bool is_zero(const c10::SymInt& size) { return TORCH_GUARD_OR_FALSE(size.sym_eq(0)); }

// Throws what torch throws where a row of no elements has no result: `dim` of self has none.
[[noreturn]] void refuse_empty(const Call& call, size_t dim);
bool refuses_empty(const Call& call);

// The one shape rule, for real sizes and for symbolic ones; it throws where the operator needs elements and has none.
template <class Sizes, class Int>
Sizes result_sizes(c10::ArrayRef<Int> sizes, const Call& call, const Reduction& reduction) {
    Sizes result;
    bool const refuses = call.op.empty != EmptyRule::identity && refuses_empty(call);
    for (size_t d = 0; d < sizes.size(); ++d) {
        if (!reduction.reduced[d]) {
            result.push_back(sizes[d]);
            continue;
        }
        if (refuses && is_zero(sizes[d])) refuse_empty(call, d);
        if (reduction.keepdim) result.push_back(Int(1));
    }
    return result;
}

// The one meaning of the argument `accumulate`.
Accumulate accumulate_of(const Call& call);

// `self` with the elements that the kernel loads.
at::Tensor converted(const Call& call, at::ScalarType load_as);

// Of the first element's address, modulo 16.
int misalignment_of(const at::Tensor& input);

Problem problem_of(const at::Tensor& input, const Reduction& reduction);

// The plan that a call runs with on `device`. GPUREDUCE_PRINT_PLAN=1 prints each distinct one once, to stderr.
Plan plan_of(const Problem& problem, const DeviceTraits& device);

// The plan and the tree of a call as JSON, for a GPU of `sms` multiprocessors; 0 is the device as it is.
std::string explain_call(const Call& call, int64_t sms, DeviceTraits device);

// A call of the operator of that name and overload, as "max.dim", with the default ord or correction.
Call call_named(std::string_view name, const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, Dtype dtype,
                Text accumulate);

// Overrides that tests set through gpureduce::_force_geometry; every plan of this process takes them.
void force_geometry(const Geometry& geometry);

Geometry current_geometry();

// Changes whenever force_geometry is called.
int64_t geometry_version();

}  // namespace gpureduce::binding
