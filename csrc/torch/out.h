// The .out overloads: the same results, written into tensors that the caller has.
#pragma once

#include "prepare.h"

namespace gpureduce::binding {

// Runs a prepared call on its device: from `input`, which has the type that is loaded, into contiguous results.
using Run = void(const Operator& op, const Prepared& call, const at::Tensor& input, const at::Tensor& first,
                 const at::Tensor& second);

// `outs` has as many tensors as the operator has results, here and below.
void check_same_device(const Call& call, at::Tensor* const* outs);

// What a device's kernel does around `run`. The results' types are those of `outs`, which are resized where they have
// another size. A result that is not contiguous, or whose memory may be part of self's, is computed beside it and copied.
void reduce_into(at::Tensor* const* outs, const Call& call, const DeviceTraits* traits, Run* run);

}  // namespace gpureduce::binding
