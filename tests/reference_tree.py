"""The tree of csrc/core/tree.h again, in numpy and from its description alone: the oracle for bits on CPU and CUDA.

An accumulator is a tuple of arrays of equal shape: (value,) or, compensated, (value, error). Missing elements are -0.0,
the identity of addition.
"""

import numpy as np
import torch

LANES, LOADS, VECTOR_BYTES, COLUMN_LEAF_ROWS = 32, 4, 16, 8
EXACT = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


def add(a, b):
    value = a[0] + b[0]
    if len(a) == 1:
        return (value,)
    b_part = value - a[0]
    error = (a[0] - (value - b_part)) + (b[0] - b_part)
    return value, error + (a[1] + b[1])


def take(acc, axis, index):
    return tuple(np.take(part, index, axis=axis) for part in acc)


def chain(acc, axis, combine=add):
    total = take(acc, axis, 0)
    for i in range(1, acc[0].shape[axis]):
        total = combine(total, take(acc, axis, i))
    return total


def pairwise(acc, axis, combine=add):
    """Folds a power of two of values: neighbours first, then neighbours of those."""
    count = acc[0].shape[axis]
    while count > 1:
        acc = combine(take(acc, axis, range(0, count, 2)), take(acc, axis, range(1, count, 2)))
        count //= 2
    return take(acc, axis, 0)


def padded(acc, axis, count, identity=(-0.0, 0.0)):
    width = [(0, 0)] * acc[0].ndim
    width[axis] = (0, count - acc[0].shape[axis])
    return tuple(np.pad(part, width, constant_values=c) for part, c in zip(acc, identity, strict=False))


def next_power_of_two(n):
    return 1 << (n - 1).bit_length()


def row_leaves(acc, element_bytes, combine=add, identity=(-0.0, 0.0)):
    """(rows, n) -> (rows, leaves): leaves of LOADS x LANES x components elements."""
    components = VECTOR_BYTES // element_bytes
    leaf = LOADS * LANES * components
    leaves = next_power_of_two(-(-acc[0].shape[1] // leaf))
    acc = padded(acc, 1, leaves * leaf, identity)
    acc = tuple(part.reshape(-1, leaves, LOADS, LANES, components) for part in acc)
    acc = chain(acc, 2, combine)
    acc = pairwise(acc, 3, combine)
    return pairwise(acc, 2, combine)


def column_leaves(acc, combine=add, identity=(-0.0, 0.0)):
    """(columns, n) -> (columns, leaves): leaves of COLUMN_LEAF_ROWS rows."""
    leaves = next_power_of_two(-(-acc[0].shape[1] // COLUMN_LEAF_ROWS))
    acc = padded(acc, 1, leaves * COLUMN_LEAF_ROWS, identity)
    return chain(tuple(part.reshape(-1, leaves, COLUMN_LEAF_ROWS) for part in acc), 2, combine)


def row_tree(acc, element_bytes, combine=add, identity=(-0.0, 0.0)):
    """(rows, n) -> (rows,)"""
    return pairwise(row_leaves(acc, element_bytes, combine, identity), 1, combine)


def column_tree(acc, combine=add, identity=(-0.0, 0.0)):
    """(columns, n) -> (columns,)"""
    return pairwise(column_leaves(acc, combine, identity), 1, combine)


def is_column(x, reduced):
    """Whether the axis that moves fastest in memory is kept."""
    strides = [(x.stride(d), d in reduced) for d in range(x.dim()) if x.size(d) != 1 and x.stride(d) != 0]
    kept = [stride for stride, is_reduced in strides if not is_reduced]
    inner = [stride for stride, is_reduced in strides if is_reduced]
    return bool(kept) and (not inner or min(kept) < min(inner))


def round_to(values, dtype):
    """Exact values (float32 or float64) -> dtype in one rounding to nearest even, as a torch tensor."""
    if dtype == torch.bfloat16:  # 8 significant bits, smallest unit 2^-133
        wide = values.astype(np.float64)
        finite = np.isfinite(wide)
        _, exponent = np.frexp(np.where(finite, wide, 0))
        unit = np.ldexp(1.0, np.maximum(exponent - 8, -133))
        rounded = np.where(finite, np.rint(np.where(finite, wide, 0) / unit) * unit, wide)
        with np.errstate(over="ignore"):
            return torch.from_numpy(rounded.astype(np.float32)).to(dtype)  # exact: 8 bits, or beyond the range
    kind = {torch.float64: np.float64, torch.float32: np.float32, torch.float16: np.float16}[dtype]
    with np.errstate(over="ignore"):
        return torch.from_numpy(values.astype(kind))


def real_sum(rows, column, element_bytes, accumulator, compensated, out):
    """rows: (outputs, n) numpy array -> torch tensor (outputs,) of dtype out."""
    outputs, n = rows.shape
    if n == 0:
        return torch.zeros(outputs, dtype=out)
    value = rows.astype(accumulator)
    acc = (value, np.zeros_like(value)) if compensated else (value,)
    with np.errstate(all="ignore"):
        acc = column_tree(acc) if column else row_tree(acc, element_bytes)
        total = acc[0]
        if compensated:
            useful = np.isfinite(total) & ~np.isnan(acc[1]) & (acc[1] != 0)
            total = np.where(useful, total + acc[1], total)
    total = np.where(np.isnan(total), np.copysign(np.array(np.nan, accumulator), 1), total).astype(accumulator)
    return round_to(total, out)


def to_numpy(x):
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()


def reference_sum(x, dim=None, keepdim=False, *, dtype=None, accumulate=None):
    """gpureduce::sum of a CPU tensor. dtype may not narrow a floating-point x."""
    dims = list(range(x.dim())) if dim is None or dim == [] else [dim] if isinstance(dim, int) else list(dim)
    reduced = {d % max(x.dim(), 1) for d in dims} if x.dim() else set()
    out = dtype or (torch.int64 if x.dtype in EXACT else x.dtype)
    kept = [d for d in range(x.dim()) if d not in reduced]
    shape = [1 if d in reduced else x.size(d) for d in range(x.dim()) if keepdim or d not in reduced]
    outputs = int(np.prod([x.size(d) for d in kept], dtype=np.int64))
    n = int(np.prod([x.size(d) for d in reduced], dtype=np.int64))
    rows = x.permute(kept + sorted(reduced)).reshape(outputs, n)  # row-major over the reduced dims
    column = n > 1 and is_column(x, reduced)
    to_float64 = out in (torch.float64, torch.complex128)

    if x.dtype in EXACT and not (x.dtype == torch.int64 and (out.is_floating_point or out.is_complex)):
        total = rows.to(torch.int64).sum(1)
        if out.is_floating_point:
            halves = total.numpy()
            return round_exact(halves, out).reshape(shape)
        return (rows.any(1) if out == torch.bool else total.to(out)).reshape(shape)

    wide = x.dtype in (torch.float64, torch.complex128, torch.int64)
    double = wide or to_float64 or accumulate == "double"
    compensated = accumulate == "compensated" and not (to_float64 and x.dtype not in (torch.float64, torch.complex128))
    compensated = compensated and x.dtype != torch.int64
    settings = column, x.element_size(), np.float64 if double else np.float32, compensated
    if not x.is_complex():
        return real_sum(to_numpy(rows), *settings, out).reshape(shape)
    part = torch.float64 if out == torch.complex128 else torch.float32
    pair = [real_sum(half.contiguous().numpy(), *settings, part) for half in (rows.real, rows.imag)]
    return torch.complex(*pair).reshape(shape)


def round_exact(integers, dtype):
    """int64 -> dtype in one rounding. float32 and narrower from float64 would round twice beyond 2^53."""
    if dtype in (torch.float64, torch.float32):
        return torch.from_numpy(integers.astype(np.float64 if dtype == torch.float64 else np.float32))
    assert np.abs(integers).max(initial=0) < 1 << 53
    return round_to(integers.astype(np.float64), dtype)
