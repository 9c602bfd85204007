// Kernels of the dispatcher for every row of the table, made from what a backend does with a Call.
#pragma once

#include "composite.h"
#include "operators.h"

namespace gpureduce::binding {

// An operator's results as its function returns them.
template <class R>
R as_results(at::Tensor first, at::Tensor second) {
    if constexpr (std::is_same_v<R, at::Tensor>)
        return first;
    else
        return R(std::move(first), std::move(second));
}

// Calls the operator of a row through the whole dispatcher, or from the middle of it.
template <size_t Row>
ResultOf<Row> dispatch(const Call& call) {
    return ArgumentsOf<Row>::unpack(call, [](auto&&... each) { return handle<Row>().call(each...); });
}
template <size_t Row>
ResultOf<Row> redispatch(c10::DispatchKeySet keys, const Call& call) {
    return ArgumentsOf<Row>::unpack(call, [&](auto&&... each) { return handle<Row>().redispatch(keys, each...); });
}
template <size_t Row>
void redispatch_out(c10::DispatchKeySet keys, const Call& call, at::Tensor* const* outs) {
    ArgumentsOf<Row>::unpack(call, [&](auto&&... each) {
        if constexpr (has_two<Row>)
            out_handle<Row>().redispatch(keys, each..., *outs[0], *outs[1]);
        else
            out_handle<Row>().redispatch(keys, each..., *outs[0]);
    });
}
template <size_t Row>
void dispatch_out(const Call& call, at::Tensor* const* outs) {
    ArgumentsOf<Row>::unpack(call, [&](auto&&... each) {
        if constexpr (has_two<Row>)
            out_handle<Row>().call(each..., *outs[0], *outs[1]);
        else
            out_handle<Row>().call(each..., *outs[0]);
    });
}

// The kernel of a row without out=: Backend::run<Row>(call), or, of a backend with keys, run<Row>(keys, call). With
// Backend::composes, it never sees calls that are composite.
template <class Backend, size_t Row, class Function = FunctionOf<Row>>
struct PlainKernel;
template <class Backend, size_t Row, class R, class... Each>
struct PlainKernel<Backend, Row, R(Each...)> {
    static R run(Each... each) {
        Call const call = ArgumentsOf<Row>::pack(kOperators[Row], each...);
        if constexpr (Backend::composes && may_be_composite(kOperators[Row]))
            if (is_composite(call)) return composite<R>(call);
        return Backend::template run<Row>(call);
    }
    static R run_with_keys(c10::DispatchKeySet keys, Each... each) {
        Call const call = ArgumentsOf<Row>::pack(kOperators[Row], each...);
        if constexpr (Backend::composes && may_be_composite(kOperators[Row]))
            if (is_composite(call)) return composite<R>(call);
        return Backend::template run<Row>(keys, call);
    }
};

// The kernel with out=. Backend::run_out<Row>(call, outs), or with keys.
template <class Backend, size_t Row, class Function = FunctionOf<Row>>
struct OutKernel;
template <class Backend, size_t Row, class... Each>
struct OutKernel<Backend, Row, at::Tensor(Each...)> {
    static at::Tensor& run(Each... each, at::Tensor& out) {
        at::Tensor* const outs[] = {&out};
        Backend::template run_out<Row>(ArgumentsOf<Row>::pack(kOperators[Row], each...), outs);
        return out;
    }
    static at::Tensor& run_with_keys(c10::DispatchKeySet keys, Each... each, at::Tensor& out) {
        at::Tensor* const outs[] = {&out};
        Backend::template run_out<Row>(keys, ArgumentsOf<Row>::pack(kOperators[Row], each...), outs);
        return out;
    }
};
template <class Backend, size_t Row, class... Each>
struct OutKernel<Backend, Row, std::tuple<at::Tensor, at::Tensor>(Each...)> {
    using Outs = std::tuple<at::Tensor&, at::Tensor&>;
    static Outs run(Each... each, at::Tensor& first, at::Tensor& second) {
        at::Tensor* const outs[] = {&first, &second};
        Backend::template run_out<Row>(ArgumentsOf<Row>::pack(kOperators[Row], each...), outs);
        return Outs(first, second);
    }
    static Outs run_with_keys(c10::DispatchKeySet keys, Each... each, at::Tensor& first, at::Tensor& second) {
        at::Tensor* const outs[] = {&first, &second};
        Backend::template run_out<Row>(keys, ArgumentsOf<Row>::pack(kOperators[Row], each...), outs);
        return Outs(first, second);
    }
};

// Registers the kernels of every row.
template <class Backend>
void add_plain(torch::Library& m) {
    for_every_row([&](auto row) {
        m.impl(registered_name(kOperators[row], kOperators[row].overload).c_str(), PlainKernel<Backend, row>::run);
    });
}
template <class Backend>
void add_out(torch::Library& m) {
    for_every_row([&](auto row) {
        m.impl(registered_name(kOperators[row], kOperators[row].out_overload).c_str(), OutKernel<Backend, row>::run);
    });
}
template <class Backend>
void add_out_with_keys(torch::Library& m) {
    for_every_row([&](auto row) {
        m.impl(registered_name(kOperators[row], kOperators[row].out_overload).c_str(),
               OutKernel<Backend, row>::run_with_keys);
    });
}

}  // namespace gpureduce::binding
