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


def with_batch_first(tensor: torch.Tensor, in_dim: int | None, dims: int) -> torch.Tensor:
    """Of so many dims behind the batch dim, which has size 1 where the tensor is not batched."""
    tensor = tensor.unsqueeze(0) if in_dim is None else tensor.movedim(in_dim, 0)
    return tensor.reshape(tensor.shape[0], *[1] * (dims + 1 - tensor.dim()), *tensor.shape[1:])


def batched_vecdot(
    info: Any,
    in_dims: tuple[int | None, ...],
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    dim: int = -1,
    accumulate: str | None = None,
) -> tuple[torch.Tensor, int]:
    """gpureduce::vecdot of a batch, which comes first in the result."""
    own = [t.dim() - (in_dim is not None) for t, in_dim in zip((x, y), in_dims, strict=False)]
    dims = max(own)
    if not -max(dims, 1) <= dim < max(dims, 1):  # have the operator say what is wrong, in the terms of one example
        x, y = (t.new_empty([1] * count, device="meta") for t, count in zip((x, y), own, strict=True))
        return torch.ops.gpureduce.vecdot(x, y, dim=dim, accumulate=accumulate), 0
    x, y = (with_batch_first(t, in_dim, max(dims, 1)) for t, in_dim in zip((x, y), in_dims, strict=False))
    from_end = -1 if dims == 0 else dim - dims if dim >= 0 else dim
    return torch.ops.gpureduce.vecdot(x, y, dim=from_end, accumulate=accumulate), 0


def batched_dot(
    info: Any, in_dims: tuple[int | None, ...], self: torch.Tensor, tensor: torch.Tensor
) -> tuple[torch.Tensor, int]:
    """gpureduce::dot of a batch: vecdot conjugates x, and has no integers."""
    x, y = with_batch_first(self, in_dims[0], 1), with_batch_first(tensor, in_dims[1], 1)
    if x.shape[1] != y.shape[1] or x.dim() != 2 or y.dim() != 2:
        return torch.ops.gpureduce.dot(x[0].to("meta"), y[0].to("meta")), 0
    if x.is_floating_point() or x.is_complex():
        return torch.ops.gpureduce.vecdot(x.conj(), y), 0
    return torch.ops.gpureduce.sum(x * y, 1).to(x.dtype), 0


torch.library.register_vmap("gpureduce::total_norm", batched_total_norm)
torch.library.register_vmap("gpureduce::vecdot", batched_vecdot)
torch.library.register_vmap("gpureduce::dot", batched_dot)
