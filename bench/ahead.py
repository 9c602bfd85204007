"""Compiles in parallel, ahead of a run: torch.compile's kernels, a case per process at a time, and the CUB library.

The run then finds the code in the compiler's cache. What these processes time is worth nothing, since they share the
GPU, so no launch configuration that they choose is kept; the run makes its own choice on a quiet GPU. A failure here is
left for the run to meet again.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import torch
import torch._inductor.config

import bench.cub
from bench import cases
from bench.cases import Case
from bench.providers import prepare


def compile_ahead(chosen: Sequence[Case], cub: bool, workers: int, seconds: float, device: str = "cuda") -> int:
    """How many of the cases were compiled, each within `seconds`; with `cub` the library is built beside them."""
    spawn = multiprocessing.get_context("spawn")  # CUDA cannot be used in a fork
    compiled: list[Future[None]] = []
    with contextlib.suppress(BrokenProcessPool), ProcessPoolExecutor(workers, spawn, initializer=_set_up) as pool:
        if cub:
            pool.submit(bench.cub.build)
        for case in chosen:
            compiled.append(pool.submit(_compile, case, seconds, device))
    return sum(future.exception() is None for future in compiled)


def _set_up() -> None:
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.autotune_local_cache = False


def _compile(case: Case, seconds: float, device: str) -> None:
    prepare("compile", case, cases.make_input(case, device), seconds)
    if device == "cuda":
        torch.cuda.empty_cache()
