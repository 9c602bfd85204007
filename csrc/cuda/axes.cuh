// Index -> offset on the device, by multiplication instead of division where the indices fit 31 bits.
#pragma once

#include "../core/plan.h"

namespace gpureduce::cuda {

// i / divisor for i < 2^31 (Granlund and Montgomery 1994).
struct Divisor {
    uint32_t magic, shift;

    static Divisor of(int64_t divisor) {
        int const shift = ceil_log2(divisor);
        uint64_t const one = 1;
        return {uint32_t(((one << 32) * ((one << shift) - uint64_t(divisor))) / uint64_t(divisor) + 1),
                uint32_t(shift)};
    }
    __device__ uint32_t divide(uint32_t i) const { return (__umulhi(i, magic) + i) >> shift; }
};

struct Offset {
    int64_t in, out;  // elements
    int64_t run;      // indices from here on, this one included, that only move along the last axis
};

template <int N>
struct AxisMap {
    int count;
    bool narrow;  // every index is below 2^31
    int64_t stride[N];
    Divisor divisor[N];
    int64_t size[N], out_stride[N];

    static AxisMap of(const AxisList& axes, int count) {
        AxisMap map{};
        map.count = count;
        int64_t elements = 1;
        for (int d = 0; d < count; ++d) {
            map.size[d] = axes.axis[d].size;
            map.stride[d] = axes.axis[d].stride;
            map.out_stride[d] = axes.axis[d].out_stride;
            elements *= map.size[d];
        }
        map.narrow = elements < (int64_t(1) << 31);
        if (map.narrow && elements > 0)
            for (int d = 0; d < count; ++d) map.divisor[d] = Divisor::of(map.size[d]);
        return map;
    }

    // Of units of V columns, the last axis.
    static AxisMap of_units(AxisList axes, int V) {
        Axis& columns = axes.last();
        columns = {columns.size / V, columns.stride * V, columns.out_stride * V};
        return of(axes, axes.count);
    }

    // Out of line: with the divisions inline, every kernel would be mostly this.
    __device__ __noinline__ Offset locate(int64_t index) const {
        Offset offset{0, 0, 1};
        int64_t rest = index;
#pragma unroll 1
        for (int d = count - 1; d >= 0; --d) {
            int64_t const outer = d == 0 ? 0 : narrow ? divisor[d].divide(uint32_t(rest)) : rest / size[d];
            int64_t const inner = rest - outer * size[d];
            if (d == count - 1) offset.run = size[d] - inner;
            offset.in += inner * stride[d];
            offset.out += inner * out_stride[d];
            rest = outer;
        }
        return offset;
    }

    // One axis, or none (all fields zero), needs no division, and two of them one multiplication.
    __device__ __forceinline__ Offset at(int64_t index) const {
        if (count <= 1) return {index * stride[0], index * out_stride[0], size[0] - index};
        if (N == 1 || count > 2 || !narrow) return locate(index);
        constexpr int kInner = N > 1 ? 1 : 0;
        uint32_t const outer = divisor[kInner].divide(uint32_t(index));
        uint32_t const inner = uint32_t(index) - outer * uint32_t(size[kInner]);
        return {outer * stride[0] + inner * stride[kInner], outer * out_stride[0] + inner * out_stride[kInner],
                size[kInner] - inner};
    }
};

// Kernels with vector loads take few axes, so that their parameters stay small; the gather kernels take any number.
template <Loader L>
inline constexpr int max_axes = L == Loader::gather ? kMaxDims : 4;

}  // namespace gpureduce::cuda
