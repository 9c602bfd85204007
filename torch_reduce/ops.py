"""The public functions, documented; the operators themselves are torch.ops.gpureduce.*."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch

Dim = int | Sequence[int] | None

_sum = torch.ops.gpureduce.sum
_sum_out = torch.ops.gpureduce.sum.out


def sum(
    input: torch.Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    accumulate: str | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """The sum of a tensor's elements over the given dims, with the same bits on every device, batch and run.

    Does what :func:`torch.sum` does, and is differentiable in the same ways. In which order the elements of a row meet
    depends on nothing but their index in it, their type and the layout's family, so a result has the same bits on the
    CPU and on any GPU, alone or in a batch of any size, eager, compiled or replayed from a CUDA graph.

    Args:
        input: a dense CPU or CUDA tensor of up to 64 dims and any strides; it is never copied to make it contiguous.
            float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, bool, complex64 or complex128.
        dim: the dim or dims to reduce, negative ones counting from the end. None and an empty sequence mean all.
        keepdim: whether reduced dims stay in the result with size 1.
        dtype: the result's type. By default int64 for integers and bool, else the input's. The elements are summed in a
            type that holds them exactly; only where dtype cannot hold them are they converted first, one by one.
        accumulate: how to add. None: float16, bfloat16 and float32 in float32, float64 in float64, integers exactly
            (int64, wrapping), complex in its parts. "compensated": with a second number that catches each addition's
            rounding error. "double": in float64. On a GPU whose memory is the limit both cost a few percent, for 16-bit
            columns more (the README's table); on the CPU they cost more.
        out: a tensor to write the result into, of any strides; without dtype, its type is the result's. It is resized
            where it has another size, with a warning if it has elements. Nothing may require a gradient.

    Returns:
        A new contiguous tensor of input's sizes without the reduced dims, or with 1 in their place; or out, if given.
        An empty sum is 0.

    Raises:
        IndexError: a dim is out of range.
        RuntimeError: a dim is named twice, input has more than 64 dims, or out is on another device, not of type dtype,
            or shares memory with input or within itself.
        ValueError: accumulate is none of the above.
        NotImplementedError: a dtype, layout or device has no kernel.

    The error of a sum of n elements is at most depth * eps * sum(abs(input)), eps being that of the type added in and
    depth the longest chain of additions: about log2(n), as :func:`explain` shows.

    Example:
        >>> x = torch.arange(6.0).reshape(2, 3)
        >>> torch_reduce.sum(x, dim=1)
        tensor([ 3., 12.])
    """
    result: torch.Tensor
    if out is not None:
        result = _sum_out(input, dim, keepdim, dtype=dtype, accumulate=accumulate, out=out)
    elif dtype is not None or accumulate is not None:
        result = _sum(input, dim, keepdim, dtype=dtype, accumulate=accumulate)
    else:  # a keyword costs more than an argument
        result = _sum(input, dim, keepdim)
    return result


def explain_dict(
    input: torch.Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    accumulate: str | None = None,
    op: str = "sum",
    sms: int = 0,
) -> dict[str, Any]:
    """The plan and the tree behind :func:`explain`, by name; for a GPU of `sms` multiprocessors where that is not 0."""
    text = torch.ops.gpureduce._explain(input, dim, keepdim, dtype=dtype, accumulate=accumulate, sms=sms, op=op)
    fields: dict[str, Any] = json.loads(text)
    return fields


def explain(
    input: torch.Tensor,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    accumulate: str | None = None,
    op: str = "sum",
) -> str:
    """How a call is computed, as text: the tree, which fixes the bits, and the launch, which does not.

    Takes what :func:`sum` takes and raises what it raises; a meta tensor will do. `op` is the operator's name,
    "max.dim" that of max over a dim. For a tensor that is not on a GPU, the launch shown is the one for a GPU of 132
    multiprocessors.

    Example:
        >>> print(torch_reduce.explain(torch.ones(2, 3), dim=1))
    """
    return describe(explain_dict(input, dim, keepdim, dtype=dtype, accumulate=accumulate, op=op))


def describe(f: dict[str, Any]) -> str:
    """The text of :func:`explain` from its fields."""
    unit = "elements" if f["family"] == "row" else "rows"
    lines = [
        f"{f['op']} of {f['outputs']:,} x {f['n']:,} {f['in']} -> {f['out']}, accumulate {f['accumulate']}",
        "tree, the same everywhere:",
        f"  {f['family']} family, version {f['tree_version']}",
        f"  {f['leaves']:,} leaves of up to {f['leaf_elements']} {unit}, under one perfect binary tree by leaf index",
        f"  depth {f['depth']}: |error| <= {f['depth']} * eps * sum(|x|)",
        "launch on a GPU, which changes no bit:",
        f"  path {f['path']}, {f['loader']} loads",
    ]
    if f["path"] != "nothing":
        lines.append(f"  grid {f['grid_x']:,} x {f['grid_y']:,} blocks of {f['threads']} threads")
    if f["lanes_per_row"]:
        rows = f"{f['tile_rows']} rows a block" if f["tile_rows"] else f"{f['rows_per_group']} rows in flight"
        lines.append(f"  {f['lanes_per_row']} lanes a row, {rows}")
    if f["vector_columns"]:
        lines.append(f"  {f['threads_across']} threads across, {f['vector_columns']} columns a thread")
    if f["chunk_leaves"]:
        lines.append(f"  {f['chunks']:,} chunks of {f['chunk_leaves']:,} leaves")
    if f["mailbox_bytes"]:
        lines.append(f"  blocks join through a mailbox of {f['mailbox_bytes']:,} bytes")
    return "\n".join(lines)
