"""Device times of the rungs: correct before timed, cold inputs, and the limit that they are compared with."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Callable, Iterator, Sequence

import torch

from . import ladder
from ._ladder_rows import Speed

Call = Callable[[torch.Tensor], torch.Tensor]

TARGET_US = 400.0  # device time of a replay, so that the 1-2 us between event and first kernel do not count
MOST_CALLS, REPLAYS = 48, 9
LIMIT_BYTES = 4 << 30  # read to measure the limit; less on a small GPU


class Stopwatch:
    """Times a call in a CUDA graph: many calls over distinct inputs, the L2 emptied before each replay; the median.

    Replays go to the default stream and launches on the created one are few: graphs of small kernels become slower for
    the rest of a process's life once thousands of launches were queued on a created stream.
    """

    def __init__(self) -> None:
        l2_bytes = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size or 64 << 20
        self.l2_bytes = int(l2_bytes)
        self.flush = torch.zeros(self.l2_bytes, dtype=torch.float32, device="cuda")  # four times the L2, to be read
        self.capture_stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def inputs(self, n: int) -> list[torch.Tensor]:
        """Copies of one input, together larger than twice the L2 as far as MOST_CALLS allows, at least two."""
        count = max(2, min(MOST_CALLS, math.ceil(2 * self.l2_bytes / (4 * n))))
        x = make_input(n)
        return [x, *(x.clone() for _ in range(count - 1))]

    def us(self, call: Call, inputs: Sequence[torch.Tensor]) -> float:
        wanted = min(MOST_CALLS, TARGET_US / self.first_us(call, inputs[0]))
        calls = len(inputs) * max(1, round(wanted / len(inputs)))
        graph = torch.cuda.CUDAGraph()
        self.capture_stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.capture_stream):
            call(inputs[0])  # what is set up once per stream is set up outside the graph
        torch.cuda.current_stream().wait_stream(self.capture_stream)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=self.capture_stream):
            kept = [call(inputs[i % len(inputs)]) for i in range(calls)]
        samples = []
        for _ in range(REPLAYS):
            torch.amax(self.flush)
            samples.append(elapsed_us(graph.replay) / len(kept))
        return statistics.median(samples)

    def first_us(self, call: Call, x: torch.Tensor) -> float:
        """Of one call after another that warms up, an upper bound."""
        call(x)
        return elapsed_us(lambda: call(x))


def elapsed_us(run: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return max(float(start.elapsed_time(end)) * 1e3, 0.1)


def make_input(n: int) -> torch.Tensor:
    """Random integers of both signs, which floats add exactly in any order that occurs.

    Values that repeat would not show which elements a kernel has read.
    """
    generator = torch.Generator("cuda").manual_seed(0)
    return torch.randint(-100, 101, (n,), device="cuda", dtype=torch.int16, generator=generator).to(torch.float32)


def read_limit(stopwatch: Stopwatch) -> float:
    """GB/s of gpureduce.sum over 4 GiB, whose time is that of a pure read; over less where that is too much memory."""
    free, _ = torch.cuda.mem_get_info()
    size = LIMIT_BYTES
    while size > free // 3:
        size //= 2
    x = torch.zeros(size // 4, device="cuda")
    return size / stopwatch.us(lambda t: torch.ops.gpureduce.sum(t), [x]) / 1e3


def machine() -> dict[str, str]:
    from ._facts import driver_version

    return {
        "machine": torch.cuda.get_device_name(),
        "driver": driver_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def measure(n: int, texts: Sequence[str]) -> Iterator[Speed]:
    """The speed of each rung in turn, after a look at its sum; the limit is measured first."""
    stopwatch = Stopwatch()
    limit, where = read_limit(stopwatch), machine()
    inputs = stopwatch.inputs(n)
    expected = inputs[0].sum(dtype=torch.float64).item()
    for text in texts:

        def call(x: torch.Tensor, text: str = text) -> torch.Tensor:
            return ladder.run(x, text)

        got = call(inputs[0]).item()
        if got != expected:
            raise RuntimeError(f"the sum of rung {text} over {n:,} elements is {got}, not {expected}")
        yield Speed(rung=text, n=n, us=stopwatch.us(call, inputs), read_limit_gb_s=limit, **where)
