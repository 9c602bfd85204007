// The operators' schemas, and the kernels that are the same on every device: Meta, autocast, the private helpers.

#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>

#include "kernels.h"
#include "prepare.h"
#include "registration.h"

namespace gpureduce::binding {
namespace {

// --- schemas --------------------------------------------------------------------------------------------------------

std::string plain_schema(const Operator& op, const std::string& arguments) {
    bool const named = op.second != nullptr && op.first != std::string("out0");
    std::string const results = op.second == nullptr ? "Tensor"
                                : !named ? "(Tensor, Tensor)"
                                         : std::string("(Tensor ") + op.first + ", Tensor " + op.second + ")";
    return registered_name(op, op.overload) + "(" + arguments + ") -> " + results;
}

std::string out_schema(const Operator& op, const std::string& arguments) {
    bool const keywords = arguments.find('*') != std::string::npos;
    std::string outs = std::string("Tensor(a!) ") + op.first, results = "Tensor(a!)";
    if (op.second != nullptr) {
        outs += std::string(", Tensor(b!) ") + op.second;
        results = op.first == std::string("out0") ? "(Tensor(a!), Tensor(b!))" : "(" + outs + ")";
    }
    return registered_name(op, op.out_overload) + "(" + arguments + (keywords ? ", " : ", *, ") + outs + ") -> " +
           results;
}

// --- Meta -----------------------------------------------------------------------------------------------------------

// Sizes stay symbolic, so a size that is known only at run time raises no guard.
struct Meta {
    static constexpr bool composes = true;
    template <size_t Row>
    static ResultOf<Row> run(const Call& call) {
        Reduction const reduction = check(call);
        auto const sizes = result_sizes<at::SymDimVector>(call.self.sym_sizes(), call, reduction);
        auto const empty = [&](at::ScalarType type) {
            return at::empty_symint(sizes, call.self.options().dtype(type));
        };
        return as_results<ResultOf<Row>>(empty(reduction.result),
                                         has_two<Row> ? empty(reduction.second_result) : at::Tensor());
    }
};

// --- autocast -------------------------------------------------------------------------------------------------------

// torch's rules for the namesakes. An operator without one registers nothing, and the dispatcher leaves its calls alone.
template <c10::DeviceType Device, c10::DispatchKey Key>
struct Autocast {
    static constexpr bool composes = false;
    template <size_t Row>
    static ResultOf<Row> run(const Call& call) {
        c10::impl::ExcludeDispatchKeyGuard const no_autocast(Key);
        constexpr AutocastRule rule = kOperators[Row].autocast;
        if constexpr (rule == AutocastRule::float_input || (rule == AutocastRule::product && Device == c10::kCPU)) {
            return dispatch<Row>(call.of(at::autocast::cached_cast(at::kFloat, call.self, Device)));
        } else {
            bool const eligible = at::autocast::is_eligible(call.self, Device) && !call.dtype;
            return dispatch<Row>({call.op, call.self, call.dim, call.keepdim, eligible ? at::kFloat : call.dtype,
                                  call.accumulate, call.parameter});
        }
    }
};
using AutocastCuda = Autocast<c10::kCUDA, c10::DispatchKey::AutocastCUDA>;
using AutocastCpu = Autocast<c10::kCPU, c10::DispatchKey::AutocastCPU>;

// --- helpers --------------------------------------------------------------------------------------------------------

std::string explain(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, Dtype dtype, Text accumulate,
                    int64_t sms, std::string_view op) {
    return explain_call(call_named(op, self, dim, keepdim, dtype, accumulate), sms, DeviceTraits{});
}

void force(int64_t path, int64_t threads, int64_t chunk_leaves, int64_t threads_across, int64_t rows_per_group) {
    force_geometry({int(path), int(threads), int(chunk_leaves), int(threads_across), int(rows_per_group)});
}

const Registration schemas(std::nullopt, [](torch::Library& m) {
    for_every_row([&](auto row) {
        m.def(plain_schema(kOperators[row], ArgumentsOf<row>::schema).c_str(), {at::Tag::pt2_compliant_tag});
        m.def(out_schema(kOperators[row], ArgumentsOf<row>::schema).c_str(), {at::Tag::pt2_compliant_tag});
    });
    m.def(
        "_explain(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, str? accumulate=None, "
        "int sms=132, str op=\"sum\") -> str");
    m.def(
        "_force_geometry(int path=0, int threads=0, int chunk_leaves=0, int threads_across=0, int rows_per_group=0) -> "
        "()",
        force);
    m.def("_plan_cache_stats() -> (int hits, int misses)", cache_hits_and_misses);
});

const Registration meta_kernels(c10::DispatchKey::Meta, [](torch::Library& m) {
    add_plain<Meta>(m);
    m.impl("_explain", explain);
});

const Registration explain_kernel(c10::DispatchKey::CPU, [](torch::Library& m) { m.impl("_explain", explain); });

template <class Backend, size_t Row>
void add_autocast(torch::Library& m) {
    m.impl(registered_name(kOperators[Row], kOperators[Row].overload).c_str(), PlainKernel<Backend, Row>::run);
}
const Registration autocast_cuda_kernels(c10::DispatchKey::AutocastCUDA, [](torch::Library& m) {
    for_every_row([&](auto row) {
        if constexpr (kOperators[row].autocast != AutocastRule::none) add_autocast<AutocastCuda, row>(m);
    });
});
const Registration autocast_cpu_kernels(c10::DispatchKey::AutocastCPU, [](torch::Library& m) {
    for_every_row([&](auto row) {
        if constexpr (kOperators[row].autocast == AutocastRule::product) add_autocast<AutocastCpu, row>(m);
    });
});

}  // namespace
}  // namespace gpureduce::binding
