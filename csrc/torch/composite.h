// The calls that are made of other operators, of this project and of aten, below autograd, which has its own rule for them:
// norms of any order, and complex numbers where the kernels take their parts.
#pragma once

#include "operators.h"

namespace gpureduce::binding {

bool is_composite(const Call& call);

// The results of such a call; the second one is undefined where the operator has one.
std::tuple<at::Tensor, at::Tensor> composite_results(const Call& call);

template <class R>
R composite(const Call& call) {
    auto results = composite_results(call);
    if constexpr (std::is_same_v<R, at::Tensor>)
        return std::get<0>(std::move(results));
    else
        return results;
}

}  // namespace gpureduce::binding
