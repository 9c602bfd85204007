"""Whether elements are not zero, and how many."""

from __future__ import annotations

import torch

from .ops import Dim

_ops = torch.ops.gpureduce


def any(
    input: torch.Tensor, dim: Dim = None, keepdim: bool = False, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Whether a row has an element that is not zero: :func:`torch.any`.

    Args:
        input: of any type; NaN is not zero.
        dim: the dim or dims; None means all, and an empty sequence none, as for torch.
        keepdim: whether reduced dims stay with size 1.
        out: of type bool or uint8.

    Returns:
        bool, of uint8 uint8. False for no elements.

    Raises:
        IndexError, RuntimeError, NotImplementedError: as :func:`torch_reduce.sum`.
    """
    result: torch.Tensor
    result = _ops.any(input, dim, keepdim) if out is None else _ops.any.out(input, dim, keepdim, out=out)
    return result


def all(
    input: torch.Tensor, dim: Dim = None, keepdim: bool = False, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Whether no element of a row is zero: :func:`torch.all`. True for no elements. Else as :func:`any`."""
    result: torch.Tensor
    result = _ops.all(input, dim, keepdim) if out is None else _ops.all.out(input, dim, keepdim, out=out)
    return result


def count_nonzero(
    input: torch.Tensor, dim: Dim = None, keepdim: bool = False, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """How many elements are not zero, in int64: :func:`torch.count_nonzero`, which has no keepdim and no out.

    Takes and raises what :func:`any` does, but an empty sequence of dims means all, as for torch.
    """
    result: torch.Tensor
    if out is not None:
        result = _ops.count_nonzero.out(input, dim, keepdim, out=out)
    else:
        result = _ops.count_nonzero(input, dim, keepdim)
    return result
