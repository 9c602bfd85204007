#include "resolve.h"

#include "ops.h"

namespace gpureduce {
namespace {

Kernel same_type(OpId op, DType in) { return {in, {op, in, Accumulate::native}}; }

constexpr int part_bytes(DTypeInfo type) { return type.kind == Kind::complex ? type.bytes / 2 : type.bytes; }

constexpr bool widens_exactly(DTypeInfo from, DTypeInfo to) {
    if (from.id == to.id) return true;
    if (to.kind == Kind::integer || (from.kind == Kind::complex && to.kind == Kind::real)) return false;
    return part_bytes(to) >= 4 && part_bytes(from) <= part_bytes(to);
}

// What adds up in a type that the call may choose. Narrowing converts element by element, as torch does.
Kernel additive(OpId op, DType in, DType out, Accumulate requested) {
    DTypeInfo const from = dtype_info(in), to = dtype_info(out);
    if (from.kind == Kind::integer) {
        // The integer sum is exact and rounded once, except for int64, whose float sums need a float accumulator.
        if (to.id == DType::boolean) return {to.id, {op, to.id, Accumulate::native}};
        bool const rounds = from.id == DType::int64 && to.kind != Kind::integer;
        return {in, {op, in, rounds ? Accumulate::float64 : Accumulate::native}};
    }
    if (!widens_exactly(from, to)) return additive(op, out, out, requested);
    if (part_bytes(from) == 8) {
        // Doubles have no wider accumulator, but a second kind of squares, which do not overflow.
        bool const kept = requested == Accumulate::compensated || op == OpId::squares;
        return {in, {op, in, kept ? requested : Accumulate::native}};
    }
    return {in, {op, in, part_bytes(to) == 8 ? Accumulate::float64 : requested}};
}

// The result is real.
Kernel magnitudes(OpId op, DType in, DType out, Accumulate requested) {
    DTypeInfo const from = dtype_info(in), to = dtype_info(out);
    if (from.kind == Kind::integer && to.kind != Kind::integer) return magnitudes(op, out, out, requested);
    if (from.kind != Kind::complex || to.kind == Kind::complex) return additive(op, in, out, requested);
    // Complex elements, real results: as if those were complex. A 16-bit result is rounded once, at the end.
    bool const wide = part_bytes(to) == 8 || (part_bytes(to) < 4 && part_bytes(from) == 8);
    return additive(op, in, wide ? DType::complex128 : DType::complex64, requested);
}

// Widened as the elements are read where there is a kernel for that, else before.
Kernel product(DType in, DType out) {
    DTypeInfo const from = dtype_info(in), to = dtype_info(out);
    bool const exact = from.kind == Kind::integer ? to.kind == Kind::integer && out != DType::boolean
                                                  : in == out || (from.kind == to.kind && widens_exactly(from, to));
    if (exact && (from.kind == Kind::integer || part_bytes(to) < 8 || part_bytes(from) == 8))
        return same_type(OpId::product, in);
    OpKey const widened{OpId::product, in, Accumulate::float64};
    if (exact && is_implemented(widened)) return {in, widened};
    return same_type(OpId::product, out);
}

}  // namespace

bool is_implemented(OpKey key) {
    return visit_first(AllOps{}, [&](auto op) { return op.key == key; }, [](auto) {});
}

Kernel resolve(OpId op, Form form, DType in, DType out, Accumulate requested) {
    bool const integer = dtype_info(in).kind == Kind::integer;
    switch (op) {
        case OpId::sum:
            if (form == Form::mean && integer) return additive(op, out, out, requested);
            return additive(op, in, out, requested);
        case OpId::nansum: {
            if (integer) return additive(OpId::sum, in, out, requested);
            Kernel const kernel = additive(op, in, out, requested);
            bool const no_nan = dtype_info(kernel.key.in).kind == Kind::integer;
            return no_nan ? additive(OpId::sum, kernel.load_as, out, requested) : kernel;
        }
        case OpId::squares:
            if (in == DType::boolean && dtype_info(out).kind == Kind::integer)
                return additive(OpId::sum, in, out, requested);
            return magnitudes(op, in, out, requested);
        case OpId::magnitudes: {
            Kernel const kernel = magnitudes(op, in, out, Accumulate::native);
            if (kernel.key.accumulate == Accumulate::native) return kernel;
            bool const complex = dtype_info(kernel.load_as).kind == Kind::complex;
            return same_type(op, complex ? DType::complex128 : DType::float64);  // there is no kernel that widens
        }
        case OpId::product: return product(in, out);
        case OpId::nonzero:
            // Of bytes, a sum of truths.
            if (integer && dtype_info(in).bytes == 1) return {in, {OpId::sum, DType::boolean, Accumulate::native}};
            return same_type(op, in);
        case OpId::exponentials: return same_type(op, integer ? out : in);
        default: return same_type(op, in);
    }
}

}  // namespace gpureduce
