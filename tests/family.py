"""Every operator beside torch's namesake, in one signature, (x, dim, keepdim): what tests loop over."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

import torch_reduce
from tests.common import COMPLEX, INTEGER, REAL, random_data

ops = torch.ops.gpureduce


@dataclass(frozen=True)
class Member:
    name: str  # of the operator, with the overload
    ours: Callable  # (x, dim, keepdim), by torch.ops
    theirs: Callable
    public: Callable  # by torch_reduce
    dims: str = "any"  # what it reduces: "any" dims, "one" dim, one dim or all ("maybe"), or "whole" tensors
    dtypes: tuple = (*REAL, *COMPLEX, *INTEGER)
    empty: bool = True  # a row of no elements has a result
    differentiable: bool = True
    composed: tuple = ()  # dtypes of which it is made of torch's own functions, whose bits differ between devices

    def __str__(self):
        return self.name

    @property
    def function(self):
        return self.name.split()[0].partition(".")[0]

    def data(self, shape, dtype, seed=0):
        """Random values; of products, near one, so that they neither overflow nor vanish."""
        x = random_data(shape, dtype, seed=seed)
        return 1 + x / 1024 if self.function == "prod" and dtype in (*REAL, *COMPLEX) else x

    def calls(self, x):
        """(dim, keepdim) that the operator takes of x."""
        each = list(range(-x.dim(), x.dim())) or [0, -1]
        lists = [[d] for d in each] + [list(range(x.dim()))[::2], list(range(x.dim()))]
        named = {"any": [None, *each, *lists], "one": each, "maybe": [None, *each], "whole": [None]}[self.dims]
        return [(dim, keepdim) for dim in named for keepdim in ((False,) if self.dims == "whole" else (False, True))]


def products(x, dim, keepdim, **options):
    """torch.prod over several dims."""
    if dim is None or isinstance(dim, list):
        named = range(x.dim()) if dim is None or not dim else {d % max(x.dim(), 1) for d in dim}
        for d in sorted(named, reverse=True) if x.dim() else [0]:
            x = torch.prod(x, d, keepdim, **options)
        return x
    return torch.prod(x, dim, keepdim, **options)


def sums_of_squares(x, dim, keepdim):
    wide = x.to(torch.int64) if not (x.is_floating_point() or x.is_complex()) else x
    return (torch.view_as_real(x).square().sum(-1) if x.is_complex() else wide.square()).sum(dim, keepdim)


def statistics(x, dim, keepdim):
    x = x if x.dtype == torch.float64 else x.float()
    maximum = x.amax(dim, keepdim=True)
    total = (x - maximum).exp().sum(dim, keepdim)
    return maximum if keepdim else maximum.squeeze(dim), total


def all_of(x, dim):
    return list(range(x.dim())) if dim is None else dim


def extremes(x, dim, keepdim):
    """Not by torch.aminmax where that has values: before 2.12 it lost keepdim without dim, and had no derivative."""
    if x.numel() == 0:
        return torch.aminmax(x, dim=dim, keepdim=keepdim)
    return torch.amin(x, all_of(x, dim), keepdim), torch.amax(x, all_of(x, dim), keepdim)


def counted(x, dim, keepdim):
    count = torch.count_nonzero(x, dim=all_of(x, dim) if dim is None and x.dim() else dim)
    return count.view((x != 0).sum(dim, keepdim).shape)


ORDERED = (*REAL, *INTEGER)
INEXACT = (*REAL, *COMPLEX)
INDEXED = tuple(dtype for dtype in ORDERED if dtype != torch.bool)


def same(name, dims="any", **options):
    """An operator with the signature of its namesake."""
    packet = getattr(ops, name)
    return Member(
        name,
        lambda x, d, k: packet(x, d, k),
        lambda x, d, k: getattr(torch, name)(x, d, k),
        lambda x, d, k: getattr(torch_reduce, name)(x, d, k),
        dims,
        **options,
    )


def by_keywords(name, dims="any", **options):
    packet = getattr(ops, name)
    return Member(
        name,
        lambda x, d, k: packet(x, dim=d, keepdim=k),
        lambda x, d, k: getattr(torch, name)(x, dim=d, keepdim=k),
        lambda x, d, k: getattr(torch_reduce, name)(x, dim=d, keepdim=k),
        dims,
        **options,
    )


def with_mean(name, first):
    """Beside torch.mean: the mean of torch.var_mean is NaN where it is infinite."""
    packet = getattr(ops, name)
    return Member(
        name,
        lambda x, d, k: packet(x, dim=d, keepdim=k),
        lambda x, d, k: (first(x, dim=d, keepdim=k), torch.mean(x, dim=d, keepdim=k)),
        lambda x, d, k: getattr(torch_reduce, name)(x, dim=d, keepdim=k),
        dtypes=INEXACT,
    )


def listed(name, **options):
    """Of a list of dims that is not optional."""
    packet = getattr(ops, name)
    return Member(
        name,
        lambda x, d, k: packet(x, all_of(x, d), k),
        lambda x, d, k: getattr(torch, name)(x, all_of(x, d), k),
        lambda x, d, k: getattr(torch_reduce, name)(x, all_of(x, d), k),
        **options,
    )


def whole(name):
    return Member(
        name,
        lambda x, d, k: getattr(ops, name)(x),
        lambda x, d, k: getattr(torch, name)(x),
        lambda x, d, k: getattr(torch_reduce, name)(x),
        "whole",
        ORDERED,
        empty=False,
    )


def over_dim(name):
    return Member(
        f"{name}.dim",
        lambda x, d, k: getattr(ops, name)(x, d, k),
        lambda x, d, k: getattr(torch, name)(x, d, k),
        lambda x, d, k: getattr(torch_reduce, name)(x, d, k),
        "one",
        ORDERED,
        empty=False,
    )


def norm(order):
    return Member(
        f"norm {order}",
        lambda x, d, k: ops.norm(x, order, d, k),
        lambda x, d, k: torch.linalg.vector_norm(x, order, d, k),
        lambda x, d, k: torch_reduce.norm(x, order, d, k),
        dtypes=INEXACT,
        empty=0 <= order < float("inf"),
        composed=() if order in (0, 1, 2, float("inf"), -float("inf")) else INEXACT,  # of torch.pow
    )


FAMILY = [
    same("sum"),
    same("mean", dtypes=INEXACT),
    same("nansum", dtypes=ORDERED),
    same("nanmean", dtypes=tuple(REAL)),
    Member(
        "sumsq",
        lambda x, d, k: ops.sumsq(x, d, k),
        sums_of_squares,
        lambda x, d, k: torch_reduce.sumsq(x, d, k),
    ),
    Member("prod", lambda x, d, k: ops.prod(x, d, k), products, lambda x, d, k: torch_reduce.prod(x, d, k)),
    listed("amax", dtypes=ORDERED, empty=False),
    listed("amin", dtypes=ORDERED, empty=False),
    Member(
        "aminmax",
        lambda x, d, k: ops.aminmax(x, dim=d, keepdim=k),
        extremes,
        lambda x, d, k: torch_reduce.aminmax(x, dim=d, keepdim=k),
        "maybe",
        ORDERED,
        empty=False,
    ),
    whole("max"),
    whole("min"),
    over_dim("max"),
    over_dim("min"),
    same("argmax", "maybe", dtypes=INDEXED, empty=False, differentiable=False),
    same("argmin", "maybe", dtypes=INDEXED, empty=False, differentiable=False),
    same("any", differentiable=False),
    same("all", differentiable=False),
    Member(
        "count_nonzero",
        lambda x, d, k: ops.count_nonzero(x, d, k),
        counted,
        lambda x, d, k: torch_reduce.count_nonzero(x, d, k),
        differentiable=False,
    ),
    *(norm(order) for order in (2, 1, 0, float("inf"), -float("inf"), 3, 0.5, -1)),
    by_keywords("var", dtypes=INEXACT),
    by_keywords("std", dtypes=INEXACT),
    with_mean("var_mean", torch.var),
    with_mean("std_mean", torch.std),
    listed("logsumexp", composed=COMPLEX),
    Member(
        "softmax_stats",
        lambda x, d, k: ops.softmax_stats(x, d, k),
        statistics,
        lambda x, d, k: torch_reduce.softmax_stats(x, d, k),
        "one",
        ORDERED,
    ),
]


def results(value):
    """One result or two, as a list."""
    return list(value) if isinstance(value, (tuple, list)) else [value]
