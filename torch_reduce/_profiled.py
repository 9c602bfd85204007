"""What runs under ncu: one call of an operator, or of a rung of the ladder, between cudaProfilerStart and Stop."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

import torch_reduce

from . import ladder

RUNG = "ladder:"
NOT_OPERATORS = ("explain", "clip_grad_norm_")


@dataclass(frozen=True)
class Target:
    """What to call: "sum", or "ladder:naive"."""

    op: str
    shape: tuple[int, ...]
    dims: tuple[int, ...] = ()  # none: all, or what the operator takes where no dim is named
    dtype: str = "float32"
    arguments: dict[str, Any] = field(default_factory=dict)  # by keyword

    def encoded(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decoded(cls, text: str) -> Target:
        fields = json.loads(text)
        return cls(**{**fields, "shape": tuple(fields["shape"]), "dims": tuple(fields["dims"])})

    @property
    def bytes_in(self) -> int:
        element = getattr(torch, self.dtype).itemsize
        return int(math.prod(self.shape) * element * operands(self.op))

    def __str__(self) -> str:
        dims = f" over {','.join(map(str, self.dims))}" if self.dims else ""
        more = "".join(f" {name}={value!r}" for name, value in self.arguments.items())
        return f"{self.op} of {'x'.join(map(str, self.shape))} {self.dtype}{dims}{more}"


def operators() -> list[str]:
    return [name for name in torch_reduce.__all__ if name not in NOT_OPERATORS]


def operands(op: str) -> int:
    """How many tensors a call takes: all parameters before the first optional one that are tensors."""
    if op.startswith(RUNG):
        return 1
    parameters = inspect.signature(getattr(torch_reduce, op)).parameters.values()
    return sum(each.default is each.empty and "Tensor" in str(each.annotation) for each in parameters)


def call(target: Target, device: str) -> Callable[[], object]:
    """The call, on inputs that are made now."""
    if target.op.startswith(RUNG):
        return call_of_rung(target, device)
    inputs = [make_input(target, device) for _ in range(operands(target.op))]
    function = getattr(torch_reduce, target.op)
    arguments = dict(target.arguments)
    if target.dims:
        arguments["dim"] = target.dims[0] if len(target.dims) == 1 else list(target.dims)
    if "tensors" in inspect.signature(function).parameters:
        return lambda: function(inputs, **arguments)
    return lambda: function(*inputs, **arguments)


def call_of_rung(target: Target, device: str) -> Callable[[], object]:
    """With the second operand that its kind takes: a square's other matrix, the offsets of rows of 1,000 elements."""
    text = target.op.removeprefix(RUNG)
    kind = next(rung.kind for rung in ladder.rungs() if text in rung.calls)
    x, other = make_input(target, device), None
    if kind == "pipeline":
        x = x.cpu().pin_memory()
    elif kind == "tile":
        other = torch.randn(target.shape[::-1], device=device)
    elif kind == "adaptive":
        other = torch.arange(0, x.numel() + 1, 1000, device=device)
    return lambda: ladder.run(x, text, other)


def make_input(target: Target, device: str) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, target.dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(target.shape, dtype=dtype, device=device)
    return torch.randint(0, 2, target.shape, device=device).to(dtype)


def main(text: str) -> None:
    """Warms up, so that everything that is set up once is there, then calls once for the profiler."""
    run = call(Target.decoded(text), "cuda")
    run()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()  # type: ignore[no-untyped-call]
    run()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(sys.argv[1])
