"""docs/ladder.md and the package's copy of the H200's results, from the newest files of bench/results.

python -m bench.report_ladder          writes them, as bench.report does
python -m bench.report_ladder --check  writes nothing: exit code 1 if one of them is not what the results give
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import results, strategies, tables
from bench.machine import ROOT
from bench.plot import NAMES
from bench.results import Row
from bench.tables import NOTHING, conditions, table
from torch_reduce import _ladder_rows
from torch_reduce._ladder_rows import H200, Speed
from torch_reduce.ladder_command import N

DOCUMENT = ROOT / "docs/ladder.md"
PLOT = "../bench/results/ladder.svg"  # as seen from there; bench.report draws it


def speeds() -> list[Speed]:
    """The sums of the newest results of an H200, in the order in which they were measured."""
    return [speed_of(row) for row in measured() if row["kind"] == "sum"]


def measured() -> list[Row]:
    return [row for row in results.newest("ladder", "NVIDIA H200") if row["us"]]


def speed_of(row: Row) -> Speed:
    where = {name: row[name] for name in ("machine", "driver", "torch", "cuda", "date")}
    return Speed(row["rung"], int(row["n"]), float(row["us"]), float(row["read_limit_gb_s"]), **where)


def ladder_section(rows: Sequence[Speed]) -> str:
    """The plot and the table of the size that the document speaks of, the other sizes folded away."""
    if not rows:
        return NOTHING
    shown = _ladder_rows.of_size(rows, N)
    parts = [f"{shown[0].conditions}.", f"![percent of the read limit, every rung]({PLOT})", table_of(shown)]
    parts.append(trap(rows))
    for n in sorted({row.n for row in rows} - {shown[0].n}):
        folded = table_of([row for row in rows if row.n == n])
        parts.append(f"<details><summary>n = {n:,}</summary>\n\n{folded}\n\n</details>")
    return "\n\n".join(parts)


def trap(rows: Sequence[Speed]) -> str:
    """How many times as long as production the rung takes that adds by an atomic for each element."""
    us = {(row.name, row.n): row.us for row in rows}
    factors = {n: slow / us["production", n] for (name, n), slow in us.items() if name == "atomic_per_element"}
    said = ", ".join(f"{factor:,.0f} x (n = {n:,})" for n, factor in factors.items())
    return f"`atomic_per_element` takes {said} the time of `production`."


def table_of(rows: Sequence[Speed]) -> str:
    """The rungs at one size, below them what others need for the same sum."""
    lines = [_ladder_rows.cells(*row) for row in zip(rows, _ladder_rows.factors(rows), strict=True)]
    rivals = [speed_of(row) for row in measured() if row["kind"] == "rival" and int(row["n"]) == rows[0].n]
    lines += [[NAMES[rival.rung], *_ladder_rows.cells(rival, None)[1:]] for rival in rivals]
    return f"n = {rows[0].n:,} floats\n\n{table(_ladder_rows.HEADER, lines)}"


def rung_section(name: str, rows: Sequence[Speed], counters: Sequence[Row]) -> str:
    """A line for each parameter of a rung: its speed at that size, and what the profiler shows."""
    lines = []
    shown = _ladder_rows.of_size(rows, N)
    for speed, factor in zip(shown, _ladder_rows.factors(shown), strict=True):
        if speed.name == name:
            found = next((row for row in counters if row["rung"] == speed.rung), None)
            lines.append([*_ladder_rows.cells(speed, factor), *counter_cells(found)])
    header = [*_ladder_rows.HEADER, "DRAM %", "SM %", "lanes at work", "bank conflicts", "waits for (cycles)"]
    return table(header, lines) if lines else NOTHING


def strategies_section() -> str:
    """The rungs that add no array: what their times say, in words, and the times."""
    rows = results.newest("strategies", "NVIDIA H200")
    if not rows:
        return NOTHING
    lines = [[row["case"], row["rung"], f"{float(row['us']):,.2f}", f"{float(row['gb_s']):,.0f}"] for row in rows]
    said = "\n".join(f"- {line}" for line in strategies.statements([{**row} for row in rows]))
    times = table(["case", "rung", "us", "GB/s"], lines, 2)
    return f"{conditions(rows)}\n\n{said}\n\n<details><summary>times</summary>\n\n{times}\n\n</details>"


def counter_cells(row: Row | None) -> list[str]:
    """The counters of a rung's longest kernel, empty where they were not measured."""
    if row is None:
        return [""] * 5
    numbers = [f"{float(row[key]):.0f}" if row[key] else "" for key in ("dram_percent", "sm_percent")]
    lanes = f"{float(row['lanes_per_instruction']):.0f}" if row["lanes_per_instruction"] else ""
    conflicts = f"{float(row['bank_conflicts']):,.0f}" if row["bank_conflicts"] else ""
    return [*numbers, lanes, conflicts, row["waits_for"]]


def fill(document: str) -> str:
    """The document with the blocks between its markers made anew."""
    rows, counters = speeds(), results.newest("ladder-counters", "NVIDIA H200")
    sections = {"ladder": lambda: ladder_section(rows), "strategies": strategies_section}

    def body(name: str) -> str:
        return sections[name]() if name in sections else rung_section(name, rows, counters)

    return tables.fill(document, body)


def files() -> dict[Path, str]:
    """All that is made here, by its place."""
    made = {DOCUMENT: fill(DOCUMENT.read_text())}
    rows = speeds()
    if rows:
        made[H200] = _ladder_rows.csv_text(rows)
    return made


def check() -> bool:
    """Whether document and copy are what the results give."""
    return all(path.exists() and path.read_text() == text for path, text in files().items())


def update() -> list[Path]:
    """Writes everything; what was written."""
    made = files()
    for path, text in made.items():
        path.write_text(text)
    return list(made)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if something is out of date")
    if parser.parse_args().check:
        current = check()
        print("up to date" if current else "docs/ladder.md is not what bench/results gives: run make report")
        return int(not current)
    print("up to date: " + ", ".join(str(path.relative_to(ROOT)) for path in update()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
