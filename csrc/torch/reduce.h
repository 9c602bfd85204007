// From the arguments of a call to what every backend needs: checked, with torch's rules, and with one error text for
// all.
#pragma once

#include <ATen/core/DimVector.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <string_view>

#include "../core/plan.h"

namespace gpureduce::binding {

// The arguments of gpureduce::sum as the schema has them, borrowed for the time of one call.
struct SumArguments {
    const at::Tensor& self;
    at::OptionalIntArrayRef dim;
    bool keepdim;
    std::optional<at::ScalarType> dtype;
    std::optional<std::string_view> accumulate;
};

using SumSignature = at::Tensor(const at::Tensor&, at::OptionalIntArrayRef, bool, std::optional<at::ScalarType>,
                                std::optional<std::string_view>);

// The operator itself, to call it from above or from the middle of the dispatcher.
const c10::TypedOperatorHandle<SumSignature>& sum_operator();

// What a call means, apart from its sizes.
struct Reduction {
    bool reduced[kMaxDims];  // by dim of the input
    int dims;
    bool keepdim;
    at::ScalarType load_as;  // each element is converted to this type before it is read
    at::ScalarType result;
    OpKey key;
    DType out;
};

// Throws what torch throws, with the op, the argument and its value. Looks at no size.
Reduction check_sum(const SumArguments& arguments);

// Which dims `dim` names: None and [] name all, and a 0-d tensor has one dim, 0 or -1. Returns the number of dims.
int check_dims(at::OptionalIntArrayRef dim, int64_t dims, bool (&reduced)[kMaxDims]);

// The one shape rule, for real sizes and for symbolic ones.
template <class Sizes, class Int>
Sizes result_sizes(c10::ArrayRef<Int> sizes, const Reduction& reduction) {
    Sizes result;
    for (size_t d = 0; d < sizes.size(); ++d) {
        if (!reduction.reduced[d])
            result.push_back(sizes[d]);
        else if (reduction.keepdim)
            result.push_back(Int(1));
    }
    return result;
}

// The one meaning of the argument `accumulate`.
Accumulate accumulate_of(std::optional<std::string_view> name);

// Of the first element's address, modulo 16.
int misalignment_of(const at::Tensor& input);

Problem problem_of(const at::Tensor& input, const Reduction& reduction);

// The plan that a call runs with on `device`. GPUREDUCE_PRINT_PLAN=1 prints each distinct one once, to stderr.
Plan plan_of(const Problem& problem, const DeviceTraits& device);

// The plan and the tree of a call as JSON, for a GPU of `sms` multiprocessors; 0 is the device as it is.
std::string explain_sum(const SumArguments& arguments, int64_t sms, DeviceTraits device);

// Overrides that tests set through gpureduce::_force_geometry; every plan of this process takes them.
void force_geometry(const Geometry& geometry);

Geometry current_geometry();

// Changes whenever force_geometry is called.
int64_t geometry_version();

}  // namespace gpureduce::binding
