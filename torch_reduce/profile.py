"""python -m torch_reduce profile: what bounds the kernels of an operator and a shape, by Nsight Compute.

python -m torch_reduce profile sum --shape 8192,16384 --dim 0 --dtype bfloat16
python -m torch_reduce profile norm --n 16777216 --with ord=1
python -m torch_reduce profile ladder:naive --n 16777216
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

import torch

from . import _ncu, ladder
from ._profiled import RUNG, Target, operators
from ._screen import print_table
from ._verdict import MORE, REQUIRED, Judgement, Kernel, judge


def parse(arguments: Sequence[str]) -> tuple[Target, bool]:
    """What to profile, and whether JSON is wanted."""
    parser = argparse.ArgumentParser(
        prog="python -m torch_reduce profile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("op", help="an operator of torch_reduce, or a rung of the ladder as ladder:NAME")
    parser.add_argument("--shape", type=sizes, help="the input's sizes, as 8192,16384")
    parser.add_argument("--n", type=int, help="the size of an input of one dim, in place of --shape")
    parser.add_argument("--dim", type=sizes, default=(), help="the dim or dims, as 0,2; by default all")
    parser.add_argument("--dtype", default="float32", help="a dtype of torch by its name")
    parser.add_argument("--with", dest="settings", type=setting, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", action="store_true", help="print counters and verdict as JSON")
    options = parser.parse_args(arguments)
    if not options.op.startswith(RUNG) and options.op not in operators():
        parser.error(f"no operator {options.op!r}; there are {', '.join(operators())}, and ladder:NAME")
    if options.op.startswith(RUNG) and options.op.removeprefix(RUNG) not in ladder.calls():
        parser.error(f"no rung {options.op.removeprefix(RUNG)!r}; there are {', '.join(ladder.calls())}")
    if not isinstance(getattr(torch, options.dtype, None), torch.dtype):
        parser.error(f"torch has no dtype {options.dtype!r}")
    if bool(options.shape) == bool(options.n):
        parser.error("give --shape or --n")
    shape = options.shape or (options.n,)
    return Target(options.op, shape, options.dim, options.dtype, dict(options.settings)), options.json


def sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def setting(text: str) -> tuple[str, object]:
    """("ord", 1) of "ord=1"; what is no literal of Python is a string."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def kernels_of(ncu: str, target: Target) -> list[Kernel]:
    """The kernels of one call; with fewer counters where this ncu does not know all of them."""
    child = [sys.executable, "-m", "torch_reduce._profiled", target.encoded()]
    required, all_metrics = [*REQUIRED.values()], [*REQUIRED.values(), *MORE.values(), _ncu.ALL_STALLS]
    try:
        units, rows = _ncu.measure(ncu, all_metrics, child)
    except _ncu.ProfilerError as error:
        if "Failed to find metric" not in str(error):
            raise
        units, rows = _ncu.measure(ncu, required, child)
    return [Kernel.of(units, row) for row in rows]


LINES = (
    ("duration", "{us:,.2f} us"),
    ("DRAM throughput", "{dram_percent:.1f} % of peak"),
    ("memory throughput", "{memory_percent:.1f} % of peak"),
    ("SM throughput", "{sm_percent:.1f} % of peak"),
    ("occupancy", "{occupancy_percent:.1f} % of the warps that an SM can hold"),
    ("bank conflicts", "{bank_conflicts:,.0f} in {shared_passes:,.0f} passes through shared memory"),
    ("bytes read", "{read_mb:,.3f} MB from DRAM"),
    ("bytes written", "{written_mb:,.3f} MB to DRAM"),
    ("bytes used of a sector", "{bytes_per_sector:.1f} of 32"),
    ("lanes at work", "{lanes_per_instruction:.1f} of 32"),
    ("launch", "{blocks:,.0f} blocks of {threads:.0f} threads, {registers:.0f} registers each, {waves:.2f} waves"),
)


def lines_of(kernel: Kernel) -> list[list[str]]:
    """The counters in words; those that the GPU does not have are left out."""
    lines = []
    for name, form in LINES:
        try:
            lines.append([name, form.format(**kernel.counters)])
        except KeyError:
            continue
    waits = ", ".join(f"{reason} {cycles:.1f}" for reason, cycles in kernel.waits)
    return [*lines, *([["waits for", f"{waits} (cycles an instruction)"]] if waits else [])]


def report(target: Target, kernels: Sequence[Kernel], verdict: Judgement) -> None:
    print(f"{target}, {target.bytes_in / 1e6:,.1f} MB, with cold caches")
    for kernel in kernels:
        print_table([kernel.name, ""], lines_of(kernel))
    if len(kernels) > 1:
        print(f"{len(kernels)} kernels, {sum(kernel.get('us') for kernel in kernels):,.2f} us; the longest decides:")
    print(verdict.sentence)


def main(arguments: Sequence[str]) -> int:
    """Profiles, prints the counters and the verdict: 1 where ncu is missing or fails, else 0."""
    target, as_json = parse(arguments)
    ncu = _ncu.find()
    try:
        if ncu is None:
            raise _ncu.ProfilerError(_ncu.HOW_TO_GET_IT)
        if not torch.cuda.is_available():
            raise _ncu.ProfilerError("no GPU that torch can use: python -m torch_reduce doctor says why")
        kernels = kernels_of(ncu, target)
    except _ncu.ProfilerError as error:
        print(error, file=sys.stderr)
        return 1
    verdict = judge(max(kernels, key=lambda kernel: kernel.get("us")), target.bytes_in)
    if as_json:
        found = [{"name": kernel.name, **kernel.counters, "waits_for": dict(kernel.waits)} for kernel in kernels]
        print(json.dumps({**asdict(target), "kernels": found, **asdict(verdict)}, indent=4))
    else:
        report(target, kernels, verdict)
    return 0
