// Problem, Plan, Buffers -> a typed launch: the operator by its key, the loader by the plan.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "fold.cuh"
#include "kernels.h"
#include "row.cuh"

namespace gpureduce::cuda {

template <Loader L>
struct LoaderTag {
    static constexpr Loader loader = L;
};

// Calls launch(Op{}) for the problem's operator.
template <class Launch>
cudaError_t dispatch(const Problem& problem, Launch&& launch) {
    OpKey const key{problem.op, problem.in, problem.accumulate};
    bool const found = visit_first(AllOps{}, [&](auto op) { return op.key == key; }, launch);
    return found ? cudaGetLastError() : cudaErrorInvalidValue;
}

// Calls launch(Op{}, LoaderTag{}) for the problem's operator and the plan's loader, one of Loaders.
template <Loader... Loaders, class Launch>
cudaError_t dispatch_loader(const Problem& problem, const Plan& plan, Launch&& launch) {
    bool found = false;
    cudaError_t const result = dispatch(problem, [&](auto op) {
        found = ((plan.loader == Loaders && (launch(op, LoaderTag<Loaders>{}), true)) || ...);
    });
    return found ? result : cudaErrorInvalidValue;
}
template <class Launch>
cudaError_t dispatch(const Problem& problem, const Plan& plan, Launch&& launch) {
    return dispatch_loader<Loader::vector, Loader::unaligned, Loader::gather>(problem, plan, launch);
}
// The same for long rows.
template <class Launch>
cudaError_t dispatch_row(const Problem& problem, const Plan& plan, Launch&& launch) {
    return dispatch_loader<Loader::vector, Loader::unaligned, Loader::gather, Loader::nested, Loader::strided>(
        problem, plan, launch);
}

inline const void* end_of(const Problem& p, const void* in) {
    int64_t last = 0;
    for (const AxisList* axes : {&p.kept, &p.reduced})
        for (int d = 0; d < axes->count; ++d) last += (axes->axis[d].size - 1) * axes->axis[d].stride;
    return static_cast<const char*>(in) + (last + 1) * dtype_info(p.in).bytes;
}

template <Loader L>
RowArgs<L> row_args(const Problem& p, const Plan& plan, const Buffers& b) {
    RowArgs<L> args{};
    args.in = b.in;
    if (L == Loader::vector || L == Loader::unaligned) args.in_end = end_of(p, b.in);
    args.out = b.out;
    args.mailbox = static_cast<unsigned long long*>(b.mailbox);
    args.outputs = p.outputs;
    args.n = p.n;
    args.leaves = leaves_of(Family::row, dtype_info(p.in).bytes, p.n);
    args.full_leaves = p.n / row_leaf_elements(dtype_info(p.in).bytes);
    args.chunk_leaves = int(plan.chunk_leaves);
    args.chunks = int(plan.chunks);
    if (L == Loader::gather) args.grouped = is_grouped(p);
    args.out_type = p.out;
    args.kept = decltype(args.kept)::of(p.kept, p.kept.count);
    if constexpr (L == Loader::gather) args.reduced = decltype(args.reduced)::of(p.reduced, p.reduced.count);
    if constexpr (walks<L>) args.reduced = Walk::of(p.reduced, p.reduced.count, dtype_info(p.in).bytes);
    return args;
}

}  // namespace gpureduce::cuda
