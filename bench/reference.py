"""What is right: the exact results of a case's operator in float64 or integers, and how far a result may be from them.

u is the rounding of the accumulator (2^-24 for float32 and less), r that of the result. Bounds are of first order.

- A sum of n terms t: every term goes through at most ROUNDINGS additions and what it takes to make it, so the error is
  at most ROUNDINGS * u * sum(|t|), and r of the result. The divisions and roots that follow add 2 u, and a root halves
  what comes before it.
- A product: every multiplication that is not by +-1 counts in full, so as many u as there are such factors.
- A variance by merges of means and squared distances (Chan, Golub and LeVeque 1983): condition * u a step, where
  condition = sqrt(1 + n mean^2 / sum((x - mean)^2)); a step rounds at most MERGE times where a sum does once.
- An exponential e^(x - m), below 1 at the maximum m, by rescaling online: a step rounds at most MERGE times, for the
  exponentials of a few roundings each; the differences that are rescaled by are rounded too, each by u of its own size,
  and they add up to m - x, so MERGE * ROUNDINGS + (m - x) roundings a term. The logarithm makes a relative error an
  absolute one; itself it is good to 2 u.
- Extremes, indices (of the first, if several are equal), counts and truths are exact.

A rival that has no such operator stores temporaries in the input's dtype: the products of sumsq and vecdot, the sums of
nanmean and logsumexp, the differences and the exponentials. It is granted r for each.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from bench.cases import Case
from bench.operators import Result, parts

ROUNDINGS = 64
MERGE = 4
PIECE = 1 << 26  # elements in float64 at a time
EPSILON = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}

Term = Callable[..., torch.Tensor]
Fold = Callable[[torch.Tensor, list[int]], torch.Tensor]


@dataclass(frozen=True)
class Expected:
    """One result, exact, and the error that is allowed: none if None; to a rival, `temporaries` more."""

    exact: torch.Tensor
    allowed: torch.Tensor | None = None
    temporaries: torch.Tensor | float = 0.0

    def squeezed(self, dims: tuple[int, ...]) -> Expected:
        """Without the reduced dims."""
        tensors = {name: value.squeeze(dims) for name, value in vars(self).items() if isinstance(value, torch.Tensor)}
        return dataclasses.replace(self, **tensors)

    def fault(self, result: torch.Tensor, dtype: torch.dtype, rival: bool) -> str:
        """Empty if right."""
        if result.dtype != dtype or result.shape != self.exact.shape:
            return f"{result.dtype} {tuple(result.shape)} instead of {dtype} {tuple(self.exact.shape)}"
        if self.allowed is None:
            return self._inexact(result)
        allowed = self.allowed + (self.temporaries if rival else 0.0)
        excess = ((result.double() - self.exact).abs() / allowed.clamp_min(1e-300)).max().item()
        return "" if excess <= 1 else f"error {excess:.1f} x the bound"

    def _inexact(self, result: torch.Tensor) -> str:
        exact = self.exact.to(result.dtype)
        if result.dtype == torch.bool:  # byte for byte: memory that nothing was written to is no truth
            result, exact = result.view(torch.uint8), exact.view(torch.uint8)
        wrong = int((result != exact).sum())
        return f"{wrong} of {result.numel()} wrong" if wrong else ""


def fault(case: Case, result: Result, expected: Sequence[Expected], rival: bool = True) -> str:
    """What is wrong with an operator's results, or nothing."""
    results = parts(result)
    if len(results) != len(expected):
        return f"{len(results)} results instead of {len(expected)}"
    checks = zip(expected, results, case.result_dtypes, strict=True)
    faults = (each.fault(part, dtype, rival) for each, part, dtype in checks)
    return next((text for text in faults if text), "")


def reference(case: Case, x: torch.Tensor) -> list[Expected]:
    """What the case's operator should give for x."""
    return [each.squeezed(tuple(case.dims)) for each in REFERENCES[case.op](Folder(case, x))]


# --- folds in pieces --------------------------------------------------------------------------------------------------


def add(values: torch.Tensor, dims: list[int]) -> torch.Tensor:
    return values.sum(dims, keepdim=True)


def multiply(values: torch.Tensor, dims: list[int]) -> torch.Tensor:
    for dim in dims:
        values = values.prod(dim, keepdim=True)
    return values


def least(values: torch.Tensor, dims: list[int]) -> torch.Tensor:
    return values.amin(dims, keepdim=True)


def greatest(values: torch.Tensor, dims: list[int]) -> torch.Tensor:
    return values.amax(dims, keepdim=True)


class Folder:
    """A case's input, and folds of what is computed from it, in pieces of dim 0 that bound the memory used."""

    def __init__(self, case: Case, x: torch.Tensor) -> None:
        self.case, self.dims, self.n = case, case.dims, case.numel // case.outputs
        self.operands = tuple(x.unbind(0)) if case.operator.operands > 1 else (x,)
        self.floats = case.dtype.is_floating_point
        self.wide = torch.float64 if self.floats else torch.int64
        self.u = EPSILON[torch.float64 if case.dtype == torch.float64 else torch.float32]
        self.r = EPSILON.get(case.dtype, 0.0)

    def __call__(self, fold: Fold, term: Term, *others: torch.Tensor) -> torch.Tensor:
        """The fold of term(*operands, *others), reduced dims kept as 1. `others` are broadcast, and are not widened."""
        rows = self.case.shape[0]
        count = max(1, min(rows, math.ceil(self.case.numel / PIECE)))
        found = []
        for i in range(count):
            piece = slice(rows * i // count, rows * (i + 1) // count)
            operands = (x[piece].to(self.wide) for x in self.operands)
            rest = (x[piece] if x.shape[0] == rows else x for x in others)
            found.append(fold(term(*operands, *rest), self.dims))
        joined = torch.cat(found)
        return fold(joined, [0]) if 0 in self.dims else joined

    def positions(self) -> torch.Tensor:
        """The index that argmax gives an element: along the one dim, or the only one of x."""
        (dim,) = self.dims
        shape = [self.n if i == dim else 1 for i in range(len(self.case.shape))]
        return torch.arange(self.n, device=self.operands[0].device).view(shape)


# --- operators --------------------------------------------------------------------------------------------------------


def itself(x: torch.Tensor) -> torch.Tensor:
    return x


def total(x: Folder, term: Term, products: bool = False) -> list[Expected]:
    """`products`: whether a rival rounds every term to the input's dtype."""
    exact = x(add, term)
    if not x.floats:
        return [Expected(exact)]
    size = x(add, lambda *operands: term(*operands).abs())
    return [Expected(exact, ROUNDINGS * x.u * size + x.r * exact.abs(), x.r * size if products else 0.0)]


def mean(x: Folder) -> list[Expected]:
    exact, size = x(add, itself) / x.n, x(add, torch.abs) / x.n
    return [Expected(exact, ROUNDINGS * x.u * size + (2 * x.u + x.r) * exact.abs())]


def nanmean(x: Folder) -> list[Expected]:
    count = x(add, lambda v: ~v.isnan())
    exact, size = x(add, torch.nan_to_num) / count, x(add, lambda v: v.abs().nan_to_num()) / count
    return [Expected(exact, ROUNDINGS * x.u * size + (2 * x.u + x.r) * exact.abs(), x.r * exact.abs())]


def product(x: Folder) -> list[Expected]:
    exact, rounded = x(multiply, itself), x(add, lambda v: v.abs() != 1).double()
    return [Expected(exact, (torch.expm1(rounded * x.u) + x.r) * exact.abs())]


def euclidean(x: Folder) -> list[Expected]:
    exact = x(add, torch.square).sqrt()
    return [Expected(exact, (ROUNDINGS / 2 * x.u + 2 * x.u + x.r) * exact)]


def index_of(x: Folder, fold: Fold) -> list[Expected]:
    """The extreme value, and the first index where it is."""
    value = x(fold, itself)
    found = x(least, lambda v, extreme, i: torch.where(v == extreme, i, x.n), value, x.positions())
    return [Expected(value), Expected(found)]


def moments(x: Folder, root: bool) -> list[Expected]:
    """The variance or its root, and the mean."""
    centre, size = x(add, itself) / x.n, x(add, torch.abs) / x.n
    squares = x(add, lambda v, c: (v - c).square(), centre)
    condition = (1 + x.n * centre.square() / squares).sqrt()
    exact = squares / (x.n - 1)
    relative = MERGE * ROUNDINGS * condition * x.u + 2 * x.u
    exact, relative = (exact.sqrt(), relative / 2 + x.u) if root else (exact, relative)
    average = Expected(centre, MERGE * ROUNDINGS * x.u * size + x.r * centre.abs())
    return [Expected(exact, (relative + x.r) * exact), average]


def exponentials(x: Folder) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The maximum m, the sum of e^(x - m), and that of (m - x) e^(x - m)."""
    top = x(greatest, itself)
    return top, x(add, lambda v, m: (v - m).exp(), top), x(add, lambda v, m: (m - v) * (v - m).exp(), top)


def logsumexp(x: Folder) -> list[Expected]:
    top, sum_, weighted = exponentials(x)
    exact, log = top + sum_.log(), sum_.log().abs()
    error = x.u * (MERGE * ROUNDINGS + weighted / sum_)
    temporaries = x.r * (1 + weighted / sum_) + x.r * (1 + log)  # difference and exponential, sum and logarithm
    return [Expected(exact, error + 2 * x.u * log + (x.u + x.r) * exact.abs(), temporaries)]


def softmax_stats(x: Folder) -> list[Expected]:
    top, sum_, weighted = exponentials(x)
    return [Expected(top), Expected(sum_, x.u * (MERGE * ROUNDINGS * sum_ + weighted), x.r * (sum_ + weighted))]


REFERENCES: dict[str, Callable[[Folder], list[Expected]]] = {
    "sum": lambda x: total(x, itself),
    "mean": mean,
    "nansum": lambda x: total(x, torch.nan_to_num),
    "nanmean": nanmean,
    "sumsq": lambda x: total(x, torch.square, products=True),
    "prod": product,
    "amax": lambda x: [Expected(x(greatest, itself))],
    "amin": lambda x: [Expected(x(least, itself))],
    "aminmax": lambda x: [Expected(x(least, itself)), Expected(x(greatest, itself))],
    "max": lambda x: index_of(x, greatest),
    "min": lambda x: index_of(x, least),
    "argmax": lambda x: index_of(x, greatest)[1:],
    "argmin": lambda x: index_of(x, least)[1:],
    "any": lambda x: [Expected(x(greatest, lambda v: (v != 0).byte()))],
    "all": lambda x: [Expected(x(least, lambda v: (v != 0).byte()))],
    "count_nonzero": lambda x: [Expected(x(add, lambda v: v != 0))],
    "norm(2)": euclidean,
    "norm(1)": lambda x: total(x, torch.abs),
    "norm(inf)": lambda x: [Expected(x(greatest, torch.abs))],
    "var": lambda x: moments(x, root=False)[:1],
    "std": lambda x: moments(x, root=True)[:1],
    "var_mean": lambda x: moments(x, root=False),
    "std_mean": lambda x: moments(x, root=True),
    "logsumexp": logsumexp,
    "softmax_stats": softmax_stats,
    "vecdot": lambda x: total(x, torch.mul, products=True),
    "dot": lambda x: total(x, torch.mul),
}
