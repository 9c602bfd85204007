"""Device times of the ladder, sums at three sizes and the other strategies: python -m bench.bench_ladder

Every result is checked before it is timed, on integers that float32 adds exactly in any order. Sums, maps, products,
columns and rows are timed as in bench_reduce: graphs of calls over distinct inputs, behind a read that empties the L2,
in turns. Pipelines are wall time from an idle device to an idle device, because host and device share their work.
--cub takes CUB in as well, which is compiled first (20 s) unless that has been done.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

import bench.cub
import torch_reduce
from bench import harness, machine, results, strategies
from bench.operators import parts

SIZES = (1 << 20, 1 << 24, 1 << 28)
SLOW = "atomic_per_element"  # timed alone where its calls are many times as long as the others'
SLOW_FROM = 1 << 24
LARGEST = 100  # of the integers: sums of 2^28 of both signs stay far below 2^24, eight standard deviations included

Row = dict[str, object]


def check(graph: harness.Captured, name: str, inputs: Sequence[torch.Tensor]) -> None:
    """Before anything is timed: the sums of a replay are exact."""
    for x, got in zip(inputs, graph.results(len(inputs)), strict=True):
        want = x.sum(dtype=torch.float64).item()
        if parts(got)[0].item() != want:
            raise SystemExit(f"{name}: the sum of {x.numel():,} elements is {parts(got)[0].item()}, not {want}")


def measure_sums(
    n: int, calls: Mapping[str, harness.Call], flush: harness.Flush, limit: float
) -> dict[str, harness.Timing]:
    """Timings of every call on n floats; `limit` is that of a pure read in bytes per us."""
    inputs = [strategies.integers(n, largest=LARGEST) for _ in range(harness.buffer_count(4 * n, flush.l2_bytes))]
    floor = 2.6 + 4 * n / limit
    count = harness.call_count(floor, len(inputs))
    apart = [name for name in calls if name == SLOW and n >= SLOW_FROM]
    graphs = {
        name: harness.Captured(call, inputs, len(inputs) if name in apart else count) for name, call in calls.items()
    }
    for name, graph in graphs.items():
        check(graph, name, inputs)
    slow = {name: graphs.pop(name) for name in apart}
    timings = harness.time_graphs(graphs, flush, harness.replay_count(floor * count))
    if slow:
        timings |= harness.time_graphs(slow, flush, 1)
    return {name: timings[name] for name in calls}


def sum_rows(n: int, timings: Mapping[str, harness.Timing], limit: float) -> list[Row]:
    rows: list[Row] = []
    rungs = torch_reduce.ladder.calls("sum")
    for name, t in timings.items():
        row: Row = {"case": f"sum {n}", "kind": "sum" if name in rungs else "rival", "rung": name, "n": n}
        row |= {"bytes_in": 4 * n, "us": t.us, "first_us": t.first_us, "second_us": t.second_us, "best_us": t.best_us}
        gb_s = 4 * n / t.us / 1e3
        row |= {"gb_s": gb_s, "percent_of_limit": 1e5 * gb_s / limit, "read_limit_gb_s": limit / 1e3}
        rows.append({**row, "x_of_production": t.us / timings["production"].us, "calls": t.calls})
    return rows


def print_sums(rows: Sequence[Row]) -> None:
    print(f"\n{rows[0]['case']}")
    for row in rows:
        print(
            f"{row['rung']!s:20}{row['us']:12.2f} us {row['gb_s']:8.0f} GB/s {row['percent_of_limit']:6.1f} % of the "
            f"limit {row['x_of_production']:9.2f} x production",
            flush=True,
        )


def run_sums(options: argparse.Namespace, flush: harness.Flush, record: dict[str, str]) -> float:
    """Measures, prints and saves the sums; the read limit."""
    calls: dict[str, harness.Call] = {**strategies.rungs_of("sum"), "torch": torch.sum}
    if options.cub:
        calls["cub"] = bench.cub.load()
    limit = harness.read_limit({"gpureduce": torch.ops.gpureduce.sum, "torch": torch.sum}, flush)
    print(f"read limit B = {limit / 1e3:,.0f} GB/s", flush=True)
    rows: list[Row] = []
    for n in options.sizes:
        measured = sum_rows(n, measure_sums(n, calls, flush, limit), limit)
        print_sums(measured)
        rows += measured
        results.save("ladder", rows, record, options.out)  # an interrupted run leaves its rows
        torch.cuda.empty_cache()
    return limit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="of the sums")
    parser.add_argument("--cub", action="store_true", help="compare with CUB too")
    parser.add_argument("--only", choices=("sums", "strategies"), help="one part alone")
    parser.add_argument("--out", type=Path, default=results.RESULTS, help="folder for the results files")
    options = parser.parse_args()
    torch.manual_seed(0)
    started, record = time.perf_counter(), machine.record("cuda")
    print(", ".join(f"{key} {value}" for key, value in record.items() if value), flush=True)
    flush = harness.Flush()
    if options.only != "strategies":
        run_sums(options, flush, record)
    if options.only != "sums":
        rows = strategies.measure_all(flush)
        print("\n" + "\n".join(strategies.statements(rows)))
        print(results.save("strategies", rows, record, options.out))
    print(f"{time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
