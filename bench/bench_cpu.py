"""CPU time of sum against torch.sum, in turns over the same inputs: python -m bench.bench_cpu

Warm: one input, which stays in the caches where it fits. Cold: inputs of more than 128 MB in all take turns.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import torch

from bench import cases, harness, machine, results
from bench.cases import Case
from bench.providers import OURS, gpureduce_sum, torch_sum

DTYPES = (torch.float32, torch.bfloat16, torch.int8)
SIZES = (2**10, 2**20, 2**26)
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((65536, 64), (1,)),
    ((4096, 4096), (1,)),
    ((4096, 4096), (0,)),
    ((65536, 64), (0,)),
    ((32, 64, 56, 56), (0, 2, 3)),
    ((64, 512, 256), (1,)),
)
COLD_BYTES = 128 << 20


def all_cases(suite: str) -> list[Case]:
    """The full sums, and with suite "shapes" one case of each kind of dims as well."""
    full = [Case((size,), None, dtype) for dtype in DTYPES for size in SIZES]
    dims = [Case(shape, dim, dtype) for shape, dim in SHAPES for dtype in DTYPES]
    return full if suite == "full" else full + dims


def measure(case: Case, state: str, seconds: float) -> list[dict[str, object]]:
    """Two rows, after a check of both results."""
    count = 1 if state == "warm" else max(2, -(-COLD_BYTES // case.bytes_in))
    inputs = [cases.make_input(case, "cpu") for _ in range(count)]
    calls = {OURS: gpureduce_sum(case), "torch": torch_sum(case)}
    exact, size = harness.reference(inputs[-1], case.dims)
    for name, fn in calls.items():
        message = harness.error_message(case, fn(inputs[-1]), exact, size)
        if message:
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
    parser.add_argument("--suite", choices=["full", "shapes"], default="shapes")
    parser.add_argument("--seconds", type=float, default=2, help="per case (default: %(default)s)")
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
    for case in all_cases(options.suite):
        small = case.bytes_in < 32 << 20
        for state in ("warm", "cold") if small and case.numel > 1024 else ("warm",) if small else ("cold",):
            ours, rival = measure(case, state, options.seconds)
            ratio, best = (float(str(rival[key])) / float(str(ours[key])) for key in ("us", "best_us"))
            speed = f"{ours['us']:10.2f} us {ours['gb_s']:6.1f} GB/s"
            ratios = f"({ratio:5.2f}x, best of each {best:5.2f}x)"
            print(f"{ours['case']!s:42} {speed} | torch {rival['us']:10.2f} us {ratios}", flush=True)
            rows += [ours, rival]
            path = results.save("cpu", rows, record, options.out)
    print("\n" + "\n".join(results.summary([{k: str(v) for k, v in row.items()} for row in rows])) + f"\n{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
