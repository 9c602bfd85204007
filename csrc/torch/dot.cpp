#include "dot.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>

#include "../cpu/run.h"
#include "aligned.h"
#include "registration.h"
#include "types.h"

namespace gpureduce::binding {
namespace {

// The types and devices that both operators want.
DType check_types(const char* op, const at::Tensor& x, const at::Tensor& y, const char* x_name, const char* y_name) {
    TORCH_CHECK(x.scalar_type() == y.scalar_type(), op, ": expected ", x_name, " and ", y_name,
                " to have the same dtype, but found ", x_name, " of type ", x.scalar_type(), " and ", y_name,
                " of type ", y.scalar_type());
    TORCH_CHECK(x.device() == y.device(), op, ": expected ", x_name, " and ", y_name, " on the same device, but ",
                x_name, " is on ", x.device(), " and ", y_name, " on ", y.device());
    auto const in = element_of(x.scalar_type());
    TORCH_CHECK_NOT_IMPLEMENTED(in && *in != DType::boolean, op, ": not implemented for ", x_name, " of dtype ",
                                x.scalar_type());
    return *in;
}

Accumulate accumulate_named(std::optional<std::string_view> name, DTypeInfo in) {
    bool const is_wide = in.bytes == (in.kind == Kind::complex ? 16 : 8);
    if (!name) return Accumulate::native;
    if (*name == "compensated") return Accumulate::compensated;
    if (*name == "double") return is_wide ? Accumulate::native : Accumulate::float64;
    TORCH_CHECK_VALUE(false, "gpureduce::vecdot: accumulate must be None, \"compensated\" or \"double\", got \"", *name,
                      "\"");
}

// The strides of an input over the broadcast sizes.
at::DimVector broadcast_strides(const at::Tensor& tensor, at::IntArrayRef sizes) {
    at::DimVector strides(sizes.size(), 0);
    size_t const missing = sizes.size() - size_t(tensor.dim());
    for (int64_t d = 0; d < tensor.dim(); ++d)
        if (tensor.size(d) == sizes[missing + d]) strides[missing + d] = tensor.stride(d);
    return strides;
}

// --- kernels that are the same on every device ------------------------------------------------------------------------

at::Tensor meta_of(const PairCall& call) { return at::empty_symint(pair_result_sizes(call), call.x.options()); }
at::Tensor vecdot_meta(const at::Tensor& x, const at::Tensor& y, int64_t dim,
                       std::optional<std::string_view> accumulate) {
    return meta_of(check_vecdot(x, y, dim, accumulate));
}
at::Tensor dot_meta(const at::Tensor& self, const at::Tensor& tensor) { return meta_of(check_dot(self, tensor)); }

// torch's rules: linalg.vecdot is done in the lower precision, dot in the wider one of its inputs' (on the CPU as it is).
template <c10::DispatchKey Key, c10::DeviceType Device>
at::Tensor vecdot_autocast(const at::Tensor& x, const at::Tensor& y, int64_t dim,
                           std::optional<std::string_view> accumulate) {
    c10::impl::ExcludeDispatchKeyGuard const no_autocast(Key);
    at::ScalarType const type = at::autocast::get_autocast_dtype(Device);
    return vecdot_operator().call(at::autocast::cached_cast(type, x, Device),
                                  at::autocast::cached_cast(type, y, Device), dim, accumulate);
}
at::Tensor dot_autocast_cuda(const at::Tensor& self, const at::Tensor& tensor) {
    c10::impl::ExcludeDispatchKeyGuard const no_autocast(c10::DispatchKey::AutocastCUDA);
    if (self.scalar_type() == tensor.scalar_type()) return dot_operator().call(self, tensor);
    return dot_operator().call(at::autocast::cached_cast(at::kFloat, self, at::kCUDA),
                               at::autocast::cached_cast(at::kFloat, tensor, at::kCUDA));
}

// --- the CPU's --------------------------------------------------------------------------------------------------------

void run_cpu(const DotProblem& problem, const at::Tensor& x, const at::Tensor& y, const at::Tensor& result) {
    static cpu::ParallelFor const threads_of_torch = [](int64_t count, int64_t grain,
                                                        const std::function<void(int64_t, int64_t)>& body) {
        at::parallel_for(0, count, grain, body);
    };
    bool const done = cpu::run_dot(problem, x.const_data_ptr(), y.const_data_ptr(), result.mutable_data_ptr(),
                                   at::get_num_threads(), threads_of_torch);
    TORCH_INTERNAL_ASSERT(done, "gpureduce::vecdot: no CPU kernel for ", x.scalar_type());
}

at::Tensor vecdot_cpu(const at::Tensor& x, const at::Tensor& y, int64_t dim,
                      std::optional<std::string_view> accumulate) {
    return pair_with(check_vecdot(x, y, dim, accumulate), run_cpu);
}
at::Tensor& vecdot_out_cpu(const at::Tensor& x, const at::Tensor& y, int64_t dim,
                           std::optional<std::string_view> accumulate, at::Tensor& out) {
    return pair_into(out, check_vecdot(x, y, dim, accumulate), run_cpu);
}
at::Tensor dot_cpu(const at::Tensor& self, const at::Tensor& tensor) {
    return pair_with(check_dot(self, tensor), run_cpu);
}
at::Tensor& dot_out_cpu(const at::Tensor& self, const at::Tensor& tensor, at::Tensor& out) {
    return pair_into(out, check_dot(self, tensor), run_cpu);
}

const Registration dot_schemas(std::nullopt, [](torch::Library& m) {
    m.def("vecdot(Tensor x, Tensor y, *, int dim=-1, str? accumulate=None) -> Tensor", {at::Tag::pt2_compliant_tag});
    m.def("vecdot.out(Tensor x, Tensor y, *, int dim=-1, str? accumulate=None, Tensor(a!) out) -> Tensor(a!)",
          {at::Tag::pt2_compliant_tag});
    m.def("dot(Tensor self, Tensor tensor) -> Tensor", {at::Tag::pt2_compliant_tag});
    m.def("dot.out(Tensor self, Tensor tensor, *, Tensor(a!) out) -> Tensor(a!)", {at::Tag::pt2_compliant_tag});
});
const Registration dot_meta_kernels(c10::DispatchKey::Meta, [](torch::Library& m) {
    m.impl("vecdot", vecdot_meta);
    m.impl("dot", dot_meta);
});
const Registration autocast_cuda_dot_kernels(c10::DispatchKey::AutocastCUDA, [](torch::Library& m) {
    m.impl("vecdot", vecdot_autocast<c10::DispatchKey::AutocastCUDA, at::kCUDA>);
    m.impl("dot", dot_autocast_cuda);
});
const Registration autocast_cpu_dot_kernels(c10::DispatchKey::AutocastCPU, [](torch::Library& m) {
    m.impl("vecdot", vecdot_autocast<c10::DispatchKey::AutocastCPU, at::kCPU>);
});
const Registration cpu_dot_kernels(c10::DispatchKey::CPU, [](torch::Library& m) {
    m.impl("vecdot", vecdot_cpu);
    m.impl("vecdot.out", vecdot_out_cpu);
    m.impl("dot", dot_cpu);
    m.impl("dot.out", dot_out_cpu);
});

}  // namespace

const c10::TypedOperatorHandle<VecdotSignature>& vecdot_operator() {
    static auto const found =
        c10::Dispatcher::singleton().findSchemaOrThrow("gpureduce::vecdot", "").typed<VecdotSignature>();
    return found;
}
const c10::TypedOperatorHandle<DotSignature>& dot_operator() {
    static auto const found =
        c10::Dispatcher::singleton().findSchemaOrThrow("gpureduce::dot", "").typed<DotSignature>();
    return found;
}

PairCall check_vecdot(const at::Tensor& x, const at::Tensor& y, int64_t dim,
                      std::optional<std::string_view> accumulate) {
    at::ScalarType const type = x.scalar_type();
    TORCH_CHECK(at::isFloatingType(type) || at::isComplexType(type),
                "gpureduce::vecdot: expected floating point or complex tensors, but x is of dtype ", type);
    DType const in = check_types("gpureduce::vecdot", x, y, "x", "y");
    int64_t const dims = std::max(x.dim(), y.dim()), bound = std::max<int64_t>(dims, 1);
    TORCH_CHECK(dims <= kMaxDims, "gpureduce::vecdot: the inputs have ", dims, " dims, at most ", kMaxDims,
                " are supported");
    TORCH_CHECK_INDEX(-bound <= dim && dim < bound, "gpureduce::vecdot: dim ", dim, " is out of range for ", dims,
                      "-d tensors (expected ", -bound, "..", bound - 1, ")");
    int64_t const wrapped = dims == 0 ? -1 : dim < 0 ? dim + dims : dim;
    return {"gpureduce::vecdot", x, y, dims, wrapped, true, in, accumulate_named(accumulate, dtype_info(in))};
}

PairCall check_dot(const at::Tensor& self, const at::Tensor& tensor) {
    TORCH_CHECK(self.dim() == 1 && tensor.dim() == 1, "gpureduce::dot: expected 1-d tensors, but self is ", self.dim(),
                "-d and tensor is ", tensor.dim(), "-d");
    DType const in = check_types("gpureduce::dot", self, tensor, "self", "tensor");
    TORCH_CHECK(TORCH_GUARD_OR_TRUE(self.sym_numel().sym_eq(tensor.sym_numel())),
                "gpureduce::dot: expected self and tensor to have the same number of elements, but got ",
                self.sym_numel(), " and ", tensor.sym_numel());
    return {"gpureduce::dot", self, tensor, 1, 0, false, in, Accumulate::native};
}

c10::SymDimVector pair_result_sizes(const PairCall& call) {
    c10::SymDimVector sizes = at::infer_size_symdimvector(call.x.sym_sizes(), call.y.sym_sizes());
    if (call.dim >= 0) sizes.erase(sizes.begin() + call.dim);
    return sizes;
}

DotProblem problem_of(const PairCall& call, const at::Tensor& x, const at::Tensor& y) {
    at::DimVector const sizes = at::infer_size_dimvector(x.sizes(), y.sizes());
    DotProblem problem =
        make_dot_problem(sizes.data(), broadcast_strides(x, sizes).data(), broadcast_strides(y, sizes).data(),
                         int(sizes.size()), int(call.dim), call.in, call.accumulate, call.conjugate);
    set_addresses(problem, x.const_data_ptr(), y.const_data_ptr());
    return problem;
}

at::Tensor pair_with(const PairCall& call, RunPair* run) {
    at::Tensor const x = with_aligned_elements(call.x), y = with_aligned_elements(call.y);
    DotProblem const problem = problem_of(call, x, y);
    at::Tensor const result = at::empty(C10_AS_INTARRAYREF_SLOW(pair_result_sizes(call)), x.options());
    run(problem, x, y, result);
    return result;
}

at::Tensor& pair_into(at::Tensor& out, const PairCall& call, RunPair* run) {
    TORCH_CHECK(out.scalar_type() == call.x.scalar_type(), call.op, ": expected out of dtype ", call.x.scalar_type(),
                ", but found ", out.scalar_type());
    TORCH_CHECK(out.device() == call.x.device(), call.op, ": out is on ", out.device(), ", but the inputs are on ",
                call.x.device());
    at::native::resize_output(out, C10_AS_INTARRAYREF_SLOW(pair_result_sizes(call)));
    bool beside = !out.is_contiguous();
    for (at::Tensor const* input : {&call.x, &call.y}) {
        at::MemOverlapStatus const status = at::get_overlap_status(out, *input);
        TORCH_CHECK(status != at::MemOverlapStatus::Full && status != at::MemOverlapStatus::Partial, call.op,
                    ": unsupported operation: out and an input share memory. Please clone() one of them");
        beside = beside || status != at::MemOverlapStatus::No;
    }
    TORCH_CHECK(
        at::has_internal_overlap(out) != at::MemOverlap::Yes, call.op,
        ": unsupported operation: more than one element of out refers to a single memory location. Please clone() "
        "it");
    if (beside) return out.copy_(pair_with(call, run));
    at::Tensor const x = with_aligned_elements(call.x), y = with_aligned_elements(call.y);
    run(problem_of(call, x, y), x, y, out);
    return out;
}

}  // namespace gpureduce::binding
