"""The one table of operators: how each is called, what people write without it, what it gives and promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Result = torch.Tensor | tuple[torch.Tensor, ...]
Dims = list[int] | None
Call = Callable[[Any, torch.Tensor, Dims], Any]  # of torch.ops.gpureduce or torch; x and the dims

REAL = ("float",)
INEXACT = ("float", "complex")
ORDERED = ("float", "integer", "bool")
EVERY = ("float", "complex", "integer", "bool")


@dataclass(frozen=True)
class Operator:
    """An operator as the benchmarks and the README's table know it.

    The name is its function's; variants carry an argument in brackets, and the part before them is the function's.
    """

    name: str
    call: Call
    eager: Callable[[torch.Tensor, Dims], Any] | None = None  # with torch alone, where it has no function of that name
    results: tuple[str, ...] = ("value",)  # the kind of each, see result_dtype
    returns: str = "1"  # the same in words
    gradient: str = "yes"  # "by index": to the element whose index is a result
    dtypes: tuple[str, ...] = INEXACT
    with_dtype: bool = False  # whether the other dtypes are taken too where dtype= is given
    bits: str = "yes"  # whether CPU and CUDA give the same, as tests/test_family_bits.py shows on a GPU
    data: str = "normal"  # see cases.fill
    operands: int = 1  # more: x holds them one behind the other in a new first dim
    all_dims: bool = True  # whether no dims mean all; else they have to be named
    shapes: tuple[str, ...] = ("full", "rows", "columns")  # that it is measured on

    @property
    def function(self) -> str:
        return self.name.partition("(")[0]


def parts(result: Result) -> tuple[torch.Tensor, ...]:
    """The results of a call, however many there are."""
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)


def only(dims: Dims) -> int | None:
    """The dim of a function that takes a single one."""
    return None if dims is None else dims[0]


def result_dtype(kind: str, dtype: torch.dtype) -> torch.dtype:
    """The dtype of a result: of a total, a value or a wide value of that dtype; an index or a count; a truth."""
    if kind in ("index", "count") or (kind == "total" and not (dtype.is_floating_point or dtype.is_complex)):
        return torch.int64
    return torch.bool if kind == "truth" else torch.float32 if kind == "wide" and dtype.itemsize == 2 else dtype


def eager_softmax_stats(x: torch.Tensor, dims: Dims) -> Result:
    """Without a float32 copy of 16-bit x, which would cost more than it takes to be right to 16 bits."""
    assert dims is not None
    wide = result_dtype("wide", x.dtype)
    top = x.amax(dims, keepdim=True)
    return top.squeeze(dims).to(wide), torch.exp(x - top).sum(dims, dtype=wide)


def over_dims(name: str) -> Call:
    """A function that takes a list of dims, or None for all."""
    return lambda space, x, d: getattr(space, name)(x, d)


def over_dim(name: str) -> Call:
    """A function that takes one dim, or None for all."""
    return lambda space, x, d: getattr(space, name)(x, only(d))


def norm(order: float) -> Call:
    """torch has it in another place."""
    return lambda space, x, d: torch.linalg.vector_norm(x, order, d) if space is torch else space.norm(x, order, d)


def prod(space: Any, x: torch.Tensor, dims: Dims) -> Any:
    """torch.prod takes no None."""
    return space.prod(x) if dims is None else space.prod(x, only(dims))


def vecdot(space: Any, x: torch.Tensor, dims: Dims) -> Any:
    """torch has it in another place."""
    return (torch.linalg if space is torch else space).vecdot(x[0], x[1], dim=only(dims))


VALUE_AND_INDEX: dict[str, Any] = {
    "results": ("value", "index"),
    "returns": "2: values, indices; 1 without a dim",
    "gradient": "by index",
    "dtypes": ORDERED,
    "all_dims": False,
}
INDEX: dict[str, Any] = {"results": ("index",), "gradient": "no", "dtypes": ("float", "integer")}
TRUTH: dict[str, Any] = {"results": ("truth",), "gradient": "no", "dtypes": EVERY}
VECTORS: dict[str, Any] = {"operands": 2}

LIST = (
    Operator("sum", over_dims("sum"), results=("total",), dtypes=EVERY),
    Operator("mean", over_dims("mean"), with_dtype=True),
    Operator("nansum", over_dims("nansum"), results=("total",), dtypes=ORDERED, data="holes"),
    Operator("nanmean", over_dims("nanmean"), dtypes=REAL, data="holes"),
    Operator("sumsq", over_dims("sumsq"), lambda x, d: (x * x).sum(d), results=("total",), dtypes=EVERY),
    Operator("prod", prod, results=("total",), dtypes=EVERY, data="factors"),
    Operator("amax", lambda space, x, d: space.amax(x, d or []), dtypes=ORDERED),
    Operator("amin", lambda space, x, d: space.amin(x, d or []), dtypes=ORDERED),
    Operator(
        "aminmax",
        lambda space, x, d: space.aminmax(x, dim=only(d)),
        results=("value", "value"),
        returns="2: min, max",
        dtypes=ORDERED,
    ),
    Operator("max", over_dim("max"), **VALUE_AND_INDEX),
    Operator("min", over_dim("min"), **VALUE_AND_INDEX),
    Operator("argmax", over_dim("argmax"), **INDEX),
    Operator("argmin", over_dim("argmin"), **INDEX),
    Operator("any", over_dims("any"), **TRUTH, data="rare"),
    Operator("all", over_dims("all"), **TRUTH, data="usual"),
    Operator("count_nonzero", over_dims("count_nonzero"), results=("count",), gradient="no", dtypes=EVERY, data="half"),
    Operator("norm(2)", norm(2), bits="with ord 0, 1, 2, inf, -inf"),
    Operator("norm(1)", norm(1)),
    Operator("norm(inf)", norm(math.inf)),
    Operator("var", over_dims("var")),
    Operator("std", over_dims("std")),
    Operator("var_mean", over_dims("var_mean"), results=("value", "value"), returns="2: var, mean"),
    Operator("std_mean", over_dims("std_mean"), results=("value", "value"), returns="2: std, mean"),
    Operator("logsumexp", over_dims("logsumexp"), dtypes=EVERY, bits="yes, not of complex numbers", all_dims=False),
    Operator(
        "softmax_stats",
        over_dim("softmax_stats"),
        eager_softmax_stats,
        results=("wide", "wide"),
        returns="2: maximum, sum",
        dtypes=ORDERED,
        all_dims=False,
    ),
    Operator("vecdot", vecdot, **VECTORS, dtypes=INEXACT, all_dims=False, shapes=("rows", "columns")),
    Operator(
        "dot", lambda space, x, d: space.dot(x[0], x[1]), **VECTORS, dtypes=(*INEXACT, "integer"), shapes=("full",)
    ),
    Operator("total_norm", lambda space, x, d: space.total_norm([x]), shapes=()),  # of lists, so no case of these
)
OPERATORS = {operator.name: operator for operator in LIST}
