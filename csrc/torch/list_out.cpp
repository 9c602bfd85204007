// gpureduce::total_norm.out, made of total_norm on every device.

#include <ATen/native/Resize.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

#include "list.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

void check_differentiable(const at::Tensor& tensor) {
    if (torch::autograd::compute_requires_grad(tensor))
        torch::autograd::throw_error_out_requires_grad("gpureduce::total_norm");
    TORCH_CHECK_NOT_IMPLEMENTED(
        !tensor._fw_grad(/*level=*/0).defined(),
        "gpureduce::total_norm: out=... does not support forward AD, but an argument has a tangent");
}

at::Tensor& total_norm_out(at::TensorList tensors, const at::Scalar& ord, at::Tensor& out) {
    for (at::Tensor const& tensor : tensors) check_differentiable(tensor);
    check_differentiable(out);
    at::Tensor const norm = total_norm_operator().call(tensors, ord);
    TORCH_CHECK(out.scalar_type() == norm.scalar_type(), "gpureduce::total_norm: expected out of dtype ",
                norm.scalar_type(), ", but found ", out.scalar_type());
    TORCH_CHECK(out.device() == norm.device(), "gpureduce::total_norm: expected out on ", norm.device(),
                ", but found it on ", out.device());
    if (out.dim() != 0) at::native::resize_output(out, {});
    return out.copy_(norm);
}

const Registration list_out_schema(std::nullopt, [](torch::Library& m) {
    m.def("total_norm.out(Tensor[] tensors, Scalar ord=2, *, Tensor(a!) out) -> Tensor(a!)",
          {at::Tag::pt2_compliant_tag});
});
const Registration list_out_kernel(c10::DispatchKey::CompositeImplicitAutograd,
                                   [](torch::Library& m) { m.impl("total_norm.out", total_norm_out); });

}  // namespace
}  // namespace gpureduce::binding
