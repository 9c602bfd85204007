#include "resolve.h"

#include "ops.h"

namespace gpureduce {
namespace {

constexpr int part_bytes(DTypeInfo type) { return type.kind == Kind::complex ? type.bytes / 2 : type.bytes; }

constexpr bool widens_exactly(DTypeInfo from, DTypeInfo to) {
    if (from.id == to.id) return true;
    if (to.kind == Kind::integer || (from.kind == Kind::complex && to.kind == Kind::real)) return false;
    return part_bytes(to) >= 4 && part_bytes(from) <= part_bytes(to);
}

Kernel kernel_of(OpId op, DType in, Accumulate accumulate = Accumulate::native) { return {in, {op, in, accumulate}}; }

// Sums of what is not an integer. Elements that the result's type cannot hold are converted first.
Kernel float_sum(OpId op, DType in, DType out, Accumulate requested) {
    DTypeInfo const from = dtype_info(in), to = dtype_info(out);
    if (!widens_exactly(from, to)) return float_sum(op, out, out, requested);
    bool const two_kinds = op == OpId::squares;  // of doubles: as they are, and scaled so that they do not overflow
    if (part_bytes(from) == 8)
        return kernel_of(op, in, requested == Accumulate::compensated || two_kinds ? requested : Accumulate::native);
    return kernel_of(op, in, part_bytes(to) == 8 ? Accumulate::float64 : requested);
}

// The sum of integers is exact and rounded once, but for int64, whose float sums need a float accumulator.
Kernel integer_sum(DType in, DType out) {
    if (out == DType::boolean) return kernel_of(OpId::sum, out);
    bool const rounds = in == DType::int64 && dtype_info(out).kind != Kind::integer;
    return kernel_of(OpId::sum, in, rounds ? Accumulate::float64 : Accumulate::native);
}

Kernel sum(OpId op, DType in, DType out, Accumulate requested) {
    if (dtype_info(in).kind == Kind::integer) return integer_sum(in, out);
    if (dtype_info(out).kind == Kind::integer) return integer_sum(out, out);
    return float_sum(op, in, out, requested);
}

// Sums of |x| and |x|^2, which are real.
Kernel magnitudes(OpId op, DType in, DType out, Accumulate requested) {
    DTypeInfo const from = dtype_info(in), to = dtype_info(out);
    if (from.kind == Kind::complex && to.kind == Kind::real)  // as if both were; a 16-bit result is rounded at the end
        out =
            part_bytes(to) == 8 || (part_bytes(to) < 4 && part_bytes(from) == 8) ? DType::complex128 : DType::complex64;
    if (to.kind != Kind::integer) return float_sum(op, from.kind == Kind::integer ? out : in, out, requested);
    DType const type = from.kind == Kind::integer && out != DType::boolean ? in : out;
    return kernel_of(type == DType::boolean ? OpId::sum : op, type);  // a truth is its own square
}

// Whether what accumulates elements of a type holds those results, so that they need not be converted first.
bool holds(DTypeInfo from, DTypeInfo to) {
    if (from.id == to.id) return true;
    if (from.kind == Kind::integer) return to.kind == Kind::integer && to.id != DType::boolean;
    return from.kind == to.kind && part_bytes(from) < 4 && part_bytes(to) == 4;
}

}  // namespace

bool is_implemented(OpKey key) {
    return visit_first(AllOps{}, [&](auto op) { return op.key == key; }, [](auto) {});
}

Kernel resolve(OpId op, Form form, DType in, DType out, Accumulate requested) {
    DTypeInfo const from = dtype_info(in);
    bool const integer = from.kind == Kind::integer;
    switch (op) {
        case OpId::sum:  // there is no mean of integers
            return form == Form::mean && integer ? float_sum(op, out, out, requested) : sum(op, in, out, requested);
        case OpId::nansum: return sum(op, in, out, requested);
        case OpId::squares: return magnitudes(op, in, out, requested);
        case OpId::magnitudes: {
            Kernel const wanted = magnitudes(op, in, out, requested);
            if (is_implemented(wanted.key)) return wanted;
            bool const complex = from.kind == Kind::complex;
            return kernel_of(op, complex ? DType::complex128 : DType::float64);
        }
        case OpId::product: return kernel_of(op, holds(from, dtype_info(out)) ? in : out);
        case OpId::nonzero:  // of bytes, a sum of truths
            if (integer && from.bytes == 1) return {in, {OpId::sum, DType::boolean, Accumulate::native}};
            return kernel_of(op, in);
        case OpId::exponentials: return kernel_of(op, integer ? out : in);
        default: return kernel_of(op, in);
    }
}

}  // namespace gpureduce
