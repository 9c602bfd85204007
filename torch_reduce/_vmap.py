"""The batching rules of torch.vmap: the batch dim is one more kept dim of a single call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

_ops = torch.ops.gpureduce

# Operators without a dim, or where no dim means the index in all of a tensor: the same over some dims of a batch.
WHOLE = {_ops.max.default: _ops.amax.default, _ops.min.default: _ops.amin.default}
FLAT = (_ops.argmax.default, _ops.argmin.default, _ops.aminmax.default)
EMPTY_IS_NONE = (_ops.any.default, _ops.all.default)


def batched_dims(dim: Sequence[int] | None, dims: int) -> list[int] | None:
    """Where the dims named for an example of so many dims are in a batch that has the batch dim first.

    A 0-d example counts as 1-d, as it does for the operator. None if a dim is out of range or named twice.
    """
    bound = max(dims, 1)
    named = dim or range(bound)
    wrapped = {d % bound for d in named if -bound <= d < bound}
    return [d + 1 for d in sorted(wrapped)] if len(wrapped) == len(named) else None


def with_batch(result: Any) -> tuple[Any, Any]:
    """The results of a batched call, each with the batch first."""
    return (result, 0) if isinstance(result, torch.Tensor) else (tuple(result), (0,) * len(result))


def batching_rule(op: OpOverload) -> Callable[..., tuple[Any, Any]]:
    """The rule of an operator: arguments as its schema has them, defaults possibly left out."""
    names = [argument.name for argument in op._schema.arguments if not argument.kwarg_only]

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        given = dict(zip(names, args, strict=False)) | kwargs
        batch = given.pop("self").movedim(in_dims[0], 0)
        dims = batch.dim() - 1
        if op in WHOLE:
            batch = batch if dims else batch.unsqueeze(1)
            return with_batch(WHOLE[op](batch, list(range(1, batch.dim()))))
        defaults = {argument.name: argument.default_value for argument in op._schema.arguments}
        dim = given.pop("dim", defaults["dim"])
        if op in EMPTY_IS_NONE and dim is not None and len(dim) == 0:
            return with_batch(op(batch, dim=dim, **given))
        if op in FLAT and dim is None:
            return flat_call(op, batch, dims, **given)
        one = isinstance(dim, int)
        reduced = batched_dims([dim] if one else dim, dims)
        if reduced is None:  # have the operator say what is wrong, in the terms of one example
            batch, reduced = batch.new_empty(batch.shape[1:], device="meta"), [dim] if one else list(dim)
        elif dims == 0:  # a batch of scalars: rows of one element
            batch, given["keepdim"] = batch.unsqueeze(1), False
        return with_batch(op(batch, dim=reduced[0] if one else reduced, **given))

    return rule


def flat_call(op: OpOverload, batch: torch.Tensor, dims: int, keepdim: bool = False) -> tuple[Any, Any]:
    """An operator of one dim, over all dims of each example."""
    rows = batch.flatten(1) if dims else batch.unsqueeze(1)
    result = op(rows, dim=1)
    shape = batch.shape[:1] + (1,) * (dims if keepdim else 0)
    if isinstance(result, torch.Tensor):
        return with_batch(result.view(shape))
    return with_batch([each.view(shape) for each in result])


for _name in torch._C._dispatch_get_all_op_names():
    _base, _, _overload = _name.removeprefix("gpureduce::").partition(".")
    if _name.startswith("gpureduce::") and not _base.startswith("_"):
        _op = getattr(getattr(_ops, _base), _overload or "default")
        _tensors = [a.name for a in _op._schema.arguments if "Tensor" in str(a.type)]
        # Those of several tensors have rules of their own; the overloads with out= have none, as torch's.
        if _tensors == ["self"]:
            torch.library.register_vmap(_name, batching_rule(_op))
