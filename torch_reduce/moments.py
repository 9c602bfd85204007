"""Norms, variances and standard deviations."""

from __future__ import annotations

import torch

from .ops import Dim

_ops = torch.ops.gpureduce

Pair = tuple[torch.Tensor, torch.Tensor]


def norm(
    input: torch.Tensor,
    ord: float = 2,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The vector norm over the given dims: :func:`torch.linalg.vector_norm`.

    Neither overflows nor underflows on the way: squares of 16- and 32-bit floats are added in float64, of float64 in
    three ranges (Blue, "A portable Fortran program to find the Euclidean norm of a vector", 1978), and other powers are
    of elements divided by the greatest.

    Args:
        input: floating point or complex.
        ord: 2, 1, inf, -inf, 0 (the number of elements that are not zero), in one pass each; or any other, made of
            several.
        dim: the dim or dims; None and an empty sequence mean all, as vector_norm does.
        keepdim, out: as for :func:`torch_reduce.sum`; out has to be of the result's type.
        dtype: input counts as converted to this; it may only widen.

    Returns:
        The norms, real. 0 for no elements.

    Raises:
        RuntimeError: input or dtype is of an integer type, dtype would narrow, ord is complex, or ord is inf or
            negative and there are no elements.
        IndexError, NotImplementedError: as :func:`torch_reduce.sum`.
    """
    result: torch.Tensor
    if out is not None:
        result = _ops.norm.out(input, ord, dim, keepdim, dtype=dtype, out=out)
    else:
        result = _ops.norm(input, ord, dim, keepdim, dtype=dtype)
    return result


def var(
    input: torch.Tensor,
    dim: Dim = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The variance over the given dims: :func:`torch.var` with correction.

    In one pass, by merging means and squared distances (Chan, Golub and LeVeque, "Updating formulae and a pairwise
    algorithm for computing sample variances", 1979), never by the difference of squares.

    Args:
        input: floating point or complex.
        dim: the dim or dims; None and an empty sequence mean all.
        correction: what is subtracted from the number of elements; by default 1.
        keepdim: whether reduced dims stay with size 1.
        out: of any type that the result can be cast to.

    Returns:
        The variances, real; of complex input, the sum of those of its parts. NaN or inf, with a warning, where the
        number of elements is at most correction.

    Raises:
        RuntimeError: input is of an integer type; and where :func:`torch_reduce.sum` raises it.
        IndexError, NotImplementedError: as :func:`torch_reduce.sum`.

    The argument ``unbiased`` of torch.var is ``correction=int(unbiased)`` here.
    """
    result: torch.Tensor
    if out is not None:
        result = _ops.var.out(input, dim, correction=correction, keepdim=keepdim, out=out)
    else:
        result = _ops.var(input, dim, correction=correction, keepdim=keepdim)
    return result


def std(
    input: torch.Tensor,
    dim: Dim = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The standard deviation, :func:`torch.std`: the square root of :func:`var`, of which it takes the arguments."""
    result: torch.Tensor
    if out is not None:
        result = _ops.std.out(input, dim, correction=correction, keepdim=keepdim, out=out)
    else:
        result = _ops.std(input, dim, correction=correction, keepdim=keepdim)
    return result


def var_mean(
    input: torch.Tensor,
    dim: Dim = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    out: Pair | None = None,
) -> Pair:
    """The variance and the mean, of input's type, in one pass: :func:`torch.var_mean`. Takes what :func:`var` takes."""
    arguments = {"correction": correction, "keepdim": keepdim}
    if out is not None:
        first, second = _ops.var_mean.out(input, dim, **arguments, out0=out[0], out1=out[1])
    else:
        first, second = _ops.var_mean(input, dim, **arguments)
    return first, second


def std_mean(
    input: torch.Tensor,
    dim: Dim = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    out: Pair | None = None,
) -> Pair:
    """The standard deviation and the mean: :func:`torch.std_mean`. Takes what :func:`var` takes."""
    arguments = {"correction": correction, "keepdim": keepdim}
    if out is not None:
        first, second = _ops.std_mean.out(input, dim, **arguments, out0=out[0], out1=out[1])
    else:
        first, second = _ops.std_mean(input, dim, **arguments)
    return first, second
