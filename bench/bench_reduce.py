"""Device time of suites of cases, against torch, torch.compile and CUB; one CSV a suite into bench/results.

python -m bench.bench_reduce --suite grid models heatmap accumulate ops
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from bench import cases, harness, machine, results
from bench.ahead import compile_ahead
from bench.cases import Case
from bench.device import Device
from bench.providers import PROVIDERS
from bench.results import MODES, OURS

Value = dict[str, object]

RIVALS = {  # of the other suites: torch, compile, cub
    "heatmap": ("torch",),
    "accumulate": (*MODES, "torch"),
    "ops": ("torch", "compile"),
}
MOST_REPLAYS = {"heatmap": 5, "ops": 5}  # a round; of the other suites: 11
OPS_SECONDS = 0.5  # of replays a case, since some rivals need a hundred times the floor
HEATMAP_SMALL_BYTES = (1 << 20) - 1  # below 1 MiB the heat map's floor is the 1.3 us of a small array


def measure_case(case: Case, device: Device, suite: str, providers: Sequence[str]) -> list[Value]:
    """One row per provider."""
    floor = device.floor_us(case)
    state = device.state()
    timings, notes = device.measure(case, providers)
    rows: list[Value] = []
    for name in providers:
        if name not in timings and name not in notes:
            continue
        row: Value = {"suite": suite, "case": case.name}
        row |= {"op": case.op} if suite == "ops" else {}
        row |= {"shape": "x".join(map(str, case.shape)), "from": case.source}
        row |= {"dtype": str(case.dtype).removeprefix("torch."), "layout": case.layout, "bytes_in": case.bytes_in}
        row |= {"bytes_out": case.bytes_out, "provider": name, "us": "", "first_us": "", "second_us": "", "gb_s": ""}
        row |= {"floor_us": floor or "", "x_floor": "", "read_limit_gb_s": device.read_limit / 1e3 or ""}
        if name in timings:
            timing = timings[name]
            row |= {"us": timing.us, "first_us": timing.first_us, "second_us": timing.second_us}
            row |= {"gb_s": case.bytes / timing.us / 1e3, "x_floor": timing.us / floor if floor else ""}
            row |= {"calls": timing.calls}
        rows.append(row | {"note": notes.get(name, "")} | state)
    return rows


def line(rows: list[Value]) -> str:
    """One case as one line: gpureduce's time, GB/s and x floor, then each rival's time and ratio."""
    times = {str(row["provider"]): row for row in rows if isinstance(row["us"], float)}
    ours = times.get(OURS)
    text = f"{rows[0]['case']!s:44.44}" if rows else ""
    if ours is not None:
        x_floor = f"{ours['x_floor']:5.2f}x floor" if ours["x_floor"] else ""
        text += f"{ours['us']:11.2f} us {ours['gb_s']:7.0f} GB/s {x_floor}"
    for name, row in times.items():
        if name != OURS:
            ratio = f" ({row['us'] / ours['us']:5.2f}x)" if ours is not None else ""  # type: ignore[operator]
            text += f" | {name} {row['us']:9.2f}{ratio}"
    drift = max((abs(float(str(r["second_us"])) / float(str(r["first_us"])) - 1) for r in times.values()), default=0.0)
    text += f" | drift {drift:5.1%}"
    return text + "".join(f"\n    {row['provider']}: {row['note']}" for row in rows if row["note"])


def run_suite(
    suite: str, chosen: Sequence[Case], device: Device, record: dict[str, str], options: argparse.Namespace
) -> list[Value]:
    """Measures and prints the cases one by one; the rows so far are saved every two seconds."""
    kind = ("ops" if suite == "ops" else f"sum-{suite}") + ("-part" if options.filter else "")
    device.small_bytes = HEATMAP_SMALL_BYTES if suite == "heatmap" else harness.SMALL_BYTES
    device.most_replays = MOST_REPLAYS.get(suite, 11)
    device.most_seconds = OPS_SECONDS if suite == "ops" else math.inf
    started, saved, rows, path = time.perf_counter(), 0.0, [], None
    for case in chosen:
        case_rows = measure_case(case, device, suite, providers_of(suite, options))
        if suite != "heatmap" or any(row["note"] for row in case_rows):
            print(line(case_rows), flush=True)
        rows += case_rows
        now = time.perf_counter()
        if (options.out or not options.filter) and (now > saved + 2 or case is chosen[-1]):
            path, saved = results.save(kind, rows, record, options.out or results.RESULTS), now
        if device.name == "cuda":
            torch.cuda.empty_cache()
    print(f"{suite}: {len(chosen)} cases in {time.perf_counter() - started:.0f} s, {path or 'not saved'}", flush=True)
    return rows


def providers_of(suite: str, options: argparse.Namespace) -> list[str]:
    """gpureduce and the suite's rivals, those of --rivals if it is given, without those that cannot run here."""
    rivals = options.rivals.split(",") if options.rivals else RIVALS.get(suite, ("torch", "compile", "cub"))
    left_out = {"compile" if options.no_compile else "", "cub" if options.device == "cpu" else "", ""}
    return [OURS, *(name for name in rivals if name not in left_out)]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=cases.SUITES, nargs="+", default=["grid"], help="one or more")
    parser.add_argument("--filter", default="", help="regular expression on case names; no results file without --out")
    parser.add_argument("--rivals", default="", help="comma-separated (default: those that belong to the suite)")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument(
        "--seconds", type=float, default=60, help="compile time allowed per case and rival (default: %(default)s)"
    )
    parser.add_argument(
        "--workers", type=int, default=min(12, os.cpu_count() or 1), help="processes that compile ahead, 0: none"
    )
    parser.add_argument("--out", type=Path, help="folder for the results files (default: bench/results)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    unknown = set(options.rivals.split(",")) - {*PROVIDERS, ""}
    if unknown:
        parser.error(f"--rivals: {', '.join(sorted(unknown))}: expected some of {', '.join(PROVIDERS)}")
    return options


def prepare_all(chosen: dict[str, list[Case]], options: argparse.Namespace) -> Device:
    """Compiles ahead what torch.compile and CUB need, then sets the device up."""
    providers = {suite: providers_of(suite, options) for suite in chosen}
    with_compile = [suite for suite, names in providers.items() if "compile" in names]
    compiled = list({case.name: case for suite in with_compile for case in chosen[suite]}.values())  # some are in two
    cub = any("cub" in names for names in providers.values())
    if options.device == "cuda" and options.workers and (compiled or cub):
        started = time.perf_counter()
        count = compile_ahead(compiled, cub, options.workers, options.seconds)
        print(f"{count} of {len(compiled)} cases compiled ahead in {time.perf_counter() - started:.0f} s", flush=True)
    return Device(options.device, list({name: None for names in providers.values() for name in names}), options.seconds)


def main() -> int:
    options = parse_arguments()
    torch.manual_seed(0)
    record = machine.record(options.device)
    print(", ".join(f"{key} {value}" for key, value in record.items() if value), flush=True)
    chosen = {
        suite: [case for case in cases.load(suite) if re.search(options.filter, case.name)] for suite in options.suite
    }
    device = prepare_all(chosen, options)
    rows = {suite: run_suite(suite, chosen[suite], device, record, options) for suite in chosen}
    for suite, measured in rows.items():
        print(f"\n{suite}\n" + "\n".join(results.summary([{k: str(v) for k, v in row.items()} for row in measured])))
    failed = [
        row
        for measured in rows.values()
        for row in measured
        if str(row["note"]).startswith("WRONG") or (row["note"] and row["provider"] in (OURS, *MODES))
    ]
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
