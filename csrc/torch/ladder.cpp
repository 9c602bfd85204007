// gpureduce::ladder on every device: its schema, its checks, Meta, and autograd, which it refuses.

#include "ladder.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

#include "registration.h"

namespace gpureduce::binding {
namespace {

const c10::TypedOperatorHandle<LadderSignature>& ladder_operator() {
    static auto const found =
        c10::Dispatcher::singleton().findSchemaOrThrow("gpureduce::ladder", "").typed<LadderSignature>();
    return found;
}

// --- checks: what each kind of rung takes, and the sizes of its result --------------------------------------------------

void check_tensor(const LadderCall& call, const char* name, const at::Tensor& tensor, at::ScalarType type) {
    TORCH_CHECK(tensor.scalar_type() == type, "gpureduce::ladder: rung '", call.rung, "' expects ", name, " of dtype ",
                type, ", but it is of dtype ", tensor.scalar_type());
    TORCH_CHECK(tensor.is_contiguous(), "gpureduce::ladder: rung '", call.rung, "' expects a contiguous ", name,
                ", but its sizes are ", tensor.sym_sizes(), " and its strides ", tensor.sym_strides());
}
void check_dims(const LadderCall& call, const char* name, const at::Tensor& tensor, int64_t dims) {
    TORCH_CHECK(tensor.dim() == dims, "gpureduce::ladder: rung '", call.rung, "' expects ", name, " to be ", dims,
                "-d, but it is ", tensor.dim(), "-d");
}
void check_no_other(const LadderCall& call) {
    TORCH_CHECK(!call.other.defined(), "gpureduce::ladder: rung '", call.rung,
                "' takes no other tensor, but got one of ", "sizes ", call.other.sym_sizes());
}
void check_other(const LadderCall& call, const char* what) {
    TORCH_CHECK(call.other.defined(), "gpureduce::ladder: rung '", call.rung, "' needs other, ", what,
                ", but it is None");
    TORCH_CHECK(call.other.device() == call.self.device(), "gpureduce::ladder: other is on ", call.other.device(),
                ", but self is on ", call.self.device());
}

c10::SymDimVector check_kind(ladder::SumArgs, LadderCall& call) {
    check_no_other(call);
    return {};
}
c10::SymDimVector check_kind(ladder::PipelineArgs, LadderCall& call) {
    check_no_other(call);
    return {};
}
c10::SymDimVector check_kind(ladder::MapArgs, LadderCall& call) {
    if (!call.other.defined()) call.other = call.self;
    check_other(call, "which is added to self");
    check_tensor(call, "other", call.other, at::kFloat);
    TORCH_CHECK(call.self.sym_sizes().equals(call.other.sym_sizes()), "gpureduce::ladder: rung '", call.rung,
                "' expects self and other of the same sizes, but got ", call.self.sym_sizes(), " and ",
                call.other.sym_sizes());
    auto const sizes = call.self.sym_sizes();
    return {sizes.begin(), sizes.end()};
}
c10::SymDimVector check_kind(ladder::TileArgs, LadderCall& call) {
    check_other(call, "the matrix by which self is multiplied");
    check_tensor(call, "other", call.other, at::kFloat);
    check_dims(call, "self", call.self, 2);
    check_dims(call, "other", call.other, 2);
    TORCH_CHECK(call.self.sym_size(1) == call.other.sym_size(0), "gpureduce::ladder: rung '", call.rung,
                "' expects as many columns of self as rows of other, but got ", call.self.sym_sizes(), " and ",
                call.other.sym_sizes());
    return {call.self.sym_size(0), call.other.sym_size(1)};
}
c10::SymDimVector check_kind(ladder::ColumnsArgs, LadderCall& call) {
    check_no_other(call);
    check_dims(call, "self", call.self, 2);
    return {call.self.sym_size(1)};
}
c10::SymDimVector check_kind(ladder::AdaptiveArgs, LadderCall& call) {
    check_other(call, "the offsets of the rows in self");
    check_tensor(call, "other", call.other, at::kLong);
    check_dims(call, "self", call.self, 1);
    check_dims(call, "other", call.other, 1);
    TORCH_CHECK(call.other.sym_size(0) >= 1, "gpureduce::ladder: rung '", call.rung,
                "' expects one offset more than there are rows, but other has none");
    return {call.other.sym_size(0) - 1};
}

// --- kernels that are the same on every device --------------------------------------------------------------------------

at::Tensor ladder_meta(const at::Tensor& self, std::string_view rung, const std::optional<at::Tensor>& other) {
    LadderCall const call = check_ladder(self, rung, other);
    TORCH_CHECK_NOT_IMPLEMENTED(ladder::parse(rung).name != ladder::Pipeline::name, "gpureduce::ladder: rung '", rung,
                                "' reads the memory of the host and has no Meta kernel");
    return at::empty_symint(call.result_sizes, self.options());
}

void refuse_gradient(const char* name, const at::Tensor& tensor) {
    TORCH_CHECK(!torch::autograd::compute_requires_grad(tensor), "gpureduce::ladder: not differentiable, but ", name,
                " requires a gradient; call it under torch.no_grad(), or gpureduce::sum, which is");
    TORCH_CHECK_NOT_IMPLEMENTED(!tensor._fw_grad(/*level=*/0).defined(),
                                "gpureduce::ladder: does not support forward AD, but ", name, " has a tangent");
}
at::Tensor ladder_autograd(c10::DispatchKeySet keys, const at::Tensor& self, std::string_view rung,
                           const std::optional<at::Tensor>& other) {
    refuse_gradient("self", self);
    if (other.has_value() && other->defined()) refuse_gradient("other", *other);
    at::AutoDispatchBelowAutograd const guard;
    return ladder_operator().redispatch(keys & c10::after_autograd_keyset, self, rung, other);
}

const Registration ladder_schemas(std::nullopt, [](torch::Library& m) {
    m.def("ladder(Tensor self, str rung, Tensor? other=None) -> Tensor", {at::Tag::pt2_compliant_tag});
    m.def("ladder_rungs() -> str", ladder::describe_rungs);
});
const Registration ladder_meta_kernels(c10::DispatchKey::Meta,
                                       [](torch::Library& m) { m.impl("ladder", ladder_meta); });
const Registration ladder_autograd_kernels(c10::DispatchKey::Autograd,
                                           [](torch::Library& m) { m.impl("ladder", ladder_autograd); });

}  // namespace

LadderCall check_ladder(const at::Tensor& self, std::string_view rung, const std::optional<at::Tensor>& other) {
    LadderCall call{rung, self, other.value_or(at::Tensor()), {}};
    bool const known = ladder::visit_rung(rung, [&](auto chosen, int) {
        check_tensor(call, "self", self, at::kFloat);
        call.result_sizes = check_kind(typename decltype(chosen)::Args{}, call);
    });
    TORCH_CHECK_VALUE(known, "gpureduce::ladder: rung '", rung, "' does not exist (expected one of ",
                      ladder::all_names(), ")");
    return call;
}

}  // namespace gpureduce::binding
