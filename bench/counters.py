"""Hardware counters of gpureduce's kernels, by ncu: what bounds the cases that are far from the floor.

python -m bench.counters                 the grid's cases of 64 MB and more that the newest results show above 1.05 x
python -m bench.counters --filter REGEX  the grid's cases of these names
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path

import torch

import torch_reduce  # noqa: F401  (loads the library)
from bench import cases, machine, results
from bench.cases import Case
from bench.providers import gpureduce_sum

FAR = 1.05
LARGE_BYTES = 64 << 20
STALLS = r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio"
METRICS = {
    "us": "gpu__time_duration.sum",
    "dram_read_mb": "dram__bytes_read.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1_percent": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
}
SCALE = {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3}
SCALE |= {"byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1.0, "Gbyte": 1e3}


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


def profile(pattern: str) -> list[dict[str, str]]:
    """The rows of ncu's table, the row of units first."""
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    metrics = ",".join([*METRICS.values(), f"regex:{STALLS}".replace(r"(\w+)", ".*")])
    command = [ncu, "--csv", "--page", "raw", "--clock-control", "none", "--profile-from-start", "off"]
    command += ["--metrics", metrics, sys.executable, "-m", "bench.counters", "--child", "--filter", pattern]
    done = subprocess.run(command, cwd=machine.ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise SystemExit(
            f"ncu gave no table (exit code {done.returncode}):\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )
    return list(csv.DictReader(lines[start:]))


def row_of(case: Case, units: dict[str, str], found: dict[str, str]) -> dict[str, object]:
    """One case's counters, and the two reasons for which a warp waits longest, in cycles an instruction."""
    row: dict[str, object] = {"case": case.name, "bytes_in": case.bytes_in, "kernel": kernel_name(found["Kernel Name"])}
    for name, metric in METRICS.items():
        value = float(found[metric].replace(",", "")) * SCALE.get(units[metric], 1.0)
        row[name] = value
    stalls = {m.group(1): float(found[key] or 0) for key in found if (m := re.fullmatch(STALLS, key))}
    longest = sorted(stalls, key=lambda reason: -stalls[reason])[:2]
    row["waits_for"] = ", ".join(f"{reason} {stalls[reason]:.1f}" for reason in longest)
    return row


def kernel_name(full: str) -> str:
    found = re.search(r"(\w+_kernel)", full)
    return found.group(1) if found else full[:60]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="regular expression on the names of the grid's cases")
    parser.add_argument("--out", type=Path, default=results.RESULTS, help="folder for the results file")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(options.filter)
        return 0
    chosen, (units, *found) = far_cases(options.filter), profile(options.filter)
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
