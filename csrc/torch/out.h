// gpureduce::sum.out: the same sums, written into a tensor that the caller has.
#pragma once

#include "prepare.h"

namespace gpureduce::binding {

// Runs a prepared call on its device: from `input`, which has the type that is loaded, into `result`, contiguous.
using Run = void(const Prepared& call, const at::Tensor& input, const at::Tensor& result);

void check_same_device(const at::Tensor& self, const at::Tensor& out);

// What a device's kernel of sum.out does around `run`. The result's type is that of `out`, which is resized where it has
// another size. A result that is not contiguous, or whose memory may be part of self's, is computed beside it and copied.
at::Tensor& sum_into(at::Tensor& out, const SumArguments& arguments, const DeviceTraits* traits, Run* run);

}  // namespace gpureduce::binding
