"""The batching rule of torch.vmap: the batch dim is one more kept dim of a single call."""

from __future__ import annotations

from typing import Any

import torch


def batched_dims(dim: list[int] | None, dims: int) -> list[int] | None:
    """Where the dims named for an example of so many dims are in a batch that has the batch dim first.

    A 0-d example counts as 1-d, as it does for the operator. None if a dim is out of range or named twice.
    """
    bound = max(dims, 1)
    named = dim or range(bound)
    wrapped = {d % bound for d in named if -bound <= d < bound}
    return [d + 1 for d in sorted(wrapped)] if len(wrapped) == len(named) else None


def batched_sum(
    info: Any,
    in_dims: tuple[Any, ...],
    self: torch.Tensor,
    dim: list[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    accumulate: str | None = None,
) -> tuple[torch.Tensor, int]:
    """gpureduce::sum of a batch, which comes first in the result."""
    batch = self.movedim(in_dims[0], 0)
    dims = batch.dim() - 1
    reduced = batched_dims(dim, dims)
    if reduced is None:  # have the operator say what is wrong, in the terms of one example
        batch, reduced = batch.new_empty(batch.shape[1:], device="meta"), dim
    elif dims == 0:  # a batch of scalars: there is nothing to add, and dim=[] would mean all
        batch, keepdim = batch.unsqueeze(1), False
    return torch.ops.gpureduce.sum(batch, reduced, keepdim, dtype=dtype, accumulate=accumulate), 0


torch.library.register_vmap("gpureduce::sum", batched_sum)
