"""Device time of sum over a suite of cases, against torch, torch.compile and CUB; one CSV into bench/results.

python -m bench.bench_reduce --suite grid
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

import torch

from bench import cases, harness, machine, results
from bench.cases import Case
from bench.providers import OURS, PROVIDERS, NotApplicable, prepare

Value = dict[str, object]


class Device:
    """Where the cases run: CUDA graphs on a GPU, rotating eager calls on a CPU (for a look only; see bench_cpu)."""

    def __init__(self, name: str, providers: list[str], seconds: float) -> None:
        self.name, self.providers, self.seconds = name, providers, seconds
        self.read_limit = 0.0  # bytes per us
        if name == "cuda":
            self.flush = harness.Flush()
            self.canary = harness.Canary(self.flush)
            self.read_limit = self._measure_read_limit()
            print(f"read limit B = {self.read_limit / 1e3:,.0f} GB/s, canary {self.canary.first_us:.2f} us", flush=True)

    def _measure_read_limit(self) -> float:
        case = Case((1 << 20,), None, torch.float32)
        x = cases.make_input(case, self.name)
        calls = {name: prepare(name, case, x, 120) for name in self.providers if name != "compile"}
        return harness.read_limit(calls, self.flush)

    def inputs(self, case: Case) -> list[torch.Tensor]:
        count = harness.buffer_count(case.bytes_in, self.flush.l2_bytes) if self.name == "cuda" else 2
        return [cases.make_input(case, self.name) for _ in range(count)]

    def floor_us(self, case: Case) -> float:
        return harness.floor_us(case, self.read_limit) if self.read_limit else 0.0

    def state(self) -> Value:
        if self.name != "cuda":
            return {}
        canary = self.canary()
        return {"canary_us": canary, "state": "fast" if canary < 1.08 * self.canary.first_us else "slow"}

    def measure(self, case: Case, inputs: list[torch.Tensor]) -> tuple[dict[str, harness.Timing], dict[str, str]]:
        """Timings of the providers that are right, and what went wrong with the others."""
        notes: dict[str, str] = {}
        calls = self._calls(case, inputs[0], notes)
        count = harness.call_count(self.floor_us(case), len(inputs)) if self.read_limit else len(inputs)
        exact = {i: harness.reference(inputs[i], case.dims) for i in (0, len(inputs) - 1)}
        graphs: dict[str, harness.Captured] = {}
        for name, fn in calls.items():
            try:
                if self.name == "cuda":
                    graphs[name] = harness.Captured(fn, inputs, count)
                    got = graphs[name].results(len(inputs))
                else:
                    got = [fn(x) for x in inputs]
            except RuntimeError as error:  # out of memory, or something that cannot be captured
                notes[name] = _first_line(error)
                continue
            wrong = [m for i, (total, size) in exact.items() if (m := harness.error_message(case, got[i], total, size))]
            if wrong:
                notes[name] = f"WRONG: {wrong[0]}"
        calls = {name: fn for name, fn in calls.items() if name not in notes}
        graphs = {name: graph for name, graph in graphs.items() if name not in notes}
        if not calls:
            return {}, notes
        if self.name == "cpu":
            return harness.time_host(calls, inputs, 1.0), notes
        return harness.time_graphs(graphs, self.flush, harness.replay_count(self.floor_us(case) * count)), notes

    def _calls(self, case: Case, x: torch.Tensor, notes: dict[str, str]) -> dict[str, harness.Call]:
        calls = {}
        for name in self.providers:
            try:
                calls[name] = prepare(name, case, x, self.seconds)
            except NotApplicable:
                continue
            except Exception as error:  # a rival that refuses or fails must not end the run; its note is kept
                notes[name] = _first_line(error)
        return calls


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]


def measure_case(case: Case, device: Device, suite: str) -> list[Value]:
    """One row per provider."""
    floor = device.floor_us(case)
    state = device.state()
    timings, notes = device.measure(case, device.inputs(case))
    rows: list[Value] = []
    for name in device.providers:
        if name not in timings and name not in notes:
            continue
        row: Value = {"suite": suite, "case": case.name, "shape": "x".join(map(str, case.shape)), "from": case.source}
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


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=["grid", "full", "models", "quick"], default="grid")
    parser.add_argument("--filter", default="", help="regular expression on case names; no results file without --out")
    parser.add_argument("--rivals", default="torch,compile,cub", help="comma-separated (default: %(default)s)")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument(
        "--seconds", type=float, default=60, help="compile time allowed per case and rival (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, help="folder for the results file (default: bench/results)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    torch.manual_seed(0)
    rivals = [name for name in options.rivals.split(",") if name and not (options.no_compile and name == "compile")]
    if options.device == "cpu":
        rivals = [name for name in rivals if name != "cub"]
    unknown = set(rivals) - set(PROVIDERS)
    if unknown:
        raise SystemExit(f"--rivals: {', '.join(sorted(unknown))}: expected some of {', '.join(PROVIDERS)}")
    record = machine.record(options.device)
    print(", ".join(f"{key} {value}" for key, value in record.items() if value), flush=True)
    device = Device(options.device, [OURS, *rivals], options.seconds)
    kind = f"sum-{options.suite}" + ("-part" if options.filter else "")
    rows: list[Value] = []
    started = time.perf_counter()
    for case in cases.load(options.suite):
        if not re.search(options.filter, case.name):
            continue
        case_rows = measure_case(case, device, options.suite)
        print(line(case_rows), flush=True)
        rows += case_rows
        if options.out or not options.filter:
            path = results.save(kind, rows, record, options.out or results.RESULTS)
        if options.device == "cuda":
            torch.cuda.empty_cache()
    print("\n" + "\n".join(results.summary([{k: str(v) for k, v in row.items()} for row in rows])))
    print(f"{time.perf_counter() - started:.0f} s" + (f", {path}" if options.out or not options.filter else ""))
    return int(any(str(row["note"]).startswith("WRONG") or (row["note"] and row["provider"] == OURS) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
