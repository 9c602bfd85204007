// Sizes, strides and dims -> Problem: what is kept, what is reduced, collapsed as far as the addresses allow.
#pragma once

#include "tree.h"

namespace gpureduce {

inline constexpr int kMaxDims = 64;

struct Axis {
    int64_t size;
    int64_t stride;      // of the input, in elements
    int64_t out_stride;  // of the output, in elements; 0 for a reduced axis
};

struct AxisList {
    int count = 0;
    Axis axis[kMaxDims];

    Axis& last() { return axis[count - 1]; }
    const Axis& last() const { return axis[count - 1]; }
    int64_t elements() const {
        int64_t product = 1;
        for (int i = 0; i < count; ++i) product *= axis[i].size;
        return product;
    }
};

struct Problem {
    OpId op = OpId::sum;
    DType in = DType::float32;
    DType out = DType::float32;
    Form form = Form::total;
    DType second = DType::float32;  // of the second result, if there are two
    double parameter = 0;           // of the operator
    Accumulate accumulate = Accumulate::native;
    Family family = Family::row;
    AxisList kept;     // in output order; in the column family the last one is the column axis
    AxisList reduced;  // row-major: the index of an element in its row runs over these, last axis fastest; in the order
                       // of memory where that of elements is free
    int64_t outputs = 1;
    int64_t n = 1;         // elements reduced into one output
    int misalignment = 0;  // input address modulo 16
};

// How the accumulators of a problem become results.
inline Ending ending_of(const Problem& p) { return {p.form, p.n, p.parameter}; }

// `reduce[d]` says whether dim d is reduced. The output is contiguous over the kept dims in their order.
Problem make_problem(const int64_t* sizes, const int64_t* strides, const bool* reduce, int dims, OpKey key, DType out,
                     int misalignment);

}  // namespace gpureduce
