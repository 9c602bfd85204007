// Which kernel a call gets: (operator, element type, type of the result, accumulate=) -> (key, type that is loaded).
#pragma once

#include "operator.h"

namespace gpureduce {

struct Kernel {
    DType load_as;  // each element is converted to this type before it is read; equal to `in` for most calls
    OpKey key;      // reads elements of key.in: load_as, or a type of the same bits
};

// Whether ops.h has the operator.
bool is_implemented(OpKey key);

// `out` is the type of the first result. A kernel that does not exist is found by is_implemented.
Kernel resolve(OpId op, Form form, DType in, DType out, Accumulate requested);

}  // namespace gpureduce
