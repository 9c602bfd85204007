"""Exact sums and the error bound of the tree. No tolerance in the suite is written by hand."""

import numpy as np
import torch

from tests import common


def wide(x):
    """A CPU tensor as numpy long double (64 significant bits), or int64 for integers."""
    x = x.detach().cpu()
    if x.dtype in common.INTEGER:
        return x.to(torch.int64).numpy()
    return (x.float() if x.dtype in (torch.float16, torch.bfloat16) else x).numpy().astype(np.longdouble)


def parts(x):
    return (x.real, x.imag) if x.is_complex() else (x,)


def axes(x, dim):
    if x.dim() == 0 or dim is None or dim in ([], ()):
        return tuple(range(x.dim()))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def error_bound(x, dim, keepdim, total, out, accumulate):
    """Elementwise bound of |computed - exact| from the depth of the tree, plus the one rounding to the output type."""
    tree = common.description(x, dim, keepdim, dtype=out, accumulate=accumulate)
    depth = tree["depth"]
    wide_output = out.itemsize // (2 if out.is_complex else 1) == 8
    wide_input = common.accumulator_bits(x.dtype) == 53
    unit = 2.0**-53 if wide_input or wide_output or accumulate == "double" else 2.0**-24
    magnitude = np.abs(wide(x)).sum(axis=axes(x, dim), keepdims=keepdim) if not x.is_complex() else None
    if magnitude is None:
        magnitude = sum(np.abs(wide(p)).sum(axis=axes(x, dim), keepdims=keepdim) for p in parts(x))
    out_part = torch.empty(0, dtype=out).real.dtype if out.is_complex else out
    rounding = torch.finfo(out_part).eps * np.abs(total) + torch.finfo(out_part).smallest_normal
    if accumulate == "compensated" and not (wide_output and not wide_input):
        return 2 * unit * np.abs(total) + (depth * unit) ** 2 * magnitude + rounding
    return depth * 2 * unit * magnitude + rounding


def assert_within_bound(y, x, dim=None, keepdim=False, dtype=None, accumulate=None):
    """y = gpureduce::sum(x, dim, ...) of floating-point x lies within the error bound of its tree."""
    for got, part in zip(parts(y), parts(x), strict=True):
        total = wide(part).sum(axis=axes(x, dim), keepdims=keepdim)
        bound = error_bound(x, dim, keepdim, total, dtype or x.dtype, accumulate)
        error = np.abs(wide(got) - total)
        assert got.shape == total.shape, (got.shape, total.shape)
        assert (error <= bound).all(), f"error {error.max()} exceeds {bound.flat[error.argmax()]}"
