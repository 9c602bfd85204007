"""Hardware counters of gpureduce's kernels, by ncu: what bounds the cases that are far from the floor.

python -m bench.counters                 the grid's cases of 64 MB and more that the newest results show above 1.05 x
python -m bench.counters --filter REGEX  the grid's cases of these names
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import torch

from bench import cases, machine, results
from bench.cases import Case
from bench.providers import gpureduce_sum
from torch_reduce import _ncu

FAR = 1.05
LARGE_BYTES = 64 << 20
METRICS = {
    "us": "gpu__time_duration.sum",
    "dram_read_mb": "dram__bytes_read.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1_percent": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
}


def far_cases(pattern: str) -> list[Case]:
    """By name, or else those that the newest results show far from their floor."""
    if pattern:
        return [case for case in cases.load("grid") if re.search(pattern, case.name)]
    rows = results.by_case(results.newest("sum-grid", torch.cuda.get_device_name()))
    far = {
        name
        for name, providers in rows.items()
        if results.OURS in providers and float(providers[results.OURS]["x_floor"]) > FAR
    }
    return [case for case in cases.load("grid") if case.name in far and case.bytes_in >= LARGE_BYTES]


def run_child(pattern: str) -> None:
    """Under ncu: one profiled call a case, in the order of far_cases."""
    for case in far_cases(pattern):
        x, call = cases.make_input(case, "cuda"), gpureduce_sum(case)
        call(x)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()  # type: ignore[no-untyped-call]
        call(x)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()  # type: ignore[no-untyped-call]
        del x
        torch.cuda.empty_cache()


def profile(pattern: str) -> tuple[_ncu.Row, list[_ncu.Row]]:
    """The units and the rows of ncu's table."""
    ncu = _ncu.find()
    if ncu is None:
        raise SystemExit(_ncu.HOW_TO_GET_IT)
    child = [sys.executable, "-m", "bench.counters", "--child", "--filter", pattern]
    try:
        return _ncu.measure(ncu, [*METRICS.values(), _ncu.ALL_STALLS], child, machine.ROOT)
    except _ncu.ProfilerError as error:
        raise SystemExit(str(error)) from error


def row_of(case: Case, units: _ncu.Row, found: _ncu.Row) -> dict[str, object]:
    """One case's counters, and the two reasons for which a warp waits longest, in cycles an instruction."""
    kernel = _ncu.kernel_name(found["Kernel Name"])
    row: dict[str, object] = {"case": case.name, "bytes_in": case.bytes_in, "kernel": kernel}
    for name, metric in METRICS.items():
        row[name] = _ncu.value(units, found, metric)
    row["waits_for"] = ", ".join(f"{reason} {cycles:.1f}" for reason, cycles in _ncu.waits(found)[:2])
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="regular expression on the names of the grid's cases")
    parser.add_argument("--out", type=Path, default=results.RESULTS, help="folder for the results file")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(options.filter)
        return 0
    chosen, (units, found) = far_cases(options.filter), profile(options.filter)
    if len(found) != len(chosen):
        raise SystemExit(f"{len(chosen)} cases gave {len(found)} kernels")
    rows = [row_of(case, units, kernel) for case, kernel in zip(chosen, found, strict=True)]
    for row in rows:
        numbers = ", ".join(f"{key} {value:.4g}" for key, value in row.items() if isinstance(value, float))
        print(f"{row['case']!s:40} {row['kernel']}: {numbers}; waits for {row['waits_for']}")
    print(results.save("counters", rows, machine.record("cuda"), options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
