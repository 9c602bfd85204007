"""The ladder's other strategies, each against its rivals on the same data: cases, their timing, and what they show."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

import torch_reduce
from bench import harness

Row = dict[str, object]
Operands = Sequence[torch.Tensor]
Function = Callable[..., torch.Tensor]

PIPELINE_SECONDS = 1.5  # for the calls of one kind of memory
REPLAYS = 4  # a round


@dataclass(frozen=True)
class Case:
    """Calls that all give the same result for the same operands, of which the first is the input that is poisoned."""

    name: str
    kind: str
    operands: Operands
    rivals: Mapping[str, Function]
    bytes: int  # that have to be read and written
    flops: int = 0

    @property
    def calls(self) -> dict[str, Function]:
        return {**rungs_of(self.kind), **self.rivals}


def rungs_of(kind: str) -> dict[str, Function]:
    """Every rung of a kind with each of its parameters, as functions of its operands."""
    return {text: functools.partial(run_rung, text) for text in torch_reduce.ladder.calls(kind)}


def run_rung(text: str, t: torch.Tensor, *other: torch.Tensor) -> torch.Tensor:
    return torch_reduce.ladder.run(t, text, *other)


def integers(*shape: int, largest: int, device: str = "cuda") -> torch.Tensor:
    """Random, of both signs: weights that repeat would not show which elements are read. Small: results are exact."""
    return torch.randint(-largest, largest + 1, shape, dtype=torch.int16, device=device).to(torch.float32)


def rows_of_lengths(lengths: torch.Tensor) -> torch.Tensor:
    """Offsets of rows of these lengths."""
    return torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).cuda()


def uneven_lengths(rows: int) -> torch.Tensor:
    """Of 0 to 63 for most rows, up to 100,000 for one in 500, and one of 2^22."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(0, 64, (rows,), generator=generator)
    lengths[::500] = torch.randint(0, 100_000, (len(lengths[::500]),), generator=generator)
    lengths[rows // 3] = 1 << 22
    return lengths


def device_cases() -> Iterator[Case]:
    n = 1 << 26
    map_operands = (integers(n, largest=1000), integers(n, largest=1000))
    yield Case(f"map {n}", "map", map_operands, {"torch.add": torch.add}, 12 * n)
    side = 4096
    factors = (integers(side, side, largest=3), integers(side, side, largest=3))
    yield Case(f"tile {side}", "tile", factors, {"torch.matmul": torch.matmul}, 12 * side**2, 2 * side**3)
    for height, width in ((65536, 1024), (1048576, 32)):
        matrix = (integers(height, width, largest=15),)
        rivals: dict[str, Function] = {
            "torch.sum": functools.partial(torch.sum, dim=0),
            "gpureduce.sum": functools.partial(torch.ops.gpureduce.sum, dim=0),
        }
        yield Case(f"columns {height}x{width}", "columns", matrix, rivals, 4 * height * width + 4 * width)
    for name, lengths in (
        ("uneven", uneven_lengths(100_000)),
        ("even", torch.full((300_000,), 64, dtype=torch.int64)),
    ):
        offsets, count = rows_of_lengths(lengths), int(lengths.sum())
        operands = (integers(count, largest=15), offsets)
        yield Case(f"adaptive {name}", "adaptive", operands, {}, 4 * count + 12 * len(lengths))


def measure_case(case: Case, flush: harness.Flush) -> list[Row]:
    """One graph of one call for each, since a call takes long enough; checked against the first."""
    graphs = {name: harness.Captured(bound(call, case.operands), case.operands, 1) for name, call in case.calls.items()}
    wanted = None
    for name, graph in graphs.items():
        (got,) = graph.results(1)
        assert isinstance(got, torch.Tensor)
        if wanted is None:
            wanted = got.clone()
        if not torch.equal(got, wanted):
            raise SystemExit(f"{case.name}: {name} differs from {next(iter(graphs))}")
    return rows_of(case, harness.time_graphs(graphs, flush, REPLAYS))


def bound(call: Function, operands: Operands) -> harness.Call:
    """The call as a function of its first operand."""
    return lambda x: call(x, *operands[1:])


def rows_of(case: Case, timings: Mapping[str, harness.Timing]) -> list[Row]:
    rows: list[Row] = []
    for name, t in timings.items():
        row: Row = {"case": case.name, "kind": case.kind, "rung": name, "rival": str(name in case.rivals)}
        row |= {"us": t.us, "first_us": t.first_us, "second_us": t.second_us, "best_us": t.best_us}
        row |= {"bytes": case.bytes, "gb_s": case.bytes / t.us / 1e3}
        rows.append({**row, "tflop_s": case.flops / t.us / 1e6 if case.flops else "", "calls": t.calls})
    return rows


# --- pipelines --------------------------------------------------------------------------------------------------------


def copy_then_sum(x: torch.Tensor) -> torch.Tensor:
    return torch.sum(x.to("cuda", non_blocking=True))


def measure_pipeline(n: int, pinned: bool) -> list[Row]:
    """Wall time from an idle device to an idle device; beside the rungs a copy alone, which is what bounds them."""
    x = integers(n, largest=100, device="cpu")
    x = x.pin_memory() if pinned else x
    target = torch.empty(n, device="cuda")
    rivals: dict[str, Function] = {"copy, then torch.sum": copy_then_sum}
    rivals["copy alone"] = functools.partial(target.copy_, non_blocking=True)
    case = Case(f"pipeline {n} {'pinned' if pinned else 'pageable'}", "pipeline", (x,), rivals, 4 * n)
    want = x.sum(dtype=torch.float64).item()
    for name, call in case.calls.items():
        if name != "copy alone" and call(x).item() != want:
            raise SystemExit(f"{case.name}: {name} gives {call(x).item()}, not {want}")

    def finished(call: Function) -> Callable[[], None]:
        def run() -> None:
            call(x)
            torch.cuda.synchronize()

        return run

    calls = {name: finished(call) for name, call in case.calls.items()}
    return rows_of(case, harness.time_calls(calls, torch.cuda.synchronize, PIPELINE_SECONDS))


# --- all of them, and what they show ----------------------------------------------------------------------------------


def measure_all(flush: harness.Flush) -> list[Row]:
    """Every case; prints its times as they come."""
    torch.backends.cuda.matmul.allow_tf32 = False
    rows: list[Row] = []
    for case in device_cases():
        rows += show(measure_case(case, flush))
        del case
        torch.cuda.empty_cache()
    for pinned in (True, False):
        rows += show(measure_pipeline(1 << 26, pinned))
    return rows


def show(rows: list[Row]) -> list[Row]:
    print(f"\n{rows[0]['case']}")
    for row in rows:
        flops = f" {row['tflop_s']:8.2f} TFLOP/s" if row["tflop_s"] else ""
        print(f"{row['rung']!s:24}{row['us']:12.2f} us {row['gb_s']:8.0f} GB/s{flops}", flush=True)
    return rows


def statements(rows: Sequence[Row]) -> list[str]:
    """What the times say about each strategy, in words."""
    us = {(str(row["case"]), str(row["rung"])): float(str(row["us"])) for row in rows}
    lines = []
    for case in dict.fromkeys(case for case, _ in us):
        own = {rung: time for (name, rung), time in us.items() if name == case}
        lines += [f"{case}: {text}" for text in SHOWN[case.split()[0]](own)]
    return lines


def times(us: Mapping[str, float], slower: str, faster: str) -> str:
    return f"{slower} takes {us[slower] / us[faster]:.2f} x the time of {faster}"


def of_map(us: Mapping[str, float]) -> list[str]:
    rows = ("uncoalesced:4", "uncoalesced:32", "divergent:8", "divergent:32")
    return [times(us, "map:1", "torch.add"), *(times(us, name, "map:1") for name in rows)]


def of_tile(us: Mapping[str, float]) -> list[str]:
    pairs = (("matmul", "tile:16"), ("matmul", "tile:32"), ("tile:32", "tile_buffered:32"))
    return [times(us, *pair) for pair in (*pairs, ("tile_buffered:32", "torch.matmul"))]


def of_columns(us: Mapping[str, float]) -> list[str]:
    return [times(us, "columns", "column_tile:32"), times(us, "column_tile:32", "gpureduce.sum")]


def of_adaptive(us: Mapping[str, float]) -> list[str]:
    return [times(us, "warp_per_row", "adaptive")]


def of_pipeline(us: Mapping[str, float]) -> list[str]:
    """The part of the time beside the copy that the streams hide, where there is one."""
    lines = [times(us, "copy, then torch.sum", "pipeline:2")]
    beside = us["pipeline:1"] - us["copy alone"]
    if beside > 0:
        for name in ("pipeline:2", "pipeline:4"):
            hidden = 100 * (us["pipeline:1"] - us[name]) / beside
            lines.append(f"{name} hides {hidden:.0f} % of the {beside:.0f} us that pipeline:1 takes beside the copy")
    return lines


SHOWN: dict[str, Callable[[Mapping[str, float]], list[str]]] = {
    "map": of_map,
    "tile": of_tile,
    "columns": of_columns,
    "adaptive": of_adaptive,
    "pipeline": of_pipeline,
}
