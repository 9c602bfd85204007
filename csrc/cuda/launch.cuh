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

// Calls launch(Op{}) for the problem's operator, one of Ops.
template <class Ops, class Launch>
cudaError_t dispatch(const Problem& problem, Launch&& launch) {
    OpKey const key{problem.op, problem.in, problem.accumulate};
    bool const found = visit_first(Ops{}, [&](auto op) { return op.key == key; }, launch);
    return found ? cudaGetLastError() : cudaErrorInvalidValue;
}

// Those of Ops that have every kernel, for the paths that only they take.
template <class... Ops>
auto with_every_kernel(TypeList<Ops...>)
    -> Joined<std::conditional_t<Ops::coverage == Coverage::every, TypeList<Ops>, TypeList<>>...>;
using CoveredSums = decltype(with_every_kernel(SumOps{}));

// Calls launch(Op{}, LoaderTag{}) for the problem's operator and the plan's loader, one of Loaders that path P has.
template <class Ops, Path P, Loader... Loaders, class Launch>
cudaError_t dispatch_loader(const Problem& problem, const Plan& plan, Launch&& launch) {
    bool found = false;
    cudaError_t const result = dispatch<Ops>(problem, [&](auto op) {
        using Op = decltype(op);
        auto const try_loader = [&](auto tag) {
            constexpr Loader loader = decltype(tag)::loader;
            if constexpr (is_built(Op::coverage, P, loader))
                if (plan.loader == loader) {
                    found = true;
                    launch(Op{}, tag);
                }
        };
        (try_loader(LoaderTag<Loaders>{}), ...);
    });
    return found ? result : cudaErrorInvalidValue;
}
// Of short rows, and of long ones.
template <class Ops, class Launch>
cudaError_t dispatch_short(const Problem& problem, const Plan& plan, Launch&& launch) {
    return dispatch_loader<Ops, Path::short_row, Loader::vector, Loader::unaligned, Loader::gather>(problem, plan,
                                                                                                    launch);
}
template <class Ops, Path P, class Launch>
cudaError_t dispatch_row(const Problem& problem, const Plan& plan, Launch&& launch) {
    return dispatch_loader<Ops, P, Loader::vector, Loader::unaligned, Loader::gather, Loader::nested, Loader::strided>(
        problem, plan, launch);
}

inline Results results_of(const Problem& p, const Buffers& b) {
    return results_in(b.out, b.second, p.out, p.second, ending_of(p));
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
    args.mailbox = static_cast<unsigned long long*>(b.mailbox);
    args.outputs = p.outputs;
    args.n = p.n;
    args.chunk_leaves = int(plan.chunk_leaves);
    args.chunks = int(plan.chunks);
    if (L == Loader::gather) args.grouped = is_grouped(p);
    args.results = results_of(p, b);
    args.kept = decltype(args.kept)::of(p.kept, p.kept.count);
    if constexpr (L == Loader::gather) args.reduced = decltype(args.reduced)::of(p.reduced, p.reduced.count);
    if constexpr (walks<L>) args.reduced = Walk::of(p.reduced, p.reduced.count, dtype_info(p.in).bytes);
    return args;
}

}  // namespace gpureduce::cuda
