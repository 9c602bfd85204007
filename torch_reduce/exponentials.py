"""Logarithms of sums of exponentials, and what a softmax needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

_ops = torch.ops.gpureduce


class SoftmaxStats(NamedTuple):
    """What :func:`softmax_stats` returns."""

    maximum: torch.Tensor
    sum: torch.Tensor


def logsumexp(
    input: torch.Tensor, dim: int | Sequence[int], keepdim: bool = False, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """log(sum(exp(input))) over the given dims: :func:`torch.logsumexp`, in one pass.

    By rescaling as the maximum grows (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).

    Args:
        input: of any type; integers and bool count as of the default floating point type.
        dim: the dim or dims; an empty sequence means all (torch.logsumexp raises for it without keepdim).
        keepdim: whether reduced dims stay with size 1.
        out: of any type that the result can be cast to.

    Returns:
        Of input's type. -inf for no elements, and for only -inf, where the gradient is 0.

    Raises:
        IndexError, RuntimeError, NotImplementedError: as :func:`torch_reduce.sum`.
    """
    result: torch.Tensor
    result = _ops.logsumexp(input, dim, keepdim) if out is None else _ops.logsumexp.out(input, dim, keepdim, out=out)
    return result


def softmax_stats(
    input: torch.Tensor, dim: int = -1, keepdim: bool = False, *, out: tuple[torch.Tensor, torch.Tensor] | None = None
) -> SoftmaxStats:
    """The maximum m and the sum of exp(input - m) over a dim, in one pass: what a softmax or a cross-entropy needs.

    softmax(x) is ``exp(x - m) / s``, logsumexp(x) is ``m + log(s)``.

    Args:
        input: real. dim: one dim. keepdim: whether it stays with size 1.

    Returns:
        Two tensors of input's type; float32 for 16-bit floats, the default floating point type for integers and bool.

    Raises:
        IndexError: dim is out of range.
        NotImplementedError: input is complex, or of a type that has no kernel.
    """
    if out is not None:
        return SoftmaxStats(*_ops.softmax_stats.out(input, dim, keepdim, maximum=out[0], sum=out[1]))
    return SoftmaxStats(*_ops.softmax_stats(input, dim, keepdim))
