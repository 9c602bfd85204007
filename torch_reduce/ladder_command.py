"""python -m torch_reduce ladder: a sum from its first kernel to the production one, and what each step brings.

On a machine with a GPU every rung is run and timed; without one, the rungs are explained, with the results of an H200.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import torch

from . import _ladder_rows, _ladder_timing, ladder
from ._ladder_rows import HEADER, NUMBERS, Speed
from ._screen import print_table, with_progress
from ._stamp import read_stamp

N = 1 << 24


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m torch_reduce ladder", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=N, help="how many floats to add (default: %(default)s)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table to this file too")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw it (needs matplotlib)")
    parser.add_argument("--explain", action="store_true", help="explain each rung, on a machine with a GPU too")
    options = parser.parse_args(arguments)
    if options.n < 1:
        parser.error(f"--n: {options.n} is not positive")
    if options.plot and importlib.util.find_spec("matplotlib") is None:
        parser.error(f"--plot needs matplotlib: {sys.executable} -m pip install matplotlib")
    for path in (options.csv, options.plot):
        if path and not path.resolve().parent.is_dir():
            parser.error(f"there is no folder {path.resolve().parent}")
    return options


def explain() -> None:
    """Every rung in words: those of the sum in their order, then those that show other ways to spread work."""
    rungs = ladder.rungs()
    for kind in dict.fromkeys(rung.kind for rung in rungs):
        print(f"{kind}\n{'-' * len(kind)}")
        for rung in rungs:
            if rung.kind == kind:
                parameters = f":N, N = {', '.join(map(str, rung.parameters))}" if rung.parameters else ""
                print(f"{rung.name}{parameters}")
                for what in ("idea", "cost", "limits"):
                    text = f"{what + ':':8}{getattr(rung, what)}"
                    print(textwrap.fill(text, 110, initial_indent="    ", subsequent_indent=" " * 12))
        print()


def measure(n: int) -> list[Speed]:
    """The speeds on this machine's GPU."""
    texts = ladder.calls("sum")
    speeds = _ladder_timing.measure(n, texts)
    return [next(speeds) for _ in with_progress(texts, "rung")]


def why_not_here() -> str:
    """Why no rung can run on this machine; nothing if it can."""
    if not torch.cuda.is_available():
        return "There is no GPU here that torch can use (python -m torch_reduce doctor says why)"
    if not (read_stamp() or {}).get("cuda"):
        return "This build of gpureduce has no CUDA kernels (python -m torch_reduce doctor says what to type)"
    return ""


def show(speeds: Sequence[Speed]) -> None:
    print(f"sum of {speeds[0].n:,} float32, {4 * speeds[0].n / 1e6:,.1f} MB; {speeds[0].conditions}")
    print_table([*HEADER, ""], _ladder_rows.table(speeds), NUMBERS)
    print('"x before": how many times as fast as the rung before, or as the fastest one before it')


def main(arguments: Sequence[str]) -> int:
    """Prints the table, and writes the files that are asked for: 1 if there is nothing to write into them."""
    options = parse(arguments)
    missing = why_not_here()
    if missing or options.explain:
        explain()
    if missing:
        speeds = _ladder_rows.of_size(_ladder_rows.read(_ladder_rows.H200), options.n)
        print(f"{missing}." + (" So these are the results that were measured on another machine:" if speeds else ""))
    else:
        speeds = measure(options.n)
    if not speeds:
        print("No results are recorded yet.")
        return int(bool(options.csv or options.plot))
    show(speeds)
    if options.csv:
        options.csv.write_text(_ladder_rows.csv_text(speeds))
    if options.plot:
        options.plot.write_text(_ladder_rows.svg(speeds))
    return 0
