// Memory through which the blocks of a launch join.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include "../core/plan.h"

namespace gpureduce::binding {

// Zeroed memory for one launch on `stream`, which must be the current one of the current device; null if it needs none.
// The launch leaves it zeroed, so eager launches of a stream share one buffer, made once. During the capture of a CUDA
// graph, every launch gets a part that stays the graph's own as long as the graph lives: so graphs replayed at once, or
// beside eager launches, never meet. Nothing here is launched or waited for on the call's own path.
void* mailbox_for(int64_t bytes, c10::cuda::CUDAStream stream);
inline void* mailbox_for(const Plan& plan, c10::cuda::CUDAStream stream) {
    return mailbox_for(plan.mailbox_bytes, stream);
}

}  // namespace gpureduce::binding
