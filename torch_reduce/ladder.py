"""The ladder: a sum from its first kernel to the production one, each rung one idea better, and all of them measured.

The rungs are CUDA kernels, kept for reading, in ``csrc/ladder``. Further rungs show other ways to spread work over
threads: a map, a tile, a pipeline from the host's memory, work that adapts to its data.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

import torch

_ladder = torch.ops.gpureduce.ladder


@dataclass(frozen=True)
class Rung:
    """One kernel of the ladder, and its row of the table.

    Attributes:
        name: what :func:`run` calls it, but for the parameter.
        parameters: the values of N in "name:N"; empty for a rung that has none.
        idea: the one thing that it does differently from the rung above it.
        cost: what it takes: bytes, barriers, launches, instructions.
        limits: what keeps it from being faster, or from being used.
        kind: what it works on, see :func:`run`: "sum", "map", "tile", "columns", "pipeline" or "adaptive".
        deterministic: whether the same input at the same alignment has the same bits in every run.
    """

    name: str
    parameters: tuple[int, ...]
    idea: str
    cost: str
    limits: str
    kind: str
    deterministic: bool

    @property
    def calls(self) -> list[str]:
        """What :func:`run` takes for it: ["naive"], or ["serial:1", "serial:2", ...]."""
        return [f"{self.name}:{n}" for n in self.parameters] or [self.name]


@functools.cache
def _rungs() -> tuple[Rung, ...]:
    described = json.loads(torch.ops.gpureduce.ladder_rungs())
    return tuple(Rung(**{**entry, "parameters": tuple(entry["parameters"])}) for entry in described)


def rungs() -> list[Rung]:
    """All rungs, in the order in which to read them; the sums come first. Needs neither a GPU nor a build for CUDA."""
    return list(_rungs())


def calls(kind: str | None = None) -> list[str]:
    """What :func:`run` takes: every rung, or those of a kind, with each of its parameters, in their order."""
    return [text for rung in rungs() if kind in (None, rung.kind) for text in rung.calls]


def run(t: torch.Tensor, rung: str, other: torch.Tensor | None = None) -> torch.Tensor:
    """Runs one rung, on the current stream.

    ======== ======================================= =================================== ============================
    kind     t                                       other                               result
    ======== ======================================= =================================== ============================
    sum      CUDA, any shape                         --                                  0-d: the sum of all elements
    map      CUDA, any shape                         of t's shape; t itself if left out  t + other
    tile     CUDA, (m, k)                            (k, n)                              (m, n): t @ other
    columns  CUDA, (m, n)                            --                                  (n,): t.sum(0)
    pipeline CPU, any shape, best in pinned memory   --                                  0-d on the current GPU: the sum
    adaptive CUDA, (n,)                              int64, (rows + 1,): row r is        (rows,): the sum of each row
                                                     t[other[r] : other[r + 1]]
    ======== ======================================= =================================== ============================

    All tensors are contiguous, and float32 but for the offsets, which are read on the GPU and cut to 0..n. The sum of
    no elements is 0. How the blocks of a rung join is said in ``csrc/ladder/sums.h``. kahan is Kahan's sum of 1965 as
    Neumaier wrote it in 1974, by the two-sum of Moller (1965) and Knuth (TAOCP 2, 4.2.2).

    Args:
        t: what to add, see above.
        rung: a rung's name, with a parameter if it has one: "naive", "vec4_serial:4".
        other: the second operand, for the kinds that have one.

    Raises:
        ValueError: there is no such rung, or not with this parameter; the message has all that there are.
        RuntimeError: a tensor is of another dtype, shape, layout or device than the rung takes, or requires a gradient:
            the ladder is not differentiable.
        NotImplementedError: t is on the CPU, or gpureduce was built without CUDA.

    Example:
        >>> torch_reduce.ladder.run(torch.ones(1000, device="cuda"), "vec4_serial:4")
        tensor(1000., device='cuda:0')
    """
    result: torch.Tensor = _ladder(t, rung, other)
    return result
