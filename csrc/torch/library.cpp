// The operators' schemas, and the kernels that are the same on every device: Meta, autocast, the private helpers.

#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>

#include "prepare.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

// Sizes stay symbolic, so a size that is known only at run time raises no guard.
at::Tensor sum_meta(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                    std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate) {
    Reduction const reduction = check_sum({self, dim, keepdim, dtype, accumulate});
    return at::empty_symint(result_sizes<at::SymDimVector>(self.sym_sizes(), reduction),
                            self.options().dtype(reduction.result));
}

// torch's rule for torch.sum: on CUDA 16-bit floats are summed into float32; on the CPU autocast leaves sums alone,
// which is what the dispatcher does for an operator that registers nothing.
at::Tensor sum_autocast_cuda(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                             std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate) {
    c10::impl::ExcludeDispatchKeyGuard const no_autocast(c10::DispatchKey::AutocastCUDA);
    bool const eligible = at::autocast::is_eligible(self, c10::kCUDA);
    return sum_operator().call(self, dim, keepdim, eligible && !dtype ? at::kFloat : dtype, accumulate);
}

std::string explain(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,
                    std::optional<at::ScalarType> dtype, std::optional<std::string_view> accumulate, int64_t sms) {
    return explain_sum({self, dim, keepdim, dtype, accumulate}, sms, DeviceTraits{});
}

void force(int64_t path, int64_t threads, int64_t chunk_leaves, int64_t threads_across, int64_t rows_per_group) {
    force_geometry({int(path), int(threads), int(chunk_leaves), int(threads_across), int(rows_per_group)});
}

const Registration schemas(std::nullopt, [](torch::Library& m) {
    m.def(
        "sum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, str? accumulate=None) -> "
        "Tensor",
        {at::Tag::pt2_compliant_tag});
    m.def(
        "sum.out(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, str? accumulate=None, "
        "Tensor(a!) out) -> Tensor(a!)",
        {at::Tag::pt2_compliant_tag});
    m.def(
        "_explain(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, str? accumulate=None, "
        "int sms=132) -> str");
    m.def(
        "_force_geometry(int path=0, int threads=0, int chunk_leaves=0, int threads_across=0, int rows_per_group=0) -> "
        "()",
        force);
    m.def("_plan_cache_stats() -> (int hits, int misses)", cache_hits_and_misses);
});

const Registration meta_kernels(c10::DispatchKey::Meta, [](torch::Library& m) {
    m.impl("sum", sum_meta);
    m.impl("_explain", explain);
});

const Registration cpu_kernels(c10::DispatchKey::CPU, [](torch::Library& m) { m.impl("_explain", explain); });

const Registration autocast_kernels(c10::DispatchKey::AutocastCUDA,
                                    [](torch::Library& m) { m.impl("sum", sum_autocast_cuda); });

}  // namespace
}  // namespace gpureduce::binding
