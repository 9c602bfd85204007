"""Sums of products of two tensors."""

from __future__ import annotations

import torch

_vecdot = torch.ops.gpureduce.vecdot
_vecdot_out = torch.ops.gpureduce.vecdot.out
_dot = torch.ops.gpureduce.dot
_dot_out = torch.ops.gpureduce.dot.out


def vecdot(
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    dim: int = -1,
    accumulate: str | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The sum of conj(x) * y over one dim, with the same bits on every device, batch and run.

    Does what :func:`torch.linalg.vecdot` does, without a temporary: inputs that broadcast, and inputs of any strides,
    are read where they are. Products are rounded in the type that they are added in: exact for float16 and bfloat16.
    In which order they meet depends on their index, their type and the layout's family, which is that of x; of y,
    where x is the same along all dims that stay.

    Args:
        x, y: dense tensors of one floating point or complex type, on one device, whose sizes broadcast.
        dim: the dim of the broadcast inputs that is reduced, negative ones counting from the end.
        accumulate: as for :func:`sum`. "compensated" includes the rounding errors of the products.
        out: a tensor of the inputs' type to write the result into. Nothing may require a gradient.

    Returns:
        A new contiguous tensor of the broadcast sizes without `dim`, of the inputs' type.

    Raises:
        IndexError: dim is out of range.
        RuntimeError: the types or devices differ, the sizes do not broadcast, or the type is an integer one.
        ValueError: accumulate is none of the above.

    Different from torch: two 1-d inputs may broadcast, too.

    Example:
        >>> torch_reduce.vecdot(torch.ones(2, 3), torch.arange(3.0))
        tensor([3., 3.])
    """
    result: torch.Tensor
    if out is not None:
        result = _vecdot_out(x, y, dim=dim, accumulate=accumulate, out=out)
    else:
        result = _vecdot(x, y, dim=dim, accumulate=accumulate)
    return result


def dot(input: torch.Tensor, tensor: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """The sum of input * tensor of two 1-d tensors, with the same bits on every device and run; nothing is conjugated.

    Does what :func:`torch.dot` does, for integers, too, whose products and sums wrap.

    Example:
        >>> torch_reduce.dot(torch.tensor([2, 3]), torch.tensor([2, 1]))
        tensor(7)
    """
    result: torch.Tensor = _dot(input, tensor) if out is None else _dot_out(input, tensor, out=out)
    return result
