"""Fills the README's tables and draws the plot from the newest files of bench/results: python -m bench.report

With --check nothing is written: exit code 1 if a table of the README is not the one that the results give.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence

from bench import results
from bench.machine import ROOT
from bench.plot import NAMES, bandwidth_svg
from bench.results import OURS, Row, time_us

README = ROOT / "README.md"
PLOT = results.RESULTS / "sum_h200.svg"
RIVALS = ("torch", "compile", "cub")
NOTHING = "No results are recorded yet."


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table; the first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def conditions(rows: Sequence[Row]) -> str:
    """The machine record of a results file as one line."""
    first = rows[0]
    named = (("driver", "driver"), ("torch", "torch"), ("cuda", "CUDA"), ("python", "Python"), ("commit", "commit"))
    parts = [f"{label} {first[key]}" for key, label in named if first[key]]
    limit = first.get("read_limit_gb_s")
    parts += [f"read limit B = {float(limit):,.0f} GB/s"] if limit else []
    return f"{first['machine']}, {first['date'][:10]}, {', '.join(parts)}."


def bullets(rows: Sequence[Row]) -> str:
    return "\n".join(f"- {line}" for line in results.summary(rows))


def ratio_cell(providers: dict[str, Row], rival: str) -> str:
    """Rival's time and how many times ours it is; bold where the rival wins by more than noise."""
    if rival not in providers:
        return ""
    ratio = results.ratios(providers)[rival]
    text = f"{ratio:.2f} x"
    return f"**{text}**" if ratio * results.NOISE < 1 else text


def device_table(kind: str) -> str:
    """Every case of a GPU suite: time, GB/s, x floor, and each rival's time as a multiple of ours."""
    rows = results.newest(kind, "NVIDIA")
    if not rows:
        return NOTHING
    lines = []
    for case, providers in results.by_case(rows).items():
        if OURS not in providers:
            lines.append([case, "failed", "", "", *[""] * len(RIVALS)])
            continue
        ours = providers[OURS]
        name = f"{case} ({ours['from']})" if ours["from"] else case
        numbers = [f"{time_us(ours):.2f}", f"{float(ours['gb_s']):,.0f}", f"{float(ours['x_floor']):.2f} x"]
        lines.append([name, *numbers, *(ratio_cell(providers, rival) for rival in RIVALS)])
    header = ["sum of", "us", "GB/s", "of floor", *(NAMES[rival] for rival in RIVALS)]
    return f"{conditions(rows)}\n\n{bullets(rows)}\n\n{table(header, lines)}"


def rival_table(kind: str, device: str, rivals: Sequence[str]) -> str:
    """Cases of the CPU or host-time suites: our time, and each rival's as a multiple of it."""
    rows = results.newest(kind, device)
    if not rows:
        return NOTHING
    lines = []
    for case, providers in results.by_case(rows).items():
        speed = providers[OURS].get("gb_s") or ""
        cells = [f"{time_us(providers[OURS]):,.2f}", *([f"{float(speed):.1f}"] if speed else [])]
        lines.append([case, *cells, *(ratio_cell(providers, rival) for rival in rivals)])
    header = ["sum of", "us", *(["GB/s"] if "gb_s" in rows[0] else []), *(NAMES.get(name, name) for name in rivals)]
    return f"{conditions(rows)}\n\n{table(header, lines)}"


def grid_section() -> str:
    """The grid's table under the plot, if there is one."""
    image = f"![GB/s against n]({PLOT.relative_to(ROOT)})\n\n" if results.newest("sum-grid", "NVIDIA H200") else ""
    return image + device_table("sum-grid")


SECTIONS: dict[str, Callable[[], str]] = {
    "sum-grid": grid_section,
    "sum-models": lambda: device_table("sum-models"),
    "host": lambda: rival_table("host-cuda", "NVIDIA", ["torch"]),
    "cpu": lambda: rival_table("cpu", "", ["torch"]),
}


def fill(readme: str) -> str:
    """The README with every section between its markers generated anew."""
    for name, generate in SECTIONS.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if len(pattern.findall(readme)) != 1:
            raise SystemExit(f"README.md: the markers '{begin}' and '{end}' must be there once")
        body = f"{begin}\n\n{generate()}\n\n{end}"
        readme = pattern.sub(lambda match, body=body: body, readme)  # type: ignore[misc]
    return readme


def check() -> bool:
    """Whether the README's tables equal those that bench/results gives, and the plot is there if it should be."""
    current = README.read_text()
    plotted = PLOT.exists() or not results.newest("sum-grid", "NVIDIA H200")
    return fill(current) == current and plotted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if the README is out of date")
    if parser.parse_args().check:
        if check():
            return 0
        print("README.md is not what bench/results gives: run make report")
        return 1
    README.write_text(fill(README.read_text()))
    rows = results.newest("sum-grid", "NVIDIA H200")
    if rows:
        PLOT.write_text(bandwidth_svg(rows))
    print("README.md and bench/results/sum_h200.svg are up to date" if rows else "README.md is up to date; no plot yet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
