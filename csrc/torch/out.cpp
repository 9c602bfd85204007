#include "out.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

#include "registration.h"

namespace gpureduce::binding {
namespace {

using OutSignature = at::Tensor&(const at::Tensor&, at::OptionalIntArrayRef, bool, std::optional<at::ScalarType>,
                                 std::optional<std::string_view>, at::Tensor&);

const c10::TypedOperatorHandle<OutSignature>& sum_out_operator() {
    static auto const found =
        c10::Dispatcher::singleton().findSchemaOrThrow("gpureduce::sum", "out").typed<OutSignature>();
    return found;
}

// The arguments with the type that `out` asks for; with dtype=None it is asked for by `out` alone.
SumArguments with_type_of(const at::Tensor& out, SumArguments arguments) {
    check_same_device(arguments.self, out);
    TORCH_CHECK(!arguments.dtype || *arguments.dtype == out.scalar_type(),
                "gpureduce::sum: expected out to have dtype ", *arguments.dtype, ", as dtype= says, but got ",
                out.scalar_type());
    arguments.dtype = out.scalar_type();
    return arguments;
}

// Where a write would destroy elements before they are read. torch.sum does not look, and gives wrong sums.
bool may_overlap(const at::Tensor& out, const at::Tensor& self) {
    at::MemOverlapStatus const status = at::get_overlap_status(out, self);
    TORCH_CHECK(status != at::MemOverlapStatus::Full && status != at::MemOverlapStatus::Partial,
                "gpureduce::sum: unsupported operation: out and self share memory. Please clone() one of them");
    return status != at::MemOverlapStatus::No;
}

// --- the other kernels, the same on every device --------------------------------------------------------------------

at::Tensor& sum_out_meta(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                         std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate,
                         at::Tensor& out) {
    Reduction const reduction = check_sum(with_type_of(out, {self, dim, keepdim, dtype, accumulate}));
    at::native::resize_output_symint(out, result_sizes<at::SymDimVector>(self.sym_sizes(), reduction));
    return out;
}

// In a graph, the sum is the operator without out=, whose result takes the place of what `out` was.
at::Tensor& sum_out_functionalize(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                                  std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate,
                                  at::Tensor& out) {
    namespace functional = at::functionalization::impl;
    bool const wrapped = functional::isFunctionalTensor(self);
    at::Tensor input = self;
    if (wrapped) {
        functional::sync(self);
        input = functional::from_functional_tensor(self);
    }
    if (!functional::isFunctionalTensor(out)) {
        TORCH_CHECK(!wrapped, "gpureduce::sum: out is not functional, but self is: wrap it in functionalize(), too");
        at::AutoDispatchSkipFunctionalize const guard;
        return sum_out_operator().call(self, dim, keepdim, dtype, accumulate, out);
    }
    dtype = with_type_of(out, {self, dim, keepdim, dtype, accumulate}).dtype;
    at::Tensor const result = [&] {
        at::AutoDispatchSkipFunctionalize const guard;
        return sum_operator().call(input, dim, keepdim, dtype, accumulate);
    }();
    functional::replace_(out, result);
    functional::commit_update(out);
    functional::sync(out);
    return out;
}

at::Tensor& sum_out_autograd(c10::DispatchKeySet keys, const at::Tensor& self, at::OptionalIntArrayRef dim,
                             bool keepdim, std::optional<at::ScalarType> dtype,
                             std::optional<std::string_view> accumulate, at::Tensor& out) {
    if (torch::autograd::compute_requires_grad(self, out))
        torch::autograd::throw_error_out_requires_grad("gpureduce::sum");
    TORCH_CHECK_NOT_IMPLEMENTED(!self._fw_grad(/*level=*/0).defined() && !out._fw_grad(/*level=*/0).defined(),
                                "gpureduce::sum: out=... does not support forward AD, but an argument has a tangent");
    at::AutoDispatchBelowAutograd const guard;
    return sum_out_operator().redispatch(keys & c10::after_autograd_keyset, self, dim, keepdim, dtype, accumulate, out);
}

// Autograd notices by a tensor's version that it was written to.
at::Tensor& sum_out_version(c10::DispatchKeySet keys, const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                            std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate,
                            at::Tensor& out) {
    {
        at::AutoDispatchBelowADInplaceOrView const guard;
        sum_out_operator().redispatch(keys & c10::after_ADInplaceOrView_keyset, self, dim, keepdim, dtype, accumulate,
                                      out);
    }
    torch::autograd::increment_version(out);
    return out;
}

const Registration meta(c10::DispatchKey::Meta, [](torch::Library& m) { m.impl("sum.out", sum_out_meta); });
const Registration functionalize(c10::DispatchKey::Functionalize,
                                 [](torch::Library& m) { m.impl("sum.out", sum_out_functionalize); });
const Registration autograd(c10::DispatchKey::Autograd, [](torch::Library& m) { m.impl("sum.out", sum_out_autograd); });
const Registration version(c10::DispatchKey::ADInplaceOrView,
                           [](torch::Library& m) { m.impl("sum.out", sum_out_version); });

}  // namespace

void check_same_device(const at::Tensor& self, const at::Tensor& out) {
    TORCH_CHECK(out.device() == self.device(), "gpureduce::sum: out is on ", out.device(), ", but self is on ",
                self.device());
}

at::Tensor& sum_into(at::Tensor& out, const SumArguments& arguments, const DeviceTraits* traits, Run* run) {
    SumArguments const wanted = with_type_of(out, arguments);
    at::Tensor const& self = wanted.self;
    auto const call = prepare(wanted, traits);
    bool beside = may_overlap(out, self);
    if (at::native::resize_output(out, call->result_sizes)) beside = may_overlap(out, self);
    TORCH_CHECK(at::has_internal_overlap(out) != at::MemOverlap::Yes,
                "gpureduce::sum: unsupported operation: more than one element of out refers to a single memory "
                "location. Please clone() it");
    if (call->load_as != self.scalar_type())
        return sum_into(out, {self.to(call->load_as), wanted.dim, wanted.keepdim, wanted.dtype, wanted.accumulate},
                        traits, run);
    if (!beside && out.is_contiguous()) {
        run(*call, self, out);
    } else {
        at::Tensor const result = at::empty(call->result_sizes, out.options());
        run(*call, self, result);
        out.copy_(result);
    }
    return out;
}

}  // namespace gpureduce::binding
