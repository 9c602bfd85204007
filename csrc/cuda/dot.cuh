// Two inputs -> products of a row, leaf by leaf.
#pragma once

#include "../core/dot.h"
#include "launch.cuh"
#include "leaf.cuh"
#include "mailbox.cuh"

namespace gpureduce::cuda {

struct PairOffset {
    int64_t x, y, out;  // elements
};

// AxisMap for two inputs.
template <int N>
struct PairMap {
    int count;
    bool narrow;  // every index is below 2^31
    PairAxis axis[N];
    Divisor divisor[N];

    static PairMap of(const PairAxes& axes, int count) {
        PairMap map{};
        map.count = count;
        int64_t elements = 1;
        for (int d = 0; d < count; ++d) {
            map.axis[d] = axes.axis[d];
            elements *= map.axis[d].size;
        }
        map.narrow = elements < (int64_t(1) << 31);
        if (map.narrow && elements > 0)
            for (int d = 0; d < count; ++d) map.divisor[d] = Divisor::of(map.axis[d].size);
        return map;
    }

    static PairMap of_units(PairAxes axes, int V) {
        PairAxis& columns = axes.axis[axes.count - 1];
        columns.size /= V;
        for (int64_t* stride : {&columns.stride[0], &columns.stride[1], &columns.out_stride}) *stride *= V;
        return of(axes, axes.count);
    }

    // Out of line, as AxisMap's.
    __device__ __noinline__ PairOffset locate(int64_t index) const {
        PairOffset offset{0, 0, 0};
        int64_t rest = index;
#pragma unroll 1
        for (int d = count - 1; d >= 0; --d) {
            int64_t const outer = d == 0 ? 0 : narrow ? divisor[d].divide(uint32_t(rest)) : rest / axis[d].size;
            int64_t const inner = rest - outer * axis[d].size;
            offset.x += inner * axis[d].stride[0];
            offset.y += inner * axis[d].stride[1];
            offset.out += inner * axis[d].out_stride;
            rest = outer;
        }
        return offset;
    }
    __device__ __forceinline__ PairOffset at(int64_t index) const {
        if (count > 1) return locate(index);
        return {index * axis[0].stride[0], index * axis[0].stride[1], index * axis[0].out_stride};
    }
};

// Kernels with vector loads take few axes, as elsewhere.
template <bool Vector>
inline constexpr int pair_axes = Vector ? 4 : kMaxDims;

template <bool Vector>
struct DotArgs {
    const void* x;
    const void* y;
    Letter* mailbox;
    int64_t outputs, n, leaves;
    int64_t step_x, step_y;  // elements
    int64_t first_row;       // of this launch
    int chunk_leaves, chunks;
    bool conjugate;
    Results results;
    PairMap<pair_axes<Vector>> kept;
};

template <bool Vector>
DotArgs<Vector> dot_args(const DotProblem& p, const Plan& plan, const DotBuffers& b) {
    DotArgs<Vector> args{};
    args.x = b.x;
    args.y = b.y;
    args.mailbox = static_cast<Letter*>(b.mailbox);
    args.outputs = p.outputs;
    args.n = p.n;
    args.leaves = leaves_of(Family::row, dtype_info(p.in).bytes, p.n);
    args.step_x = p.step[0];
    args.step_y = p.step[1];
    args.chunk_leaves = int(plan.chunk_leaves);
    args.chunks = int(plan.chunks);
    args.conjugate = p.conjugate;
    args.results = {b.out, nullptr, p.in, p.in, ending_of(p)};
    args.kept = decltype(args.kept)::of(p.kept, p.kept.count);
    return args;
}

// Calls launch(Op{}) for the problem's operator.
template <class Launch>
cudaError_t dispatch_dot(const DotProblem& problem, Launch&& launch) {
    bool const found = visit_first(DotOps{}, [&](auto op) { return is_operator_of<decltype(op)>(problem); }, launch);
    return found ? cudaGetLastError() : cudaErrorInvalidValue;
}

// Calls launch(Op{}, std::bool_constant<Vector>{}) for the problem's operator and the plan's loader.
template <class Launch>
cudaError_t dispatch_dot_loader(const DotProblem& problem, const Plan& plan, Launch&& launch) {
    return dispatch_dot(problem, [&](auto op) {
        if constexpr (decltype(op)::has_vectors)
            if (plan.loader == Loader::vector) return launch(op, std::true_type{});
        launch(op, std::false_type{});
    });
}

template <class Op>
__device__ __forceinline__ Spread<Op> no_products() {
    Spread<Op> sum;
#pragma unroll
    for (auto& component : sum.of) component = Op::identity();
    return sum;
}

// A leaf of whole aligned packs, `count` elements from x and y on, folded: the loads are predicated, all in flight.
template <class Op>
__device__ __forceinline__ typename Op::acc dot_packs(const typename Op::element* x, const typename Op::element* y,
                                                      int count, bool conjugate) {
    using E = typename Op::element;
    constexpr int kStep = kLanes * components<E>;
    int const first = int(threadIdx.x) % kWarp * components<E>;
    uint4 a[kLoads], b[kLoads];
    bool mine[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
        mine[k] = first + k * kStep < count;
        a[k] = load_cached_vector_if(mine[k], x + first + k * kStep);
        b[k] = load_cached_vector_if(mine[k], y + first + k * kStep);
    }
    Spread<Op> sum;
#pragma unroll
    for (int c = 0; c < components<E>; ++c) {
#pragma unroll
        for (int k = 0; k < kLoads; ++k) {
            auto const product = Op::product(as_pack<E>(a[k]).value[c], as_pack<E>(b[k]).value[c], conjugate);
            if (k == 0)
                sum.of[c] = choose(mine[k], product, Op::identity());
            else
                sum.of[c] = choose(mine[k], Op::combine(sum.of[c], product), sum.of[c]);
        }
    }
    return fold_leaf<Op>(fold_pairwise<Op>(sum.of));
}
// The same of a whole leaf, without predicates.
template <class Op>
__device__ __forceinline__ typename Op::acc dot_whole_leaf(const typename Op::element* x, const typename Op::element* y,
                                                           bool conjugate) {
    using E = typename Op::element;
    constexpr int kStep = kLanes * components<E>;
    int const first = int(threadIdx.x) % kWarp * components<E>;
    uint4 a[kLoads], b[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
        a[k] = load_cached_vector(x + first + k * kStep);
        b[k] = load_cached_vector(y + first + k * kStep);
    }
    Spread<Op> sum;
#pragma unroll
    for (int c = 0; c < components<E>; ++c) {
#pragma unroll
        for (int k = 0; k < kLoads; ++k) {
            auto const product = Op::product(as_pack<E>(a[k]).value[c], as_pack<E>(b[k]).value[c], conjugate);
            sum.of[c] = k == 0 ? product : Op::combine(sum.of[c], product);
        }
    }
    return fold_leaf<Op>(fold_pairwise<Op>(sum.of));
}

// A leaf of `count` elements with any steps, folded: lanes side by side read elements side by side.
template <class Op>
__device__ __forceinline__ typename Op::acc dot_elements(const typename Op::element* x, const typename Op::element* y,
                                                         int64_t step_x, int64_t step_y, int count, bool conjugate) {
    using E = typename Op::element;
    constexpr int kComponents = components<E>;
    constexpr int kAtOnce = sizeof(E) >= 4 ? kLoads : sizeof(E) == 2 ? 2 : 1;
    auto sum = no_products<Op>();
    int const lane = int(threadIdx.x) % kWarp;
#pragma unroll kAtOnce
    for (int k = 0; k < kLoads; ++k) {
        E a[kComponents], b[kComponents];
#pragma unroll
        for (int c = 0; c < kComponents; ++c) {
            int const e = lane + (k * kComponents + c) * kLanes;
            if (e < count) {
                a[c] = load_element(x + e * step_x);
                b[c] = load_element(y + e * step_y);
            }
        }
#pragma unroll
        for (int c = 0; c < kComponents; ++c)
            if (lane + (k * kComponents + c) * kLanes < count)
                sum.of[c] = Op::combine(sum.of[c], Op::product(a[c], b[c], conjugate));
    }
    return fold_leaf<Op>(sum);
}
// Out of line, for the ends of rows that are otherwise read by vectors.
template <class Op>
__device__ __noinline__ typename Op::acc dot_rest(const typename Op::element* x, const typename Op::element* y,
                                                  int count, bool conjugate) {
    return dot_elements<Op>(x, y, 1, 1, count, conjugate);
}

}  // namespace gpureduce::cuda
