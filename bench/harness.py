"""Timing of several providers of one result against each other: correct before timed, interleaved, on the same inputs.

Device time (CUDA): per provider one CUDA graph of `calls` calls that walk over distinct inputs. Before each replay a
read of four times the L2 evicts them, so every input is met cold; events around the replay; providers take turns; the
median over the replays of a round divided by `calls`; two rounds, both kept, to show that it holds.

A trap: graph replays of kernels of a few microseconds can become slower (2.4 -> 2.7 us) for the rest of a process's
life once a few thousand launches were queued on a created stream. So launches on the capture stream are kept few,
replays go to the default stream, and a canary (a fixed graph of small torch.sum calls) is timed before each case: its
time is in every row, so rows of a fast and of a slow state can be told apart. Compare providers within one case only.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from bench.cases import Case, make_input
from bench.operators import Result, parts

Call = Callable[[torch.Tensor], Result]

MAX_CALLS = 48  # launches per graph
TARGET_US = 400.0  # device time per replay, so that the 1-2 us between event and first kernel do not count
SMALL_BYTES = 65536  # what one block reads


@dataclass(frozen=True)
class Timing:
    """Microseconds per call: the median over all, in each of the two rounds, and the least."""

    us: float
    first_us: float
    second_us: float
    best_us: float
    calls: int


@functools.cache
def capture_stream() -> torch.cuda.Stream:
    """The one created stream that graphs are captured on."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def garbage_collection_off() -> Iterator[None]:
    """No collection in the middle of a measurement."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Captured:
    """A CUDA graph of fn over inputs[0], inputs[1], ..., `calls` calls in all, and their outputs."""

    def __init__(self, fn: Call, inputs: Sequence[torch.Tensor], calls: int) -> None:
        fn(inputs[0])
        self.graph = torch.cuda.CUDAGraph()
        stream = capture_stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            fn(inputs[0])  # what is set up once per stream is set up outside the graph
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph, stream=stream):
            self.outputs = [fn(inputs[i % len(inputs)]) for i in range(calls)]

    def results(self, count: int) -> list[Result]:
        """The outputs for the first `count` inputs after one replay over poisoned memory."""
        for output in self.outputs:
            for part in parts(output):
                poison(part)
        self.graph.replay()
        torch.cuda.synchronize()
        return self.outputs[:count]


def poison(result: torch.Tensor) -> None:
    """Overwrites a result with what no operator gives; of bool, with bytes that are neither false nor true."""
    if result.dtype == torch.bool:
        result.view(torch.uint8).fill_(77)
    else:
        result.fill_(-77)


class Flush:
    """Evicts the L2 by reading four times its size; reading leaves no dirty lines to write back later."""

    def __init__(self) -> None:
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        self.l2_bytes = l2_bytes if l2_bytes > 0 else 64 << 20
        self.buffer = torch.zeros(self.l2_bytes, dtype=torch.float32, device="cuda")

    def __call__(self) -> None:
        torch.amax(self.buffer)


def buffer_count(bytes_in: int, l2_bytes: int) -> int:
    """Distinct inputs per case: more bytes than twice the L2 where MAX_CALLS allows it, at least two."""
    return max(2, min(MAX_CALLS, math.ceil(2 * l2_bytes / bytes_in)))


def call_count(floor_us: float, buffers: int) -> int:
    """Calls per graph: a multiple of the buffers, TARGET_US of device time, at most MAX_CALLS."""
    wanted = min(MAX_CALLS, math.ceil(TARGET_US / floor_us))
    return buffers * max(1, round(wanted / buffers))


def replay_count(expected_us: float, most: int = 11) -> int:
    """Replays per round: about 15 ms, between 4 and `most`."""
    return max(4, min(most, round(15e3 / expected_us)))


def time_graphs(
    graphs: Mapping[str, Captured], flush: Flush, replays: int, rounds: int = 2, seconds: float = math.inf
) -> dict[str, Timing]:
    """Interleaved replays of every graph, each behind a flush; fewer, but two a round, if they take over `seconds`."""
    events: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in graphs}
    torch.cuda.synchronize()
    started = time.perf_counter()
    for captured in graphs.values():
        captured.graph.replay()
    torch.cuda.synchronize()
    affordable = seconds / (rounds * (time.perf_counter() - started))
    replays = replays if affordable >= replays else max(2, int(affordable))
    with garbage_collection_off():
        for repeat in range(rounds * replays):
            for name in turns(list(graphs), repeat):
                start, end = timing_event(), timing_event()
                flush()
                start.record()
                graphs[name].graph.replay()
                end.record()
                events[name].append((start, end))
            torch.cuda.synchronize()
    samples = {name: [start.elapsed_time(end) * 1e3 for start, end in pairs] for name, pairs in events.items()}
    return {name: _timing(samples[name], len(graphs[name].outputs)) for name in graphs}


def timing_event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def turns(names: list[str], repeat: int) -> list[str]:
    """The order of the providers in one repetition: each goes first equally often."""
    shift = repeat % len(names)
    return names[shift:] + names[:shift]


def _timing(samples_us: Sequence[float], calls: int) -> Timing:
    half = len(samples_us) // 2
    us, first_us, second_us = (
        statistics.median(part) / calls for part in (samples_us, samples_us[:half], samples_us[half:])
    )
    return Timing(us, first_us, second_us, min(samples_us) / calls, calls)


def time_host(
    calls: Mapping[str, Call], inputs: Sequence[torch.Tensor], seconds: float, batch: int | None = None
) -> dict[str, Timing]:
    """Wall time of eager calls, providers taking turns over the rotating inputs, for `seconds` in all.

    On CUDA inputs this is host time: the queue is emptied before each batch, and a batch must fit into it.
    """
    on_gpu = inputs[0].is_cuda
    for fn in calls.values():
        fn(inputs[0])
    batch = batch or max(len(inputs), _calls_for(1e-3, calls, inputs[0]))
    walk = [inputs[i % len(inputs)] for i in range(batch)]
    samples: dict[str, list[float]] = {name: [] for name in calls}
    deadline, repeat = time.perf_counter() + seconds, 0
    with garbage_collection_off():
        while repeat < 6 or time.perf_counter() < deadline:
            for name in turns(list(calls), repeat):
                if on_gpu:
                    torch.cuda.synchronize()
                samples[name].append(_batch_us(calls[name], walk))
            repeat += 1
    return {name: _timing(samples[name], batch) for name in calls}


def time_calls(
    calls: Mapping[str, Callable[[], object]], prepare: Callable[[], None], seconds: float
) -> dict[str, Timing]:
    """Wall time of single calls, each behind an untimed prepare(), in turns for `seconds` in all."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    deadline, repeat = time.perf_counter() + seconds, 0
    with garbage_collection_off():
        while repeat < 8 or time.perf_counter() < deadline:
            for name in turns(list(calls), repeat):
                prepare()
                start = time.perf_counter()
                calls[name]()
                samples[name].append((time.perf_counter() - start) * 1e6)
            repeat += 1
    return {name: _timing(each[len(each) // 4 :], 1) for name, each in samples.items()}  # the first ones warm up


def _batch_us(fn: Call, walk: Sequence[torch.Tensor]) -> float:
    start = time.perf_counter()
    for x in walk:
        fn(x)
    return (time.perf_counter() - start) * 1e6


def _calls_for(seconds: float, calls: Mapping[str, Call], x: torch.Tensor) -> int:
    slowest = 0.0
    for fn in calls.values():
        start = time.perf_counter()
        fn(x)
        slowest = max(slowest, time.perf_counter() - start)
    return max(1, round(seconds / slowest))


# --- the limit --------------------------------------------------------------------------------------------------------


def floor_us(case: Case, read_bytes_per_us: float, small_bytes: int = SMALL_BYTES) -> float:
    """The time of a pure read: 2.6 us + bytes / B; 1.3 us up to `small_bytes` (by default what one block does)."""
    return 1.3 if case.bytes_in <= small_bytes else 2.6 + case.bytes / read_bytes_per_us


def read_limit(calls: Mapping[str, Call], flush: Flush) -> float:
    """B in bytes per us: the best read of 4 GiB (less on a small GPU) by any provider, less the 2.6 us of a launch."""
    total = torch.cuda.get_device_properties(0).total_memory
    elements = 1 << 30
    while elements * 4 > total // 6:
        elements //= 2
    case = Case((elements,), None, torch.float32)
    inputs = [make_input(case, "cuda")]
    graphs = {name: Captured(fn, inputs, 2) for name, fn in calls.items()}
    best = min(timing.us for timing in time_graphs(graphs, flush, 6).values())
    return case.bytes_in / (best - 2.6)


class Canary:
    """A fixed graph of 16 sums of 16,384 floats; its time tells the fast state of graph replays from the slow one."""

    def __init__(self, flush: Flush) -> None:
        self.flush = flush
        inputs = [torch.randn(16384, device="cuda") for _ in range(16)]
        self.graphs = {"canary": Captured(torch.sum, inputs, 16)}
        self.first_us = self()

    def __call__(self) -> float:
        return time_graphs(self.graphs, self.flush, 3, rounds=1)["canary"].us
