// What plan_transposed_row.cpp and transposed_row.cuh agree about.
#pragma once

#include "ops.h"

namespace gpureduce {

// Whether an operator has kernels of transposed_row.cuh: a leaf is a sum of loads, to which a zero adds nothing. Integers have their axes
// in the order of memory instead.
template <class Op>
inline constexpr bool has_transposed_rows =
    !Op::order_free && !Op::pivoted && !Op::indexed && Op::coverage != Coverage::basic && Op::key.op != OpId::product;

}  // namespace gpureduce
