// gpureduce::vecdot and gpureduce::dot: two tensors, made ready for one call of a kernel.
#pragma once

#include <ATen/core/DimVector.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string_view>

#include "../core/dot.h"

namespace gpureduce::binding {

using VecdotSignature = at::Tensor(const at::Tensor&, const at::Tensor&, int64_t, std::optional<std::string_view>);
const c10::TypedOperatorHandle<VecdotSignature>& vecdot_operator();
using DotSignature = at::Tensor(const at::Tensor&, const at::Tensor&);
const c10::TypedOperatorHandle<DotSignature>& dot_operator();

// A call, checked. Sizes are not looked at.
struct PairCall {
    const char* op;
    const at::Tensor& x;
    const at::Tensor& y;
    int64_t dims;  // of the broadcast inputs
    int64_t dim;   // the reduced one; -1 for 0-d inputs
    bool conjugate;
    DType in;
    Accumulate accumulate;
};
PairCall check_vecdot(const at::Tensor& x, const at::Tensor& y, int64_t dim,
                      std::optional<std::string_view> accumulate);
PairCall check_dot(const at::Tensor& self, const at::Tensor& tensor);

// The result's sizes, symbolic or not.
c10::SymDimVector pair_result_sizes(const PairCall& call);
// The problem of inputs whose elements are at addresses that their type allows.
DotProblem problem_of(const PairCall& call, const at::Tensor& x, const at::Tensor& y);

// Runs a problem on its device, into `result`, which is contiguous.
using RunPair = void(const DotProblem& problem, const at::Tensor& x, const at::Tensor& y, const at::Tensor& result);

// What a device's kernels do around `run`.
at::Tensor pair_with(const PairCall& call, RunPair* run);
at::Tensor& pair_into(at::Tensor& out, const PairCall& call, RunPair* run);

}  // namespace gpureduce::binding
