// Norms over a list of tensors, as if they were one row: its leaves are those of the first tensor, then those of the second,
// and so on, and above them stands the perfect binary tree by leaf index, as of any row.
//
// Every contribution is +0.0 or greater, or NaN, and that of a zero is the identity, so what a tensor lacks to a whole leaf
// may be read as zeros.
#pragma once

#include <string>

#include "plan.h"

namespace gpureduce {

enum class Norm : uint8_t { one, two, infinity };

// Elements side by side in memory.
struct Piece {
    void* data;
    int64_t n;
};

struct ListProblem {
    const Piece* pieces = nullptr;  // none of them empty
    int64_t count = 0;
    int64_t leaves = 0;  // of all of them
    DType in = DType::float32;
    Norm norm = Norm::two;
};

struct ListPlan {
    int threads = 0;           // per block
    int64_t chunk_leaves = 0;  // per block, a power of two
    int64_t chunks = 1;
    int64_t mailbox_bytes = 0;  // zeroed memory through which blocks join; it is zero again afterwards
};

// Tensors of which one launch takes the addresses as arguments: up to 4 KB of them, or up to 32.
inline constexpr int kFewTensors = 256;
inline constexpr int kManyTensors = 2048;

// Leaves that plans exist for.
inline constexpr int64_t kMostListLeaves = int64_t(kRowGroups) << 14;

ListProblem make_list_problem(const Piece* pieces, int64_t count, DType in, Norm norm);
ListPlan make_list_plan(const ListProblem& problem, const DeviceTraits& device, const Geometry& force = {});
std::string to_json(const ListProblem& problem, const ListPlan& plan);

// What gradients are multiplied by, so that their norm is at most max_norm: torch's formula.
GPUREDUCE_HD double clip_coefficient(double norm, double max_norm) {
    double const ratio = max_norm / (norm + 1e-6);
    return ratio > 1.0 ? 1.0 : ratio;  // NaN stays NaN
}

// --- the operators ----------------------------------------------------------------------------------------------------

template <class E>
GPUREDUCE_HD auto magnitude_as_double(E x) {
    return double(magnitude_of(x));
}

// Sums of |x|, which no float overflows.
template <class E>
struct ListNormOne : OperatorDefaults<E> {
    using element = E;
    using acc = double;
    static GPUREDUCE_HD acc identity() { return 0.0; }
    static GPUREDUCE_HD acc load(E x) { return magnitude_as_double(x); }
    static GPUREDUCE_HD acc combine(acc a, acc b) { return a + b; }
    static GPUREDUCE_HD double finish(acc a) { return one_nan(a); }
};

// Of elements of up to 4 bytes, whose squares are exact in double and of which no sum overflows or underflows.
template <class E>
struct ListNormTwo : OperatorDefaults<E> {
    using element = E;
    using acc = double;
    static GPUREDUCE_HD acc identity() { return 0.0; }
    static GPUREDUCE_HD acc load(E x) {
        double const wide = Load<double, E>::of(x);
        return wide * wide;
    }
    static GPUREDUCE_HD acc combine(acc a, acc b) { return a + b; }
    static GPUREDUCE_HD double finish(acc a) { return one_nan(square_root(a)); }
};

template <>
struct ListNormTwo<double> : OperatorDefaults<double> {
    using element = double;
    using acc = Scaled;
    static GPUREDUCE_HD acc identity() { return {0.0, 0.0, 0.0}; }
    static GPUREDUCE_HD acc load(double x) { return Square<Scaled>::of(x); }
    static GPUREDUCE_HD acc combine(acc a, acc b) { return add(a, b); }
    static GPUREDUCE_HD double finish(acc a) { return one_nan(root_of(a)); }
};

// The greatest |x|, as the integer that its bits are; NaN is above the infinity.
template <class E>
struct ListNormMax : OperatorDefaults<E> {
    using Value = decltype(magnitude_of(E{}));
    using element = E;
    using acc = typename Order<Value>::Rank;
    static GPUREDUCE_HD acc identity() { return 0; }
    static GPUREDUCE_HD acc load(E x) { return bit_cast<acc>(magnitude_of(x)); }
    static GPUREDUCE_HD acc combine(acc a, acc b) { return b > a ? b : a; }
    static GPUREDUCE_HD double finish(acc a) { return one_nan(double(bit_cast<Value>(a))); }
};

// Complex numbers are lists of their parts, for the norms that allow it.
using ListTypes = TypeList<double, float, Half, BFloat16>;

// Calls f(Op{}) for the operator of a problem with elements of a list; false if there is none.
template <class Elements = ListTypes, class F>
bool visit_list_operator(const ListProblem& p, F&& f) {
    return visit_first(
        Elements{}, [&](auto element) { return info_of<decltype(element)>.id == p.in; },
        [&](auto element) {
            using E = decltype(element);
            if (p.norm == Norm::one) return f(ListNormOne<E>{});
            if (p.norm == Norm::two) return f(ListNormTwo<E>{});
            f(ListNormMax<E>{});
        });
}

// Elements are multiplied in the type they are added in.
template <class E>
using FactorOf = std::conditional_t<std::is_same_v<E, double>, double, float>;
GPUREDUCE_HD double scaled_by(double x, double factor) { return x * factor; }
GPUREDUCE_HD float scaled_by(float x, float factor) { return x * factor; }
GPUREDUCE_HD Half scaled_by(Half x, float factor) { return to_half(to_float(x) * factor); }
GPUREDUCE_HD BFloat16 scaled_by(BFloat16 x, float factor) { return to_bfloat16(to_float(x) * factor); }

}  // namespace gpureduce
