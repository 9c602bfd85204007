"""The least and the greatest elements, and where they are."""

from __future__ import annotations

from typing import Any, NamedTuple, overload

import torch

from .ops import Dim

_ops = torch.ops.gpureduce

Pair = tuple[torch.Tensor, torch.Tensor]


class Extremes(NamedTuple):
    """What :func:`aminmax` returns."""

    min: torch.Tensor
    max: torch.Tensor


class Extreme(NamedTuple):
    """What :func:`max` and :func:`min` return over one dim."""

    values: torch.Tensor
    indices: torch.Tensor


def amax(input: torch.Tensor, dim: Dim = (), keepdim: bool = False, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """The greatest elements over the given dims: :func:`torch.amax`.

    NaN where a row has one. Of zeros, +0.0 counts as greater than -0.0. The gradient is shared by all elements that
    equal the result, as torch does.

    Args:
        input: of any type but complex.
        dim: the dim or dims; None and an empty sequence mean all. (torch.ops.gpureduce.amax takes no None.)
        keepdim, out: as for :func:`torch_reduce.sum`; out has to be of input's type.

    Raises:
        IndexError: a dim is out of range, or a named dim has no elements.
        RuntimeError: all dims are reduced and one has no elements, or a dim is named twice.
        NotImplementedError: input is complex, or of a type that has no kernel.
    """
    result: torch.Tensor
    dim = () if dim is None else dim
    result = _ops.amax(input, dim, keepdim) if out is None else _ops.amax.out(input, dim, keepdim, out=out)
    return result


def amin(input: torch.Tensor, dim: Dim = (), keepdim: bool = False, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """The least elements over the given dims: :func:`torch.amin`. As :func:`amax` in everything else."""
    result: torch.Tensor
    dim = () if dim is None else dim
    result = _ops.amin(input, dim, keepdim) if out is None else _ops.amin.out(input, dim, keepdim, out=out)
    return result


def aminmax(input: torch.Tensor, *, dim: int | None = None, keepdim: bool = False, out: Pair | None = None) -> Extremes:
    """The least and the greatest elements over a dim, or over all, in one pass: :func:`torch.aminmax`.

    Takes and raises what :func:`amax` does, for one dim. Both are NaN where a row has one.
    """
    if out is not None:
        return Extremes(*_ops.aminmax.out(input, dim=dim, keepdim=keepdim, min=out[0], max=out[1]))
    return Extremes(*_ops.aminmax(input, dim=dim, keepdim=keepdim))


@overload
def max(
    input: torch.Tensor, dim: None = ..., keepdim: bool = ..., *, out: torch.Tensor | None = ...
) -> torch.Tensor: ...
@overload
def max(input: torch.Tensor, dim: int, keepdim: bool = ..., *, out: Pair | None = ...) -> Extreme: ...
def max(
    input: torch.Tensor, dim: int | None = None, keepdim: bool = False, *, out: torch.Tensor | Pair | None = None
) -> torch.Tensor | Extreme:
    """The greatest of all elements, or over a dim the greatest and their indices in one pass: :func:`torch.max`.

    Of equal elements the first counts; of NaNs the first, too. The gradient goes to the element of the index, and
    without a dim is shared, as torch does. torch.max of two tensors is :func:`torch.maximum`, and not here.

    Raises:
        IndexError: dim is out of range or has no elements.
        RuntimeError: input is complex, or without a dim has no elements.
    """
    if dim is None:
        return _whole(_ops.max, input, keepdim, out)
    return _by_dim(_ops.max.dim, _ops.max.dim_max, input, dim, keepdim, out)


@overload
def min(
    input: torch.Tensor, dim: None = ..., keepdim: bool = ..., *, out: torch.Tensor | None = ...
) -> torch.Tensor: ...
@overload
def min(input: torch.Tensor, dim: int, keepdim: bool = ..., *, out: Pair | None = ...) -> Extreme: ...
def min(
    input: torch.Tensor, dim: int | None = None, keepdim: bool = False, *, out: torch.Tensor | Pair | None = None
) -> torch.Tensor | Extreme:
    """The least of all elements, or over a dim the least and their indices: :func:`torch.min`. Else as :func:`max`."""
    if dim is None:
        return _whole(_ops.min, input, keepdim, out)
    return _by_dim(_ops.min.dim, _ops.min.dim_min, input, dim, keepdim, out)


def _whole(op: Any, input: torch.Tensor, keepdim: bool, out: Any) -> torch.Tensor:
    if keepdim:
        raise TypeError(f"gpureduce::{op.__name__}: keepdim needs a dim")
    result: torch.Tensor = op(input) if out is None else op.unary_out(input, out=out)
    return result


def _by_dim(op: Any, op_out: Any, input: torch.Tensor, dim: int, keepdim: bool, out: Any) -> Extreme:
    if out is None:
        return Extreme(*op(input, dim, keepdim))
    return Extreme(*op_out(input, dim, keepdim, values=out[0], indices=out[1]))


def argmax(
    input: torch.Tensor, dim: int | None = None, keepdim: bool = False, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """The index of the greatest element over a dim, or of all in row-major order: :func:`torch.argmax`.

    int64. Of equal elements the first counts, on every device; the first NaN counts as the greatest.

    Raises:
        IndexError: dim is out of range, or there are no elements to choose from.
        RuntimeError: input is complex or bool.
    """
    result: torch.Tensor
    result = _ops.argmax(input, dim, keepdim) if out is None else _ops.argmax.out(input, dim, keepdim, out=out)
    return result


def argmin(
    input: torch.Tensor, dim: int | None = None, keepdim: bool = False, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """The index of the least element: :func:`torch.argmin`. As :func:`argmax` in everything else."""
    result: torch.Tensor
    result = _ops.argmin(input, dim, keepdim) if out is None else _ops.argmin.out(input, dim, keepdim, out=out)
    return result
