"""Means, sums without NaN, sums of squares and products."""

from __future__ import annotations

import torch

from .ops import Dim

_ops = torch.ops.gpureduce


def mean(
    input: torch.Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    accumulate: str | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The mean over the given dims: :func:`torch.mean`, as the sum of :func:`torch_reduce.sum` divided once.

    The sum stays in its accumulator (float32 for 16-bit floats), so a mean overflows only where the mean itself does.

    Args:
        input: floating point or complex; integers and bool with a dtype, to which they are converted first.
        dim, keepdim, accumulate, out: as for :func:`torch_reduce.sum`.
        dtype: the result's type, floating point or complex. By default the input's.

    Returns:
        The means. The mean of no elements is NaN.

    Raises:
        RuntimeError: the type of input, or dtype, is an integer; and where :func:`torch_reduce.sum` raises it.
        IndexError, ValueError, NotImplementedError: as :func:`torch_reduce.sum`.
    """
    result: torch.Tensor
    if out is not None:
        result = _ops.mean.out(input, dim, keepdim, dtype=dtype, accumulate=accumulate, out=out)
    elif dtype is not None or accumulate is not None:
        result = _ops.mean(input, dim, keepdim, dtype=dtype, accumulate=accumulate)
    else:
        result = _ops.mean(input, dim, keepdim)
    return result


def nansum(
    input: torch.Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    accumulate: str | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The sum over the given dims of the elements that are not NaN: :func:`torch.nansum`.

    Takes and raises what :func:`torch_reduce.sum` does; of integers it is the same. Complex input is a RuntimeError, as
    for torch. The gradient of a NaN is 0, whatever the result's is.
    """
    result: torch.Tensor
    if out is not None:
        result = _ops.nansum.out(input, dim, keepdim, dtype=dtype, accumulate=accumulate, out=out)
    else:
        result = _ops.nansum(input, dim, keepdim, dtype=dtype, accumulate=accumulate)
    return result


def nanmean(
    input: torch.Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    accumulate: str | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The mean over the given dims of the elements that are not NaN, in one pass: :func:`torch.nanmean`.

    Takes what :func:`mean` does, but input has to be of a real floating point type. NaN where a row has no other
    elements.
    """
    result: torch.Tensor
    if out is not None:
        result = _ops.nanmean.out(input, dim, keepdim, dtype=dtype, accumulate=accumulate, out=out)
    else:
        result = _ops.nanmean(input, dim, keepdim, dtype=dtype, accumulate=accumulate)
    return result


def sumsq(
    input: torch.Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    accumulate: str | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The sum over the given dims of abs(input)**2, in one pass and without a tensor of squares.

    Takes and raises what :func:`torch_reduce.sum` does. Real for complex input. Integers are squared in int64, where
    ``input.square().sum()`` squares them in their own type.
    """
    result: torch.Tensor
    if out is not None:
        result = _ops.sumsq.out(input, dim, keepdim, dtype=dtype, accumulate=accumulate, out=out)
    else:
        result = _ops.sumsq(input, dim, keepdim, dtype=dtype, accumulate=accumulate)
    return result


def prod(
    input: torch.Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The product over the given dims: :func:`torch.prod`, which takes one dim, for any number of them.

    Args:
        input, dim, keepdim, out: as for :func:`torch_reduce.sum`.
        dtype: the result's type, to which elements are converted first. By default int64 (wrapping) for integers and
            bool, else the input's. 16-bit floats are multiplied in float32.

    Returns:
        The products. The product of no elements is 1.

    Raises:
        IndexError, RuntimeError, NotImplementedError: as :func:`torch_reduce.sum`.

    Its gradient does not divide, so it is right where elements are 0.
    """
    result: torch.Tensor
    if out is not None:
        result = _ops.prod.out(input, dim, keepdim, dtype=dtype, out=out)
    else:
        result = _ops.prod(input, dim, keepdim, dtype=dtype)
    return result
