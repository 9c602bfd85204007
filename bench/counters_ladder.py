"""What the profiler shows of every rung of the ladder, by ncu, for docs/ladder.md: python -m bench.counters_ladder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import machine, results
from torch_reduce import _ncu, ladder
from torch_reduce._profiled import Target
from torch_reduce._verdict import Kernel, judge
from torch_reduce.ladder_command import N
from torch_reduce.profile import kernels_of

COUNTERS = (
    "us",
    "dram_percent",
    "memory_percent",
    "sm_percent",
    "occupancy_percent",
    "lanes_per_instruction",
    "bank_conflicts",
    "shared_passes",
    "read_mb",
)


def row_of(text: str, target: Target, kernels: list[Kernel]) -> dict[str, object]:
    """The counters of a rung's longest kernel."""
    longest = max(kernels, key=lambda kernel: kernel.get("us"))
    waits = ", ".join(f"{reason} {cycles:.1f}" for reason, cycles in longest.waits[:2])
    counters = {name: longest.counters.get(name, "") for name in COUNTERS}
    verdict = judge(longest, target.bytes_in)
    return {
        "rung": text,
        "n": target.shape[0],
        "kernels": len(kernels),
        "kernel": longest.name,
        **counters,
        "waits_for": waits,
        "sentence": verdict.sentence,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=N)
    parser.add_argument("--out", type=Path, default=results.RESULTS, help="folder for the results file")
    options = parser.parse_args()
    ncu = _ncu.find()
    if ncu is None:
        raise SystemExit(_ncu.HOW_TO_GET_IT)
    rows = []
    for text in ladder.calls("sum"):
        target = Target(f"ladder:{text}", (options.n,))
        rows.append(row_of(text, target, kernels_of(ncu, target)))
        print(f"{text}: {rows[-1]['sentence']}", flush=True)
    print(results.save("ladder-counters", rows, machine.record("cuda"), options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
