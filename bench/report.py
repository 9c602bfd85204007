"""Fills the README's tables and draws its plots from the newest files of bench/results: python -m bench.report

With --check nothing is written: exit code 1 if a table of the README is not the one that the results give.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import report_ladder, results, tables
from bench.machine import ROOT
from bench.plot import NAMES, bandwidth_svg, heatmap_svg, ladder_svg
from bench.report_operators import operators_table, ops_section
from bench.results import MODES, OURS, Row, time_us
from bench.tables import NOTHING, bullets, conditions, ratio_cell, speed_cells, table

README = ROOT / "README.md"
PLOT = results.RESULTS / "sum_h200.svg"
LADDER_PLOT = results.RESULTS / "ladder.svg"
RIVALS = ("torch", "compile", "cub")
HEATMAP_TITLES = {
    "float32": "float32",
    "bfloat16": "bfloat16",
    "float32-odd": "float32 with odd numbers of columns, 2^j + 1",
}


def device_table(kind: str) -> str:
    """Every case of a GPU suite, with its layer if it has one: time, GB/s, x floor, and each rival's time over ours."""
    rows = results.newest(kind, "NVIDIA")
    if not rows:
        return NOTHING
    lines, named = [], bool(rows[0]["from"])
    for case, providers in results.by_case(rows).items():
        ours = providers.get(OURS)
        names = [rows_of["from"] for rows_of in list(providers.values())[:1] if named]
        if ours is None:
            lines.append([*names, case, "failed", "", "", *[""] * len(RIVALS)])
            continue
        lines.append([*names, case, *speed_cells(ours), *(ratio_cell(providers, rival) for rival in RIVALS)])
    header = [
        *(["model, layer"] if named else []),
        "sum of",
        "us",
        "GB/s",
        "of floor",
        *(NAMES[name] for name in RIVALS),
    ]
    return f"{conditions(rows)}\n\n{bullets(rows)}\n\n{table(header, lines, 1 + named)}"


def heatmap_section() -> str:
    """A picture and a summary for each map; the maps after the first are folded away."""
    rows = results.newest("sum-heatmap", "NVIDIA")
    parts = [conditions(rows)] if rows else [NOTHING]
    for name, (picture, of_map) in heatmaps(rows).items():
        image = f"![percent of the floor's speed, {name}]({picture.relative_to(ROOT)})\n\n{bullets(of_map)}"
        folded = f"<details><summary>{HEATMAP_TITLES[name]}</summary>\n\n{image}\n\n</details>"
        parts.append(folded if len(parts) > 1 else image)
    return "\n\n".join(parts)


def heatmaps(rows: Sequence[Row]) -> dict[str, tuple[Path, list[Row]]]:
    """The file and the rows of each map that has been measured."""
    maps = {name: [row for row in rows if row["from"] == name] for name in HEATMAP_TITLES}
    return {name: (results.RESULTS / f"heatmap_{name}.svg", of_map) for name, of_map in maps.items() if of_map}


def accumulate_table() -> str:
    """Time of the modes of accumulation, each as a multiple of the plain sum's."""
    rows = results.newest("sum-accumulate", "NVIDIA")
    if not rows:
        return NOTHING
    names = (*MODES, "torch")
    lines = []
    for case, providers in results.by_case(rows).items():
        ours, ratios = providers[OURS], results.ratios(providers)
        speed = [f"{time_us(ours):.2f}", f"{float(ours['gb_s']):,.0f}"]
        lines.append([case, *speed, *(f"{ratios[name]:.2f} x" if name in ratios else "" for name in names)])
    header = ["sum of", "plain, us", "GB/s", *(NAMES.get(name, name) for name in names)]
    return f"{conditions(rows)}\n\n{bullets(rows)}\n\n{table(header, lines)}"


def accuracy_table() -> str:
    """The worst error of each provider over the draws of each data set; measured on a GPU if there is such a file."""
    on_gpu, on_cpu = results.newest("accuracy", "NVIDIA"), results.newest("accuracy", "threads)")
    rows = on_gpu or on_cpu
    if not rows:
        return NOTHING
    names = [name for name in (OURS, *MODES, "torch", "cub") if any(row["provider"] == name for row in rows)]
    lines = []
    for (data, n), providers in results.worst(rows).items():
        numbers = [f"{n:,}", f"{providers[OURS]['condition']:.2g}"]
        cells = (providers.get(name) for name in names)
        texts = [f"{short(e['error_ulp'])} ({short(e['error_scaled'])})" if e else "" for e in cells]
        lines.append([data, *numbers, *texts])
    header = ["data", "n", "condition", *(NAMES.get(name, name) for name in names)]
    bits = f"\n\n{same_bits(on_gpu, on_cpu)}" if on_gpu and on_cpu else ""
    return f"{conditions(rows)}\n\n{table(header, lines)}{bits}"


def same_bits(rows: Sequence[Row], others: Sequence[Row]) -> str:
    """How many of gpureduce's results on the same data have the same bits in two files, in words."""
    keys = ("data", "n", "trial", "exact", "provider")
    known = {tuple(row[key] for key in keys): row["result"] for row in others if row["provider"] in (OURS, *MODES)}
    pairs = [(row["result"], known[key]) for row in rows if (key := tuple(row[key] for key in keys)) in known]
    equal = sum(result == other for result, other in pairs)
    return f"{equal} of {len(pairs)} results of gpureduce have the same bits on {others[0]['machine']}."


def short(value: float) -> str:
    """Two digits behind the point, or two in all where that would be long or nothing."""
    return f"{value:.2f}" if value == 0 or 0.01 <= value < 1000 else f"{value:.1e}"


def rival_table(kind: str, device: str, rivals: Sequence[str], what: str = "sum of") -> str:
    """Cases of a suite with a file of its own: our time, and each rival's as a multiple of it."""
    rows = results.newest(kind, device)
    if not rows:
        return NOTHING
    lines = []
    for case, providers in results.by_case(rows).items():
        speed = providers[OURS].get("gb_s") or ""
        cells = [f"{time_us(providers[OURS]):,.2f}", *([f"{float(speed):.1f}"] if speed else [])]
        lines.append([case, *cells, *(ratio_cell(providers, rival) for rival in rivals)])
    header = [what, "us", *(["GB/s"] if "gb_s" in rows[0] else []), *(NAMES.get(name, name) for name in rivals)]
    return f"{conditions(rows)}\n\n{table(header, lines)}"


def grid_section() -> str:
    """The grid's table under the plot, if there is one."""
    image = f"![GB/s against n]({PLOT.relative_to(ROOT)})\n\n" if results.newest("sum-grid", "NVIDIA H200") else ""
    return image + device_table("sum-grid")


SECTIONS: dict[str, Callable[[], str]] = {
    "operators": operators_table,
    "sum-grid": grid_section,
    "heatmap": heatmap_section,
    "sum-models": lambda: device_table("sum-models"),
    "ops": ops_section,
    "clip": lambda: rival_table("clip-cuda", "NVIDIA", ["torch"], "clip_grad_norm_ of"),
    "accuracy": accuracy_table,
    "accumulate": accumulate_table,
    "host": lambda: rival_table("host-cuda", "NVIDIA", ["torch"]),
    "cpu": lambda: rival_table("cpu", "", ["torch"]),
}


def plots() -> dict[Path, Callable[[], str]]:
    """The pictures that the results give: file -> what draws it."""
    grid = results.newest("sum-grid", "NVIDIA H200")
    drawings: dict[Path, Callable[[], str]] = {PLOT: functools.partial(bandwidth_svg, grid)} if grid else {}
    if ladder := results.newest("ladder", "NVIDIA"):
        drawings[LADDER_PLOT] = functools.partial(ladder_svg, ladder)
    for picture, rows in heatmaps(results.newest("sum-heatmap", "NVIDIA")).values():
        drawings[picture] = functools.partial(heatmap_svg, rows)
    return drawings


def fill(readme: str) -> str:
    """The README with every section between its markers generated anew."""
    found = tables.BLOCK.findall(readme)
    if sorted(found) != sorted(SECTIONS):
        raise SystemExit(f"README.md: expected one block each of {', '.join(SECTIONS)}, found {', '.join(found)}")
    return tables.fill(readme, lambda name: SECTIONS[name]())


def check() -> bool:
    """Whether the README's and the ladder's tables equal those that bench/results gives, and the plots are there."""
    current = README.read_text()
    return fill(current) == current and all(path.exists() for path in plots()) and report_ladder.check()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if the README is out of date")
    if parser.parse_args().check:
        if check():
            return 0
        print("README.md or docs/ladder.md is not what bench/results gives: run make report")
        return 1
    README.write_text(fill(README.read_text()))
    for path, draw in plots().items():
        path.write_text(draw())
    written = (README, *plots(), *report_ladder.update())
    print("up to date: " + ", ".join(str(path.relative_to(ROOT)) for path in written))
    return 0


if __name__ == "__main__":
    sys.exit(main())
