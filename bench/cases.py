"""The one list of benchmark cases (cases.json, and the heat map's rule) and the inputs that belong to them."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch

LAYOUTS = ("contiguous", "channels_last", "transposed", "sliced")
QUICK = (0, 3, 6, 13, 16, 20, 24, 36, 47)  # indices into the grid: one case of each kind
SUITES = ("grid", "full", "models", "quick", "heatmap", "accumulate")
HEATMAP_EXPONENTS = range(0, 25, 2)  # of the rows and of the columns
HEATMAP_TOTAL = range(10, 29)  # of the elements: 1 Ki to 256 Mi
HEATMAPS = {"float32": (torch.float32, 0), "bfloat16": (torch.bfloat16, 0), "float32-odd": (torch.float32, 1)}


@dataclass(frozen=True)
class Case:
    """sum(x, dim) for one shape, dtype and memory layout; dim None is the full sum."""

    shape: tuple[int, ...]
    dim: tuple[int, ...] | None
    dtype: torch.dtype
    layout: str = "contiguous"
    source: str = ""  # the model and layer that the shape comes from

    @property
    def name(self) -> str:
        dims = "all" if self.dim is None else "dim " + ",".join(map(str, self.dim))
        layout = "" if self.layout == "contiguous" else f" {self.layout}"
        return f"{'x'.join(map(str, self.shape))} {dims} {str(self.dtype).removeprefix('torch.')}{layout}"

    @property
    def dims(self) -> list[int]:
        return list(range(len(self.shape))) if self.dim is None else list(self.dim)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def outputs(self) -> int:
        return math.prod(size for i, size in enumerate(self.shape) if i not in self.dims)

    @property
    def result_dtype(self) -> torch.dtype:
        return self.dtype if self.dtype.is_floating_point else torch.int64

    @property
    def bytes_in(self) -> int:
        """Bytes of memory that a pure read of the input touches; a slice touches the gaps too."""
        gaps = (self.shape[-1] + 1) / self.shape[-1] if self.layout == "sliced" else 1
        return round(self.numel * gaps) * self.dtype.itemsize

    @property
    def bytes_out(self) -> int:
        return self.outputs * self.result_dtype.itemsize

    @property
    def bytes(self) -> int:
        return self.bytes_in + self.bytes_out


def load(suite: str) -> list[Case]:
    """The cases of a suite.

    grid: one case of each kind; full: its full sums; quick: a few of it; models: shapes of real networks; heatmap:
    matrices of every form; accumulate: large sums, for the modes of accumulation.
    """
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
    """Fresh random data of the case's shape in its layout."""
    shape = case.shape
    if case.layout == "transposed":
        return random_values((*shape[:-2], shape[-1], shape[-2]), case.dtype, device).transpose(-1, -2)
    if case.layout == "sliced":
        return random_values((*shape[:-1], shape[-1] + 1), case.dtype, device)[..., :-1]
    x = random_values(shape, case.dtype, device)
    return x.contiguous(memory_format=torch.channels_last) if case.layout == "channels_last" else x
