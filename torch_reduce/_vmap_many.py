"""The batching rules of the operators that take several tensors."""

from __future__ import annotations

from typing import Any

import torch


def batched_total_norm(
    info: Any, in_dims: tuple[Any, ...], tensors: list[torch.Tensor], ord: float = 2
) -> tuple[torch.Tensor, int]:
    """gpureduce::total_norm of each example: norms of rows, then the norm of these."""
    batch = info.batch_size
    norms = []
    for tensor, dim in zip(tensors, in_dims[0], strict=True):
        rows = tensor.expand(batch, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        norms.append(torch.linalg.vector_norm(rows.reshape(batch, -1), ord, 1))
    stacked = torch.stack(norms)
    return (stacked.sum(0) if ord == 0 else torch.linalg.vector_norm(stacked, ord, 0)), 0


torch.library.register_vmap("gpureduce::total_norm", batched_total_norm)
