"""Who computes a case: gpureduce and its rivals. A provider turns a case into a function of one tensor."""

from __future__ import annotations

import contextlib
import functools
import signal
from collections.abc import Callable, Iterator
from types import FrameType

import torch

import bench.cub
import torch_reduce  # noqa: F401  (registers torch.ops.gpureduce)
from bench.cases import Case
from bench.harness import Call
from bench.results import MODES
from bench.results import OURS as OURS  # for bench_cpu

GPUREDUCE = torch.ops.gpureduce


class NotApplicable(Exception):
    """The provider has no such operation; the case's row is left out."""


def gpureduce_sum(case: Case) -> Call:
    op = torch.ops.gpureduce.sum
    if case.dim is None:
        return lambda x: op(x)
    dim = list(case.dim)
    return lambda x: op(x, dim)


def gpureduce_call(case: Case) -> Call:
    if case.op == "sum":
        return gpureduce_sum(case)
    call, dims = case.operator.call, case.argument
    return lambda x: call(GPUREDUCE, x, dims)


def accumulated_sum(mode: str, case: Case) -> Call:
    if case.op != "sum":
        raise NotApplicable(case.name)
    op, dim = torch.ops.gpureduce.sum, None if case.dim is None else list(case.dim)
    return lambda x: op(x, dim, accumulate=mode)


def torch_sum(case: Case) -> Call:
    if case.dim is None:
        return lambda x: torch.sum(x)
    dim = list(case.dim)
    return lambda x: torch.sum(x, dim)


def torch_call(case: Case) -> Call:
    """torch's function of the same name, or else what people write in its place."""
    if case.op == "sum":
        return torch_sum(case)
    operator, dims = case.operator, case.argument
    call, eager = operator.call, operator.eager
    return (lambda x: eager(x, dims)) if eager else (lambda x: call(torch, x, dims))


def compiled_call(case: Case) -> Call:
    torch._dynamo.reset()
    compiled: Call = torch.compile(torch_call(case), dynamic=False)
    return compiled


@functools.cache
def _cub() -> Call:
    return bench.cub.load()


def cub_sum(case: Case) -> Call:
    if case.op != "sum" or case.dim is not None or case.dtype not in bench.cub.DTYPES or not torch.cuda.is_available():
        raise NotApplicable(case.name)
    return _cub()


PROVIDERS: dict[str, Callable[[Case], Call]] = {
    OURS: gpureduce_call,
    **{mode: functools.partial(accumulated_sum, mode) for mode in MODES},
    "torch": torch_call,
    "compile": compiled_call,
    "cub": cub_sum,
}


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """TimeoutError in the main thread after `seconds`; a compiler that is stuck must not take the run with it."""

    def expire(signal_number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def prepare(name: str, case: Case, x: torch.Tensor, seconds: float) -> Call:
    """The provider's function, compiled and run once on x."""
    with time_limit(seconds):
        fn = PROVIDERS[name](case)
        fn(x)
    return fn
