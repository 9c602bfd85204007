"""The one list of benchmark cases (cases.json, the rules of the heat map and of the operators) and their inputs."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch

from bench.operators import OPERATORS, Operator, result_dtype

LAYOUTS = ("contiguous", "channels_last", "transposed", "sliced")
QUICK = (0, 3, 6, 13, 16, 20, 24, 36, 47)  # indices into the grid: one case of each kind
SUITES = ("grid", "full", "models", "quick", "heatmap", "accumulate", "ops")
HEATMAP_EXPONENTS = range(0, 25, 2)  # of the rows and of the columns
HEATMAP_TOTAL = range(10, 29)  # of the elements: 1 Ki to 256 Mi
OPS_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None]] = {
    "full": ((1 << 28,), None),
    "rows": ((131072, 1024), (1,)),
    "columns": ((8192, 16384), (0,)),
    "small": ((1000000,), None),
    "small rows": ((4096, 1024), (1,)),
}
OPS_SMALL = ("norm(2)", "argmax", "var", "logsumexp")  # measured on the small shapes too, in float32
OPS_BOOL = ("any", "all", "count_nonzero")  # measured in bool too
OPS_GRID = ("mean", "amax", "argmax", "prod", "norm(2)", "var", "logsumexp", "sumsq")  # in float32, columns in bfloat16
HEATMAPS = {"float32": (torch.float32, 0), "bfloat16": (torch.bfloat16, 0), "float32-odd": (torch.float32, 1)}


@dataclass(frozen=True)
class Case:
    """op(x, dim) for one shape, dtype and memory layout; dim None reduces all."""

    shape: tuple[int, ...]
    dim: tuple[int, ...] | None
    dtype: torch.dtype
    layout: str = "contiguous"
    source: str = ""  # the model and layer that the shape comes from
    op: str = "sum"  # of operators.OPERATORS

    @property
    def operator(self) -> Operator:
        return OPERATORS[self.op]

    @property
    def name(self) -> str:
        op = "" if self.op == "sum" else f"{self.op} "
        dims = "all" if self.dim is None else "dim " + ",".join(map(str, self.dim))
        layout = "" if self.layout == "contiguous" else f" {self.layout}"
        return f"{op}{'x'.join(map(str, self.shape))} {dims} {str(self.dtype).removeprefix('torch.')}{layout}"

    @property
    def dims(self) -> list[int]:
        return list(range(len(self.shape))) if self.dim is None else list(self.dim)

    @property
    def argument(self) -> list[int] | None:
        """The dims as a call names them."""
        return None if self.dim is None and self.operator.all_dims else self.dims

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def outputs(self) -> int:
        return math.prod(size for i, size in enumerate(self.shape) if i not in self.dims)

    @property
    def inputs(self) -> tuple[object, ...]:
        """What the inputs depend on."""
        return self.shape, self.dim, self.dtype, self.layout, self.operator.operands, self.operator.data

    @property
    def result_dtypes(self) -> list[torch.dtype]:
        return [result_dtype(kind, self.dtype) for kind in self.operator.results]

    @property
    def bytes_in(self) -> int:
        """Bytes of memory that a pure read of the inputs touches; a slice touches the gaps too."""
        gaps = (self.shape[-1] + 1) / self.shape[-1] if self.layout == "sliced" else 1
        return round(self.numel * gaps) * self.operator.operands * self.dtype.itemsize

    @property
    def bytes_out(self) -> int:
        return self.outputs * sum(dtype.itemsize for dtype in self.result_dtypes)

    @property
    def bytes(self) -> int:
        return self.bytes_in + self.bytes_out


def load(suite: str) -> list[Case]:
    """The cases of a suite.

    grid: one case of each kind; full: its full sums; quick: a few of it; models: shapes of real networks; heatmap:
    matrices of every form; accumulate: large sums, for the modes of accumulation; ops: all the other operators.
    """
    if suite == "ops":
        return operator_cases()
    if suite == "heatmap":
        return [case for name in HEATMAPS for case in heatmap(name)]
    lists = json.loads(Path(__file__).with_name("cases.json").read_text())
    cases = [_parse(entry) for entry in lists[suite if suite in lists else "grid"]]
    if suite == "full":
        return [case for case in cases if case.dim is None]
    return [cases[i] for i in QUICK] if suite == "quick" else cases


def heatmap(name: str) -> list[Case]:
    """Matrices of 2^i rows and 2^j columns, or 2^j + 1 for an odd map, over both dims; the map's name is the source."""
    dtype, extra = HEATMAPS[name]
    pairs = itertools.product((0, 1), HEATMAP_EXPONENTS, HEATMAP_EXPONENTS)
    return [
        Case((1 << i, (1 << j) + extra), (dim,), dtype, source=name) for dim, i, j in pairs if i + j in HEATMAP_TOTAL
    ]


def operator_cases() -> list[Case]:
    """Every operator but sum on every shape that it takes; cases of one shape and dtype, and then of one kind of data,
    stand together, so that they can share their inputs. "grid" is the source of one case of each kind of operator.
    """
    found = []
    for form, dtype in itertools.product(OPS_SHAPES, (torch.float32, torch.bfloat16, torch.bool)):
        shape, dim = OPS_SHAPES[form]
        for op in sorted(
            filter(lambda op: _is_measured(op, form, dtype), OPERATORS), key=lambda op: OPERATORS[op].data
        ):
            usual = torch.bfloat16 if form == "columns" else torch.float32
            in_grid = "small" not in form and (
                (op in OPS_GRID and dtype == usual) or (op, dtype) == ("any", torch.bool)
            )
            found.append(Case(shape, dim, dtype, source="grid" if in_grid else "", op=op))
    return found


def _is_measured(op: str, form: str, dtype: torch.dtype) -> bool:
    if "small" in form:
        return op in OPS_SMALL and dtype == torch.float32
    return op != "sum" and form in OPERATORS[op].shapes and (dtype != torch.bool or op in OPS_BOOL)


def _parse(entry: dict[str, object]) -> Case:
    shape, dim = entry["shape"], entry["dim"]
    assert isinstance(shape, list) and (dim is None or isinstance(dim, list))
    layout = str(entry.get("layout", "contiguous"))
    if layout not in LAYOUTS:
        raise ValueError(f"cases.json: layout {layout!r} is none of {LAYOUTS}")
    dtype = getattr(torch, str(entry["dtype"]))
    return Case(tuple(shape), None if dim is None else tuple(dim), dtype, layout, str(entry.get("from", "")))


def random_values(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    """Normal numbers, small integers or bits."""
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=dtype, device=device)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, dtype=torch.uint8, device=device).view(torch.bool)
    return torch.randint(-128, 128, shape, dtype=dtype, device=device)


def make_input(case: Case, device: str) -> torch.Tensor:
    """Fresh random data of the case's shape in its layout, of the kind that its operator wants; two operands as one."""
    shape = case.shape
    if case.operator.operands > 1:
        return random_values((case.operator.operands, *shape), case.dtype, device)
    if case.operator.data != "normal":
        return special_values(case, device)
    if case.layout == "transposed":
        return random_values((*shape[:-2], shape[-1], shape[-2]), case.dtype, device).transpose(-1, -2)
    if case.layout == "sliced":
        return random_values((*shape[:-1], shape[-1] + 1), case.dtype, device)[..., :-1]
    x = random_values(shape, case.dtype, device)
    return x.contiguous(memory_format=torch.channels_last) if case.layout == "channels_last" else x


def special_values(case: Case, device: str) -> torch.Tensor:
    """holes: 1 of 16 is NaN; half: half are zero; rare: zero but the last of every second reduced row; usual: one, but
    for these; factors: see there.
    """
    kind = case.operator.data
    if kind in ("rare", "usual"):
        x = torch.full(case.shape, kind == "usual", dtype=case.dtype, device=device)
        x[tuple(-1 if i in case.dims else slice(None, None, 2) for i in range(len(case.shape)))] = kind == "rare"
        return x
    if kind == "factors":
        return factors(case, device)
    share, value = (1 / 16, math.nan) if kind == "holes" else (1 / 2, 0)
    x = random_values(case.shape, case.dtype, device)
    return x.masked_fill_(torch.rand(case.shape, device=device) < share, value)


def factors(case: Case, device: str) -> torch.Tensor:
    """Numbers near 1 whose product neither overflows nor underflows, whatever is multiplied first.

    Signs are random. Magnitudes are a = 1 + 2^-7, b = 1 - 2^-8, which every dtype has, or 1; a and b in proportions
    that make the mean of the logarithm 0. At most 2^14 of a product's factors, as expected, are not +-1: its logarithm
    then has a standard deviation of at most 2^7 * sqrt(2^-14 / 3 + 2^-16 * 2 / 3) = 0.7; and as multiplying by +-1 is
    exact, at most that many products are rounded: the bound of reference.py stays below the 2^-8 that a factor makes.
    """
    a, b = 1 + 2.0**-7, 1 - 2.0**-8
    share = min(0.5, 2**14 * case.outputs / case.numel)
    share_a = share * -math.log(b) / (math.log(a) - math.log(b))
    uniform = torch.rand(case.shape, device=device) * 2
    negative = uniform >= 1
    uniform -= negative.float()
    x = torch.ones(case.shape, dtype=case.dtype, device=device)
    x.masked_fill_(uniform < share, b).masked_fill_(uniform < share_a, a)
    return torch.where(negative, -x, x)
