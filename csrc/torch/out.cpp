#include "out.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

#include "kernels.h"
#include "registration.h"
#include "types.h"

namespace gpureduce::binding {
namespace {

int count_of(const Operator& op) { return op.second == nullptr ? 1 : 2; }

void check_type(const Call& call, const char* name, at::ScalarType wanted, at::ScalarType got) {
    TORCH_CHECK(wanted == got, "gpureduce::", call.op.name, ": expected ", name, " to have dtype ", wanted,
                ", but got ", got);
}

// The call with the type that its outs ask for.
Call with_type_of(at::Tensor* const* outs, const Call& call) {
    check_same_device(call, outs);
    at::ScalarType const out = outs[0]->scalar_type();
    ResultTypes const types = result_types(call);
    Dtype dtype = call.dtype, store_as;
    switch (call.op.type) {
        case TypeRule::sum:
        case TypeRule::nansum:
        case TypeRule::mean:
        case TypeRule::nanmean:
        case TypeRule::squares:  // with dtype=None it is asked for by `out` alone
            TORCH_CHECK(!dtype || *dtype == out, "gpureduce::", call.op.name, ": expected out to have dtype ", *dtype,
                        ", as dtype= says, but got ", out);
            dtype = out;
            break;
        case TypeRule::value:
        case TypeRule::index:
        case TypeRule::count:
        case TypeRule::norm: check_type(call, call.op.first, types.first, out); break;
        case TypeRule::truth:
            TORCH_CHECK(out == at::kBool || out == at::kByte, "gpureduce::", call.op.name,
                        ": expected out to have dtype bool or uint8, but got ", out);
            store_as = out;
            break;
        case TypeRule::variance:
        case TypeRule::inexact:
        case TypeRule::statistics:
            TORCH_CHECK(at::canCast(types.first, out), "gpureduce::", call.op.name, ": the result's dtype ",
                        types.first, " can't be cast to out's dtype ", out);
            store_as = out;
            break;
    }
    if (call.op.second != nullptr) check_type(call, call.op.second, types.second, outs[1]->scalar_type());
    return {call.op, call.self, call.dim, call.keepdim, dtype, call.accumulate, call.parameter, store_as};
}

// Where a write would destroy elements before they are read. torch does not look, and gives wrong results.
bool may_overlap(const Call& call, const at::Tensor& out, const at::Tensor& other, const char* name) {
    at::MemOverlapStatus const status = at::get_overlap_status(out, other);
    TORCH_CHECK(status != at::MemOverlapStatus::Full && status != at::MemOverlapStatus::Partial,
                "gpureduce::", call.op.name, ": unsupported operation: out and ", name,
                " share memory. Please clone() one of them");
    return status != at::MemOverlapStatus::No;
}

// Makes an out ready; whether its result has to be computed beside it.
bool fit(const Call& call, at::Tensor& out, const at::DimVector& sizes) {
    bool beside = may_overlap(call, out, call.self, "self");
    if (at::native::resize_output(out, sizes)) beside = may_overlap(call, out, call.self, "self");
    TORCH_CHECK(at::has_internal_overlap(out) != at::MemOverlap::Yes, "gpureduce::", call.op.name,
                ": unsupported operation: more than one element of out refers to a single memory location. Please "
                "clone() it");
    return beside || !out.is_contiguous();
}

// Results that are there already, of any type, into outs.
void copy_into(at::Tensor* const* outs, const Call& call, const std::tuple<at::Tensor, at::Tensor>& results) {
    at::Tensor const each[] = {std::get<0>(results), std::get<1>(results)};
    for (int i = 0; i < count_of(call.op); ++i) {
        may_overlap(call, *outs[i], call.self, "self");
        at::native::resize_output_symint(*outs[i], each[i].sym_sizes());
        outs[i]->copy_(each[i]);
    }
}

// --- the other kernels, the same on every device --------------------------------------------------------------------

struct MetaOut {
    template <size_t Row>
    static void run_out(const Call& given, at::Tensor* const* outs) {
        Call const call = with_type_of(outs, given);
        if (may_be_composite(call.op) && is_composite(call)) return copy_into(outs, call, composite_results(call));
        auto const sizes = result_sizes<at::SymDimVector>(call.self.sym_sizes(), call, check(call));
        for (int i = 0; i < count_of(call.op); ++i) at::native::resize_output_symint(*outs[i], sizes);
    }
};

// In a graph, the call is the operator without out=, whose results take the places of what the outs were.
struct Functionalize {
    template <size_t Row>
    static void run_out(const Call& call, at::Tensor* const* outs) {
        namespace functional = at::functionalization::impl;
        bool const wrapped = functional::isFunctionalTensor(call.self);
        at::Tensor input = call.self;
        if (wrapped) {
            functional::sync(call.self);
            input = functional::from_functional_tensor(call.self);
        }
        bool functional_outs = true;
        for (int i = 0; i < count_of(call.op); ++i)
            functional_outs = functional_outs && functional::isFunctionalTensor(*outs[i]);
        if (!functional_outs) {
            TORCH_CHECK(!wrapped, "gpureduce::", call.op.name,
                        ": out is not functional, but self is: wrap it in functionalize(), too");
            at::AutoDispatchSkipFunctionalize const guard;
            return dispatch_out<Row>(call, outs);
        }
        Call const wanted = with_type_of(outs, call);
        std::tuple<at::Tensor, at::Tensor> results;
        {
            at::AutoDispatchSkipFunctionalize const guard;
            if constexpr (has_two<Row>)
                results = dispatch<Row>(wanted.of(input));
            else
                std::get<0>(results) = dispatch<Row>(wanted.of(input));
            std::get<0>(results) = std::get<0>(results).to(outs[0]->scalar_type());
        }
        at::Tensor const each[] = {std::get<0>(results), std::get<1>(results)};
        for (int i = 0; i < count_of(call.op); ++i) {
            functional::replace_(*outs[i], each[i]);
            functional::commit_update(*outs[i]);
            functional::sync(*outs[i]);
        }
    }
};

struct AutogradOut {
    template <size_t Row>
    static void run_out(c10::DispatchKeySet keys, const Call& call, at::Tensor* const* outs) {
        bool requires_grad = false, any_tangent = false;
        auto const look = [&](const at::Tensor& tensor) {
            requires_grad = requires_grad || torch::autograd::compute_requires_grad(tensor);
            any_tangent = any_tangent || tensor._fw_grad(/*level=*/0).defined();
        };
        if (call.op.gradient != GradientRule::none) look(call.self);
        for (int i = 0; i < count_of(call.op); ++i) look(*outs[i]);
        if (requires_grad) torch::autograd::throw_error_out_requires_grad(full_name(call.op).c_str());
        TORCH_CHECK_NOT_IMPLEMENTED(!any_tangent, "gpureduce::", call.op.name,
                                    ": out=... does not support forward AD, but an argument has a tangent");
        at::AutoDispatchBelowAutograd const guard;
        redispatch_out<Row>(keys & c10::after_autograd_keyset, call, outs);
    }
};

// Autograd notices by a tensor's version that it was written to.
struct Version {
    template <size_t Row>
    static void run_out(c10::DispatchKeySet keys, const Call& call, at::Tensor* const* outs) {
        {
            at::AutoDispatchBelowADInplaceOrView const guard;
            redispatch_out<Row>(keys & c10::after_ADInplaceOrView_keyset, call, outs);
        }
        for (int i = 0; i < count_of(call.op); ++i) torch::autograd::increment_version(*outs[i]);
    }
};

const Registration out_meta_kernels(c10::DispatchKey::Meta, add_out<MetaOut>);
const Registration out_functionalize_kernels(c10::DispatchKey::Functionalize, add_out<Functionalize>);
const Registration out_autograd_kernels(c10::DispatchKey::Autograd, add_out_with_keys<AutogradOut>);
const Registration out_version_kernels(c10::DispatchKey::ADInplaceOrView, add_out_with_keys<Version>);

}  // namespace

void check_same_device(const Call& call, at::Tensor* const* outs) {
    for (int i = 0; i < count_of(call.op); ++i)
        TORCH_CHECK(outs[i]->device() == call.self.device(), "gpureduce::", call.op.name, ": ",
                    i ? call.op.second : call.op.first, " is on ", outs[i]->device(), ", but self is on ",
                    call.self.device());
}

void reduce_into(at::Tensor* const* outs, const Call& given, const DeviceTraits* traits, Run* run) {
    Call const call = with_type_of(outs, given);
    int const count = count_of(call.op);
    if (may_be_composite(call.op) && is_composite(call)) return copy_into(outs, call, composite_results(call));
    auto const prepared = prepare(call, traits);
    bool beside[2];
    for (int i = 0; i < count; ++i) beside[i] = fit(call, *outs[i], prepared->result_sizes);
    if (count == 2) may_overlap(call, *outs[0], *outs[1], call.op.second);
    if (prepared->load_as != call.self.scalar_type())
        return reduce_into(outs, call.of(converted(call, prepared->load_as)), traits, run);
    at::Tensor results[2];
    for (int i = 0; i < count; ++i)
        results[i] = beside[i] ? at::empty(prepared->result_sizes, outs[i]->options()) : *outs[i];
    run(call.op, *prepared, call.self, results[0], results[1]);
    for (int i = 0; i < count; ++i)
        if (beside[i]) outs[i]->copy_(results[i]);
}

}  // namespace gpureduce::binding
