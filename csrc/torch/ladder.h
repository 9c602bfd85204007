// gpureduce::ladder: its arguments, checked.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <optional>
#include <string_view>

#include "../ladder/ladder.h"

namespace gpureduce::binding {

using LadderSignature = at::Tensor(const at::Tensor&, std::string_view, const std::optional<at::Tensor>&);

struct LadderCall {
    std::string_view rung;  // one of the list, with one of its parameters
    const at::Tensor& self;
    at::Tensor other;  // undefined for a rung that takes none
    c10::SymDimVector result_sizes;
};

// Throws what torch throws, with the argument and its value. Looks at no device.
LadderCall check_ladder(const at::Tensor& self, std::string_view rung, const std::optional<at::Tensor>& other);

}  // namespace gpureduce::binding
