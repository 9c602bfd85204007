"""CPU time of sum against torch.sum, in turns over the same inputs: python -m bench.bench_cpu

Warm: one input, which stays in the caches where it fits. Cold: inputs of more than 128 MB in all take turns.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from bench import cases, harness, machine, reference, results
from bench.cases import Case
from bench.providers import OURS, gpureduce_sum, torch_sum

Shape = tuple[int, ...]

COLD_BYTES = 128 << 20
WARM_BYTES = 32 << 20  # inputs below this are measured warm

# Layouts beyond those of bench.cases: what is allocated, and the view of it that is summed.
VIEWS: dict[str, Callable[[Shape], tuple[Shape, Callable[[torch.Tensor], torch.Tensor]]]] = {
    "300 of 512": lambda shape: ((*shape[:-1], 512), lambda x: x[..., : shape[-1]]),
    "every second": lambda shape: ((*shape[:-1], 2 * shape[-1]), lambda x: x[..., ::2]),
    "rows expanded": lambda shape: (shape[-1:], lambda x: x.expand(shape)),
}

FLOATS = ("float32", "bfloat16", "float16", "float64")
INTEGERS = ("int8", "bool", "int32", "int64")
PLAIN = ("float32", "bfloat16", "int8")

# The one list of CPU cases: shape, dim, layout and the dtypes that it is measured with.
CASES: tuple[tuple[Shape, Shape | None, str, tuple[str, ...]], ...] = (
    ((2**10,), None, "contiguous", (*FLOATS, *INTEGERS)),
    ((2**20,), None, "contiguous", (*FLOATS, *INTEGERS)),
    ((2**26,), None, "contiguous", (*FLOATS, *INTEGERS)),
    # short rows
    ((1 << 20, 8), (1,), "contiguous", PLAIN),
    ((2 << 20, 3), (1,), "contiguous", ("float32",)),
    ((262144, 32), (1,), "contiguous", PLAIN),
    ((262144, 33), (1,), "contiguous", ("float32",)),
    ((65536, 64), (1,), "contiguous", PLAIN),
    # middle and long rows
    ((65536, 128), (1,), "contiguous", PLAIN),
    ((16384, 1024), (1,), "contiguous", PLAIN),
    ((4096, 4096), (1,), "contiguous", PLAIN),
    ((64, 262144), (1,), "contiguous", PLAIN),
    ((2, 1 << 20), (1,), "contiguous", ("float32",)),
    # columns: wide, square, tall, narrow, odd
    ((1024, 16384), (0,), "contiguous", PLAIN),
    ((4096, 4096), (0,), "contiguous", PLAIN),
    ((65536, 64), (0,), "contiguous", PLAIN),
    ((262144, 128), (0,), "contiguous", PLAIN),
    ((1 << 20, 8), (0,), "contiguous", PLAIN),
    ((4 << 20, 3), (0,), "contiguous", ("float32",)),
    ((100003, 257), (0,), "contiguous", ("float32",)),
    ((64, 512), (0,), "contiguous", ("float32",)),
    # dims in the middle, and several
    ((64, 256, 1024), (1,), "contiguous", PLAIN),
    ((64, 512, 256), (1,), "contiguous", PLAIN),
    ((32, 64, 56, 56), (0, 2, 3), "contiguous", PLAIN),
    ((32, 64, 56, 56), (0, 2, 3), "channels_last", PLAIN),
    ((32, 64, 56, 56), (2, 3), "contiguous", PLAIN),
    ((7, 11, 13, 100, 101), (1, 3), "contiguous", ("float32",)),
    # gathers
    ((1 << 20, 3), None, "sliced", PLAIN),
    ((1 << 20, 3), (1,), "sliced", PLAIN),
    ((1 << 20, 3), (0,), "sliced", PLAIN),
    ((16384, 300), None, "300 of 512", PLAIN),
    ((16384, 300), (1,), "300 of 512", PLAIN),
    ((16384, 300), (0,), "300 of 512", PLAIN),
    ((4096, 4096), None, "transposed", PLAIN),
    ((4096, 4096), (0,), "transposed", PLAIN),
    ((4096, 2048), (1,), "every second", ("float32",)),
    ((4096, 4096), None, "rows expanded", ("float32",)),
    ((4096, 4096), (0,), "rows expanded", ("float32",)),
    ((4096, 4096), (1,), "rows expanded", ("float32",)),
)


def all_cases(only: str) -> list[Case]:
    """The cases whose names hold the regular expression."""
    found = [
        Case(shape, dim, getattr(torch, dtype), layout) for shape, dim, layout, dtypes in CASES for dtype in dtypes
    ]
    return [case for case in found if re.search(only, case.name)]


def make_input(case: Case) -> torch.Tensor:
    if case.layout not in VIEWS:
        return cases.make_input(case, "cpu")
    shape, view = VIEWS[case.layout](case.shape)
    return view(cases.random_values(shape, case.dtype, "cpu"))


def bytes_allocated(case: Case) -> int:
    """What one input takes, gaps and all."""
    return math.prod(VIEWS[case.layout](case.shape)[0]) * case.dtype.itemsize if case.layout in VIEWS else case.bytes_in


def measure(case: Case, state: str, seconds: float) -> list[dict[str, object]]:
    """Two rows, after a check of both results."""
    count = 1 if state == "warm" else -(-COLD_BYTES // bytes_allocated(case))
    inputs = [make_input(case) for _ in range(count)]
    calls = {OURS: gpureduce_sum(case), "torch": torch_sum(case)}
    expected = reference.reference(case, inputs[-1])
    for name, fn in calls.items():
        message = reference.fault(case, fn(inputs[-1]), expected)
        if message and not (name == "torch" and "error" in message):  # torch's own tree may be less accurate
            raise SystemExit(f"{name}, {case.name}: {message}")
    rows: list[dict[str, object]] = []
    for name, timing in harness.time_host(calls, inputs, seconds).items():
        row: dict[str, object] = {"case": f"{case.name} {state}", "state": state, "bytes_in": case.bytes_in}
        row |= {"provider": name, "us": timing.us, "first_us": timing.first_us, "second_us": timing.second_us}
        row |= {"best_us": timing.best_us, "gb_s": case.bytes / timing.us / 1e3, "calls": timing.calls}
        rows.append(row | {"load": os.getloadavg()[0]})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose names hold this regular expression (default: all)")
    parser.add_argument("--seconds", type=float, default=1, help="per case (default: %(default)s)")
    parser.add_argument("--threads", type=int, help="default: torch's own choice")
    parser.add_argument("--out", type=Path, default=results.RESULTS, help="folder for the results file")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    record = machine.record("cpu")
    print(", ".join(f"{key} {value}" for key, value in record.items() if value), flush=True)
    if os.getloadavg()[0] > 0.5:
        print(
            f"WARNING: the machine is busy (load {os.getloadavg()[0]:.1f}); medians will be of little worth", flush=True
        )
    rows: list[dict[str, object]] = []
    for case in all_cases(options.only):
        ours, rival = measure(case, "warm" if bytes_allocated(case) < WARM_BYTES else "cold", options.seconds)
        ratio, best = (float(str(rival[key])) / float(str(ours[key])) for key in ("us", "best_us"))
        speed = f"{ours['us']:10.2f} us {ours['gb_s']:6.1f} GB/s"
        ratios = f"({ratio:5.2f}x, best of each {best:5.2f}x)"
        print(f"{ours['case']!s:48} {speed} | torch {rival['us']:10.2f} us {ratios}", flush=True)
        rows += [ours, rival]
        path = results.save("cpu", rows, record, options.out)
    print("\n" + "\n".join(results.summary([{k: str(v) for k, v in row.items()} for row in rows])) + f"\n{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
