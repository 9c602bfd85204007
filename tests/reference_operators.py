"""The operators of csrc/core again, in numpy and over the tree of reference_tree: oracles for bits.

Each takes rows, a numpy array (outputs, n) of float32 or float64 (elements of 16 bits widened, with element_bytes = 2),
and whether the tree is that of columns, and returns what it accumulates, before it is rounded to the output's type.
"""

from functools import reduce

import numpy as np
import torch

from tests.reference_tree import (
    COLUMN_LEAF_ROWS,
    LANES,
    LOADS,
    VECTOR_BYTES,
    column_leaves,
    is_column,
    pairwise,
    round_to,
    row_leaves,
    to_numpy,
)

QUIET = {np.float32: np.array(0x7FC00000, np.uint32), np.float64: np.array(0x7FF8000000000000, np.uint64)}


def one_nan(x):
    nan = QUIET[x.dtype.type].view(x.dtype)
    return np.where(np.isnan(x), nan, x)


def leaves_of(acc, column, element_bytes, combine, identity):
    if column:
        return column_leaves(acc, combine, identity)
    return row_leaves(acc, element_bytes, combine, identity)


def tree(acc, column, element_bytes, combine, identity):
    return pairwise(leaves_of(acc, column, element_bytes, combine, identity), 1, combine)


def add_parts(a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


# ---- products and sums of powers -----------------------------------------------------------------------------------


def product(rows, column, element_bytes):
    one = (rows.dtype.type(1),)
    return one_nan(tree((rows,), column, element_bytes, lambda a, b: (a[0] * b[0],), one)[0])


def mean(rows, column, element_bytes):
    total = tree((rows,), column, element_bytes, add_parts, (-0.0,))[0]
    return one_nan(total / rows.dtype.type(rows.shape[1]))


def nansum(rows, column, element_bytes):
    """The sum of those that are not NaN, and how many they are."""
    nan = np.isnan(rows)
    values = np.where(nan, rows.dtype.type(-0.0), rows)
    total = tree((values,), column, element_bytes, add_parts, (-0.0,))[0]
    counted = (~nan).sum(1)
    return one_nan(np.where(counted == 0, rows.dtype.type(0), total)), counted


def sum_of_squares(rows, column, element_bytes):
    return one_nan(tree((rows * rows,), column, element_bytes, add_parts, (0.0,))[0])


def sum_of_magnitudes(rows, column, element_bytes):
    return one_nan(tree((np.abs(rows),), column, element_bytes, add_parts, (0.0,))[0])


def two_norm(rows, column, element_bytes):
    if rows.dtype == np.float64:
        return norm_of_doubles(rows, column)
    return np.sqrt(sum_of_squares(rows.astype(np.float64), column, element_bytes))


def norm_of_doubles(rows, column):
    """The 2-norm, by three sums of scaled squares (Blue 1978)."""
    size = np.abs(rows)
    high, low = size > 2.0**486, size < 2.0**-511
    square = (rows * np.where(high, 2.0**-538, np.where(low, 2.0**537, 1.0))) ** 2
    parts = (np.where(low, square, 0), np.where(high | low, 0, square), np.where(high, square, 0))
    low, middle, high = tree(parts, column, 8, add_parts, (0.0, 0.0, 0.0))
    root = np.where(
        high > 0,
        np.sqrt(high + middle * 2.0**-538 * 2.0**-538) * 2.0**538,
        np.where(
            (low == 0) | (middle > 1),
            np.sqrt(middle),
            np.where(
                middle == 0,
                np.sqrt(low) * 2.0**-537,
                np.sqrt(middle * 2.0**200 + low * 2.0**-874) * 2.0**-100,
            ),
        ),
    )
    return one_nan(np.where(np.isnan(middle), np.nan, root))


# ---- fused multiply-add, exp and log -------------------------------------------------------------------------------


def two_sum(a, b):
    value = a + b
    part = value - a
    return value, (a - (value - part)) + (b - part)


def to_odd(value, error):
    """value + error, truncated to an odd last bit unless it is exact."""
    even = (value.view(np.int64) & 1) == 0
    return np.where((error != 0) & even, np.nextafter(value, np.where(error > 0, np.inf, -np.inf)), value)


def split(a):
    scaled = 134217729.0 * a
    high = scaled - (scaled - a)
    return high, a - high


def fma(a, b, c):
    """a * b + c in one rounding (Boldo and Melquiond 2008), of numbers far from overflow and underflow."""
    dtype = np.result_type(a, b, c)
    a, b, c = (np.asarray(x, np.float64) for x in np.broadcast_arrays(a, b, c))
    if dtype == np.float32:
        return to_odd(*two_sum(a * b, c)).astype(np.float32)
    (ah, al), (bh, bl) = split(a), split(b)
    upper = a * b
    lower = ((ah * bh - upper) + ah * bl + al * bh) + al * bl
    t, t_rest = two_sum(c, lower)
    v, v_rest = two_sum(upper, t)
    return v + to_odd(*two_sum(t_rest, v_rest))


def horner(x, coefficients, dtype):
    return reduce(lambda p, c: fma(p, x, c), [dtype(float.fromhex(c)) for c in coefficients])


EXP = {
    np.float32: {
        "bits": (23, np.int32),
        "per_ln2": "0x1.715476p0",
        "ln2": ("0x1.62e4p-1", "0x1.7f7d1cp-20"),
        "least": -87,
        "q": ["0x1.6a2252p-10", "0x1.123b02p-7", "0x1.5558f8p-5", "0x1.555490p-3", "0x1.fffffcp-2", "1", "1"],
    },
    np.float64: {
        "bits": (52, np.int64),
        "per_ln2": "0x1.71547652b82fep0",
        "ln2": ("0x1.62e42fefa4p-1", "-0x1.8432a1b0e2634p-43"),
        "least": -708,
        "q": [
            *("0x1.ad7e746da45eep-26", "0x1.28ae3423cc8efp-22", "0x1.71df272c6b6f3p-19", "0x1.a0199944acc10p-16"),
            *("0x1.a01a0128f8830p-13", "0x1.6c16c1846fa5bp-10", "0x1.111111112817fp-7", "0x1.5555555550755p-5"),
            *("0x1.55555555554f8p-3", "0x1.000000000000ap-1", "1", "1"),
        ],
    },
}
BRIEF = ["0x1.5bb928p-10", "0x1.3ceb6cp-7", "0x1.c6b75ap-5", "0x1.ebf9bap-3", "0x1.62e42ap-1", "1"]


def decay(x, brief=False):
    """exp of x <= 0."""
    dtype = x.dtype.type
    c = EXP[dtype]
    mantissa_bits, integer = c["bits"]
    shifter, per_ln2 = dtype(1.5 * 2.0**mantissa_bits), dtype(float.fromhex(c["per_ln2"]))
    x = np.where(x > c["least"], x, dtype(c["least"]))
    shifted = fma(x, per_ln2, shifter)
    n = shifted - shifter
    if brief:
        mantissa = horner(fma(x, per_ln2, -n), BRIEF, dtype)
    else:
        high, low = (dtype(float.fromhex(part)) for part in c["ln2"])
        mantissa = horner(fma(n, -low, fma(n, -high, x)), c["q"], dtype)
    with np.errstate(over="ignore"):
        return (mantissa.view(integer) + (shifted.view(integer) << mantissa_bits)).view(dtype)


LOG = ["0x1.2f0d9347d81cfp-3", "0x1.39a0f48161887p-3", "0x1.746646320b48ap-3", "0x1.c71c51e7d94f7p-3"]
LOG += ["0x1.2492494217cc4p-2", "0x1.999999997fb2ep-2", "0x1.5555555555593p-1"]


def logarithm(x):
    """Of normal float64."""
    root = 0x3FE6A09E667F3BCD
    above = x.view(np.int64) - root
    k = (above >> 52).astype(np.float64)
    f = ((above & 0x000FFFFFFFFFFFFF) + root).view(np.float64) - 1
    s = f / (2 + f)
    half, z = 0.5 * f * f, s * s
    r = horner(z, LOG, np.float64)
    high, low = (float.fromhex(part) for part in EXP[np.float64]["ln2"])
    return k * high - ((half - (s * (half + z * r) + k * low)) - f)


# ---- pivoted operators ---------------------------------------------------------------------------------------------


def leaf_counts(n, column, element_bytes):
    leaf = COLUMN_LEAF_ROWS if column else LOADS * LANES * (VECTOR_BYTES // element_bytes)
    count = 1 << (-(-n // leaf) - 1).bit_length()
    return leaf, np.clip(n - leaf * np.arange(count), 0, leaf)


def spread(pivot, rows, leaf):
    """The pivots of leaves -> one for each element of a row."""
    return np.repeat(pivot, leaf, axis=1)[:, : rows.shape[1]]


def moments(rows, column, element_bytes):
    """Mean, and the sum of squared distances from it."""
    dtype = rows.dtype.type
    leaf, counts = leaf_counts(rows.shape[1], column, element_bytes)
    n = np.broadcast_to(counts.astype(dtype), (rows.shape[0], counts.size))
    first = leaves_of((rows * dtype(2.0**-10),), column, element_bytes, add_parts, (-0.0,))[0]
    pivot = first * (dtype(1024) / n)
    distance = rows - spread(pivot, rows, leaf)
    total, squares = leaves_of((distance, distance * distance), column, element_bytes, add_parts, (-0.0, -0.0))
    off = total / n
    squares = squares - total * off
    empty = n == 0
    rest = np.where(np.isfinite(off), off, dtype(0))
    leaves = n, pivot, rest, np.where(squares < 0, dtype(0), squares)
    leaves = leaves[0], *(np.where(empty, dtype(0), part) for part in leaves[1:])
    _, mean, rest, squares = pairwise(leaves, 1, merge_moments)
    return one_nan(mean + rest), one_nan(squares)


def merge_moments(a, b):
    dtype = a[0].dtype.type
    n, distance = a[0] + b[0], (b[1] - a[1]) + (b[2] - a[2])
    part = np.where(a[0] != b[0], b[0] / n, dtype(0.5))
    shift = distance * part
    mean, error = two_sum(a[1], shift)
    rest = error + (a[2] + dtype(0))
    squares = (a[3] + b[3]) + distance * distance * (a[0] * part)
    weighted = a[1] * (dtype(1) - part) + b[1] * part
    apart = np.where(np.isfinite(a[1]) & np.isfinite(b[1]), weighted, a[1] + b[1])
    finite = np.isfinite(distance)
    both = n, np.where(finite, mean, apart), np.where(finite, rest, dtype(0)), squares
    both = (np.where(a[0] == 0, y, x) for x, y in zip(both, b, strict=True))
    return tuple(np.where(b[0] == 0, y, x) for x, y in zip(both, a, strict=True))


def variance(rows, column, element_bytes, correction=1):
    """Variance and mean."""
    mean, squares = moments(rows, column, element_bytes)
    left = rows.dtype.type(max(rows.shape[1] - correction, 0))
    return one_nan(np.where(np.isfinite(mean), squares / left, np.nan).astype(rows.dtype)), mean


def merge_exponentials(a, b):
    first = a[0] >= b[0]
    scaled = np.where(first, b[1], a[1]) * decay(np.where(first, b[0] - a[0], a[0] - b[0]))
    return np.maximum(a[0], b[0]), np.where(first, a[1], b[1]) + scaled


def softmax_stats(rows, column, element_bytes):
    """The maximum, and the sum of exp(x - maximum)."""
    dtype = rows.dtype.type
    leaf, _ = leaf_counts(rows.shape[1], column, element_bytes)
    pivot = leaves_of((rows,), column, element_bytes, lambda a, b: (np.maximum(a[0], b[0]),), (-np.inf,))[0]
    terms = decay(rows - spread(pivot, rows, leaf), brief=element_bytes == 2)
    sums = leaves_of((terms,), column, element_bytes, add_parts, (0.0,))[0]
    maximum, total = pairwise((pivot, sums), 1, merge_exponentials)
    total = np.where(maximum == -np.inf, dtype(0), np.where(maximum == np.inf, dtype(np.nan), total))
    return one_nan(maximum + dtype(0)), one_nan(np.where(np.isnan(maximum), dtype(np.nan), total))


def logsumexp(rows, column, element_bytes):
    maximum, total = softmax_stats(rows, column, element_bytes)
    usual = np.isfinite(maximum)
    log = logarithm(np.where(usual, total, 1).astype(np.float64))
    return np.where(usual, maximum.astype(np.float64) + log, maximum).astype(rows.dtype)


# ---- of tensors ----------------------------------------------------------------------------------------------------


def nanmean(*call):
    total, counted = nansum(*call)
    return one_nan(total / counted.astype(total.dtype))


def deviation(*call):
    squared, mean = variance(*call)
    return np.sqrt(squared), mean


ORACLES = {  # name of a member of the family -> its results
    "mean": lambda *call: (mean(*call),),
    "nansum": lambda *call: nansum(*call)[:1],
    "nanmean": lambda *call: (nanmean(*call),),
    "sumsq": lambda *call: (sum_of_squares(*call),),
    "prod": lambda *call: (product(*call),),
    "norm 2": lambda *call: (two_norm(*call),),
    "norm 1": lambda *call: (sum_of_magnitudes(*call),),
    "var": lambda *call: variance(*call)[:1],
    "std": lambda *call: deviation(*call)[:1],
    "var_mean": variance,
    "std_mean": deviation,
    "logsumexp": lambda *call: (logsumexp(*call),),
    "softmax_stats": softmax_stats,
}


def reference(name, x, dim, dtypes):
    """The results of an operator of a CPU tensor that is not complex, of these types."""
    dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    reduced = sorted(d % x.dim() for d in dims)
    kept = [d for d in range(x.dim()) if d not in reduced]
    shape = [x.size(d) for d in kept]
    rows = to_numpy(x.permute(kept + reduced).reshape(int(np.prod(shape)), -1))
    column = rows.shape[1] > 1 and is_column(x, reduced)
    element_bytes = x.element_size() if x.is_floating_point() else 4  # integers are converted first
    with np.errstate(all="ignore"):
        values = ORACLES[name](rows.astype(np.promote_types(rows.dtype, np.float32)), column, element_bytes)
    rounded = (round_to(value, dtype).reshape(shape) for value, dtype in zip(values, dtypes, strict=True))
    return [torch.where(result.isnan(), torch.tensor(torch.nan, dtype=result.dtype), result) for result in rounded]
