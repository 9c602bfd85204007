#include "shape.h"

#include <algorithm>

namespace gpureduce {
namespace {

// Appends an axis, or widens the last one where the pair walks memory like a single axis.
void append(AxisList& list, Axis next) {
    if (list.count > 0) {
        Axis& outer = list.last();
        if (outer.stride == next.size * next.stride && outer.out_stride == next.size * next.out_stride) {
            outer = {outer.size * next.size, next.stride, next.out_stride};
            return;
        }
    }
    list.axis[list.count++] = next;
}

// Whether elements may come in any order, and none is told its place.
bool comes_in_any_order(OpKey key) {
    bool found = false;
    visit_first(
        AllOps{}, [&](auto op) { return op.key == key; },
        [&](auto op) { found = decltype(op)::order_free && !decltype(op)::indexed; });
    return found;
}

// From the axis that moves slowest in memory to the one that moves fastest; those that stand still come first.
void sort_by_stride(AxisList& list) {
    std::stable_sort(list.axis, list.axis + list.count, [](const Axis& a, const Axis& b) {
        return b.stride != 0 && (a.stride == 0 || a.stride > b.stride);
    });
}

int fastest_axis(const AxisList& list) {
    int best = -1;
    for (int i = 0; i < list.count; ++i)
        if (list.axis[i].stride != 0 && (best < 0 || list.axis[i].stride < list.axis[best].stride)) best = i;
    return best;
}

}  // namespace

Problem make_problem(const int64_t* sizes, const int64_t* strides, const bool* reduce, int dims, OpKey key, DType out,
                     int misalignment) {
    Problem p;
    p.op = key.op;
    p.in = key.in;
    p.out = out;
    p.accumulate = key.accumulate;
    p.misalignment = misalignment;
    for (int d = 0; d < dims; ++d) (reduce[d] ? p.n : p.outputs) *= sizes[d];

    AxisList reduced_axes;
    int64_t out_stride = p.outputs;
    for (int d = 0; d < dims; ++d) {
        if (sizes[d] == 1) continue;  // dropped before the family is chosen: a matrix of one column is a row
        if (reduce[d]) {
            reduced_axes.axis[reduced_axes.count++] = {sizes[d], strides[d], 0};
        } else {
            out_stride = sizes[d] > 0 ? out_stride / sizes[d] : 0;
            append(p.kept, {sizes[d], strides[d], out_stride});
        }
    }

    if (comes_in_any_order(key)) sort_by_stride(reduced_axes);
    for (int i = 0; i < reduced_axes.count; ++i) append(p.reduced, reduced_axes.axis[i]);

    // Strides decide the family, never sizes: the axis that moves fastest in memory; a tie or all-zero strides is a row.
    int const kept = fastest_axis(p.kept), reduced = fastest_axis(p.reduced);
    bool const column =
        kept >= 0 && p.n > 1 && (reduced < 0 || p.kept.axis[kept].stride < p.reduced.axis[reduced].stride);
    if (column) {
        p.family = Family::column;
        Axis const columns = p.kept.axis[kept];
        for (int i = kept; i + 1 < p.kept.count; ++i) p.kept.axis[i] = p.kept.axis[i + 1];
        p.kept.last() = columns;
    }
    return p;
}

}  // namespace gpureduce
