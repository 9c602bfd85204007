// gpureduce::vecdot.out and gpureduce::dot.out above the devices: Meta, functionalization, autograd.

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/native/Resize.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

#include "dot.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

using Text = std::optional<std::string_view>;
using VecdotOut = at::Tensor&(const at::Tensor&, const at::Tensor&, int64_t, Text, at::Tensor&);
using DotOut = at::Tensor&(const at::Tensor&, const at::Tensor&, at::Tensor&);
const c10::TypedOperatorHandle<VecdotOut>& vecdot_out_operator() {
    static auto const found =
        c10::Dispatcher::singleton().findSchemaOrThrow("gpureduce::vecdot", "out").typed<VecdotOut>();
    return found;
}
const c10::TypedOperatorHandle<DotOut>& dot_out_operator() {
    static auto const found = c10::Dispatcher::singleton().findSchemaOrThrow("gpureduce::dot", "out").typed<DotOut>();
    return found;
}

at::Tensor& out_meta(const PairCall& call, at::Tensor& out) {
    TORCH_CHECK(out.scalar_type() == call.x.scalar_type(), call.op, ": expected out of dtype ", call.x.scalar_type(),
                ", but found ", out.scalar_type());
    at::native::resize_output_symint(out, pair_result_sizes(call));
    return out;
}
at::Tensor& vecdot_out_meta(const at::Tensor& x, const at::Tensor& y, int64_t dim, Text accumulate, at::Tensor& out) {
    return out_meta(check_vecdot(x, y, dim, accumulate), out);
}
at::Tensor& dot_out_meta(const at::Tensor& self, const at::Tensor& tensor, at::Tensor& out) {
    return out_meta(check_dot(self, tensor), out);
}

void check_out_autograd(const char* op, const at::Tensor& x, const at::Tensor& y, const at::Tensor& out) {
    if (torch::autograd::compute_requires_grad(x, y, out)) torch::autograd::throw_error_out_requires_grad(op);
    for (at::Tensor const* tensor : {&x, &y, &out})
        TORCH_CHECK_NOT_IMPLEMENTED(!tensor->_fw_grad(/*level=*/0).defined(), op,
                                    ": out=... does not support forward AD, but an argument has a tangent");
}
at::Tensor& vecdot_out_autograd(c10::DispatchKeySet keys, const at::Tensor& x, const at::Tensor& y, int64_t dim,
                                Text accumulate, at::Tensor& out) {
    check_out_autograd("gpureduce::vecdot", x, y, out);
    at::AutoDispatchBelowAutograd const guard;
    return vecdot_out_operator().redispatch(keys & c10::after_autograd_keyset, x, y, dim, accumulate, out);
}
at::Tensor& dot_out_autograd(c10::DispatchKeySet keys, const at::Tensor& self, const at::Tensor& tensor,
                             at::Tensor& out) {
    check_out_autograd("gpureduce::dot", self, tensor, out);
    at::AutoDispatchBelowAutograd const guard;
    return dot_out_operator().redispatch(keys & c10::after_autograd_keyset, self, tensor, out);
}

at::Tensor& vecdot_out_version(c10::DispatchKeySet keys, const at::Tensor& x, const at::Tensor& y, int64_t dim,
                               Text accumulate, at::Tensor& out) {
    {
        at::AutoDispatchBelowADInplaceOrView const guard;
        vecdot_out_operator().redispatch(keys & c10::after_ADInplaceOrView_keyset, x, y, dim, accumulate, out);
    }
    torch::autograd::increment_version(out);
    return out;
}
at::Tensor& dot_out_version(c10::DispatchKeySet keys, const at::Tensor& self, const at::Tensor& tensor,
                            at::Tensor& out) {
    {
        at::AutoDispatchBelowADInplaceOrView const guard;
        dot_out_operator().redispatch(keys & c10::after_ADInplaceOrView_keyset, self, tensor, out);
    }
    torch::autograd::increment_version(out);
    return out;
}

// In a graph, the operator without out=, whose result takes the place of what `out` was.
template <class Plain, class Into>
at::Tensor& out_functionalize(const char* op, const at::Tensor& x, const at::Tensor& y, at::Tensor& out, Plain plain,
                              Into into) {
    namespace functional = at::functionalization::impl;
    bool wrapped = false;
    auto const unwrapped = [&](const at::Tensor& input) {
        if (!functional::isFunctionalTensor(input)) return input;
        wrapped = true;
        functional::sync(input);
        return functional::from_functional_tensor(input);
    };
    at::Tensor const a = unwrapped(x), b = unwrapped(y);
    if (!functional::isFunctionalTensor(out)) {
        TORCH_CHECK(!wrapped, op, ": out is not functional, but an input is: wrap it in functionalize(), too");
        at::AutoDispatchSkipFunctionalize const guard;
        return into(x, y, out);
    }
    at::Tensor const result = [&] {
        at::AutoDispatchSkipFunctionalize const guard;
        return plain(a, b);
    }();
    TORCH_CHECK(out.scalar_type() == result.scalar_type(), op, ": expected out of dtype ", result.scalar_type(),
                ", but found ", out.scalar_type());
    functional::replace_(out, result);
    functional::commit_update(out);
    functional::sync(out);
    return out;
}
at::Tensor& vecdot_out_functionalize(const at::Tensor& x, const at::Tensor& y, int64_t dim, Text accumulate,
                                     at::Tensor& out) {
    return out_functionalize(
        "gpureduce::vecdot", x, y, out,
        [&](const at::Tensor& a, const at::Tensor& b) { return vecdot_operator().call(a, b, dim, accumulate); },
        [&](const at::Tensor& a, const at::Tensor& b, at::Tensor& to) -> at::Tensor& {
            return vecdot_out_operator().call(a, b, dim, accumulate, to);
        });
}
at::Tensor& dot_out_functionalize(const at::Tensor& self, const at::Tensor& tensor, at::Tensor& out) {
    return out_functionalize(
        "gpureduce::dot", self, tensor, out,
        [&](const at::Tensor& a, const at::Tensor& b) { return dot_operator().call(a, b); },
        [&](const at::Tensor& a, const at::Tensor& b, at::Tensor& to) -> at::Tensor& {
            return dot_out_operator().call(a, b, to);
        });
}

const Registration dot_out_autograd_kernels(c10::DispatchKey::Autograd, [](torch::Library& m) {
    m.impl("vecdot.out", vecdot_out_autograd);
    m.impl("dot.out", dot_out_autograd);
});
const Registration dot_out_version_kernels(c10::DispatchKey::ADInplaceOrView, [](torch::Library& m) {
    m.impl("vecdot.out", vecdot_out_version);
    m.impl("dot.out", dot_out_version);
});
const Registration dot_out_meta_kernels(c10::DispatchKey::Meta, [](torch::Library& m) {
    m.impl("vecdot.out", vecdot_out_meta);
    m.impl("dot.out", dot_out_meta);
});
const Registration dot_out_functionalize_kernels(c10::DispatchKey::Functionalize, [](torch::Library& m) {
    m.impl("vecdot.out", vecdot_out_functionalize);
    m.impl("dot.out", dot_out_functionalize);
});

}  // namespace
}  // namespace gpureduce::binding
