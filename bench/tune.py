"""Launch geometries of a case against the planner's own, on the same inputs: python -m bench.tune --filter 1048576x128

The bits of every geometry are compared with the planner's: a geometry can only be slower, never different.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from bench import cases, harness, machine, results
from bench.cases import Case
from bench.operators import parts
from bench.providers import gpureduce_sum

Geometry = tuple[int, int, int, int, int]  # path, threads, chunk_leaves, threads_across, rows_per_group; 0 = planner
AUTO: Geometry = (0, 0, 0, 0, 0)
SHORT_ROW, WARP_ROW, BLOCK_ROW = 2, 3, 4
THREADS = (128, 256, 512, 1024)


def is_row(case: Case) -> bool:
    """Whether the last dim longer than 1 is reduced: the row family, for contiguous inputs."""
    longer = [i for i, size in enumerate(case.shape) if size > 1]
    fastest = longer[-2] if case.layout == "transposed" else longer[-1]
    return fastest in case.dims


def geometries(case: Case) -> Iterator[Geometry]:
    """The planner's choice, then all that make sense for the family."""
    yield AUTO
    if is_row(case):
        n = case.numel // case.outputs
        if n <= 4096:
            for threads, rows in itertools.product((128, 256, 512), (1, 2, 4, 8)):
                yield (SHORT_ROW, threads, 0, 0, rows)
        if case.outputs > 1 and n <= 1 << 16:
            for threads in (64, *THREADS):
                yield (WARP_ROW, threads, 0, 0, 0)
        if n >= 512:
            for threads, log_leaves in itertools.product(THREADS, range(0, 13)):
                yield (BLOCK_ROW, threads, 1 << log_leaves, 0, 0)
        return
    for threads, log_leaves, across in itertools.product(THREADS, range(0, 12), (4, 8, 16, 32, 64)):
        yield (0, threads, 1 << log_leaves, across, 0)


def force(geometry: Geometry) -> None:
    torch.ops.gpureduce._force_geometry(*geometry)


def distinct(case: Case, x: torch.Tensor) -> dict[str, Geometry]:
    """The geometries whose plans differ, by plan; those that the planner refuses are left out."""
    plans: dict[str, Geometry] = {}
    for geometry in geometries(case):
        force(geometry)
        try:
            plans.setdefault(torch.ops.gpureduce._explain(x, case.dim, sms=0), geometry)
        except (RuntimeError, ValueError):
            continue
        finally:
            force(AUTO)
    return plans


def capture(case: Case, inputs: list[torch.Tensor], chosen: list[Geometry], calls: int) -> dict[str, harness.Captured]:
    """One graph per geometry; refuses a geometry that changes a bit."""
    fn = gpureduce_sum(case)
    graphs: dict[str, harness.Captured] = {}
    expected: list[torch.Tensor] = []
    for geometry in chosen:
        force(geometry)
        try:
            captured = harness.Captured(fn, inputs, calls)
        except RuntimeError as error:
            print(f"  {geometry}: {str(error).splitlines()[0]}")
            continue
        finally:
            force(AUTO)
        got = [part for result in captured.results(len(inputs)) for part in parts(result)]
        expected = expected or [output.clone() for output in got]
        if not all(map(torch.equal, got, expected)):
            raise SystemExit(f"{case.name}: geometry {geometry} gives other bits than the planner's")
        graphs[" ".join(map(str, geometry))] = captured
    return graphs


def tune(case: Case, flush: harness.Flush, limit: float, options: argparse.Namespace) -> list[dict[str, object]]:
    count = harness.buffer_count(case.bytes_in, flush.l2_bytes)
    inputs = [cases.make_input(case, "cuda") for _ in range(count)]
    floor = harness.floor_us(case, limit)
    plans = distinct(case, inputs[0])
    chosen = list(plans.values())[: options.most]
    calls = harness.call_count(floor, count)
    rows: list[dict[str, object]] = []
    graphs = capture(case, inputs, chosen, calls)
    timings = harness.time_graphs(graphs, flush, options.replays)
    auto = timings[" ".join(map(str, AUTO))].us
    print(f"{case.name}: floor {floor:.2f} us, {len(graphs)} geometries")
    print(f"  {'planner':24} {auto:9.2f} us  {auto / floor:6.3f} x floor")
    ranked = sorted(timings.items(), key=lambda item: item[1].us)
    for name, t in ranked[: options.top]:
        rounds = f"({t.first_us:.2f}, {t.second_us:.2f})"
        print(f"  {name:24} {t.us:9.2f} us  {t.us / floor:6.3f} x floor  {t.us / auto:6.3f} x planner  {rounds}")
    for name, t in ranked:
        row: dict[str, object] = {"case": case.name, "geometry": name, "us": t.us, "first_us": t.first_us}
        rows.append(
            row | {"second_us": t.second_us, "floor_us": floor, "x_floor": t.us / floor, "x_planner": t.us / auto}
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=[s for s in cases.SUITES if s != "ops"], default="grid")
    parser.add_argument("--filter", default="", help="regular expression on the case's name")
    parser.add_argument("--top", type=int, default=6, help="geometries printed per case")
    parser.add_argument("--most", type=int, default=200, help="geometries timed per case")
    parser.add_argument("--replays", type=int, default=3, help="per geometry and round, of which there are two")
    parser.add_argument("--out", type=Path, help="folder for a CSV of every geometry's time")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("bench.tune needs a GPU")
    flush = harness.Flush()
    record = machine.record("cuda")
    limit = harness.read_limit({"gpureduce": torch.ops.gpureduce.sum, "torch": torch.sum}, flush)
    print(f"{record['machine']}, read limit {limit / 1e3:,.0f} GB/s", flush=True)
    rows: list[dict[str, object]] = []
    for case in cases.load(options.suite):
        if re.search(options.filter, case.name):
            rows += tune(case, flush, limit, options)
            torch.cuda.empty_cache()
            if options.out:
                results.save("tune", rows, record, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
