"""Host time of an eager call, gpureduce against torch.sum in turns in one run: python -m bench.bench_host

On CUDA the queue is emptied before each batch of 100 calls on a small tensor, so only the host's work is timed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

import torch_reduce
from bench import harness, machine, results
from bench.harness import Call

BATCH = 100  # launches that certainly fit into the device's queue
MODES = ("no_grad", "grad mode", "requires grad")


def calls(dim: list[int] | None) -> dict[str, Call]:
    op = torch.ops.gpureduce.sum
    if dim is None:
        return {
            "gpureduce": lambda x: op(x),
            "torch_reduce": lambda x: torch_reduce.sum(x),
            "torch": lambda x: torch.sum(x),
        }
    return {
        "gpureduce": lambda x: op(x, dim),
        "torch_reduce": lambda x: torch_reduce.sum(x, dim),
        "torch": lambda x: torch.sum(x, dim),
    }


def measure(
    device: str, shape: tuple[int, ...], dim: list[int] | None, mode: str, seconds: float
) -> list[dict[str, object]]:
    x = torch.randn(shape, device=device, requires_grad=mode == "requires grad")
    with torch.set_grad_enabled(mode != "no_grad"):
        timings = harness.time_host(calls(dim), [x], seconds, BATCH)
    case = f"{'x'.join(map(str, shape))} {'all' if dim is None else f'dim {dim[0]}'} {mode}"
    return [
        {"case": case, "provider": name, "us": t.us, "first_us": t.first_us, "second_us": t.second_us, "calls": t.calls}
        for name, t in timings.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3, help="per case (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=results.RESULTS, help="folder for the results file")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    record = machine.record(options.device)
    print(", ".join(f"{key} {value}" for key, value in record.items() if value), flush=True)
    rows: list[dict[str, object]] = []
    shape = (32, 32) if options.device == "cuda" else (4, 4)
    for dim in (None, [1], [0]):
        for mode in MODES:
            measured = measure(options.device, shape, dim, mode, options.seconds)
            times = {str(row["provider"]): float(str(row["us"])) for row in measured}
            text = ", ".join(f"{name} {us:.2f} us" for name, us in times.items())
            print(
                f"{measured[0]['case']!s:28} {text}; {times['gpureduce'] / times['torch']:.2f} x torch's time",
                flush=True,
            )
            rows += measured
    print(results.save(f"host-{options.device}", rows, record, options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
