"""Errors of float32 sums, by gpureduce in its three modes, torch.sum and CUB: python -m bench.bench_accuracy

The data come from NumPy's generators, so they are the same on every machine. The exact sum is math.fsum's. Errors are
given in ulp, the spacing of float32 numbers at the exact sum (0.5 and less: correctly rounded), and as a multiple of
eps * sum(|x|), eps = 2^-24, what rounding each input once could amount to.
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from bench import machine, results
from bench.cases import Case
from bench.harness import Call
from bench.operators import parts
from bench.providers import NotApplicable, prepare
from bench.results import MODES, OURS

Array = NDArray[np.float32]

SIZES = (1 << 12, 1 << 22)
TRIALS = 4
CONDITION = 1e8
EPSILON = 2.0**-24
LIMIT_ULP = 2.0  # that the compensated and the double sum keep on every data set


def uniform(generator: Generator, n: int) -> Array:
    return generator.random(n, dtype=np.float32)


def normal(generator: Generator, n: int) -> Array:
    return generator.standard_normal(n, dtype=np.float32)


def log_normal(generator: Generator, n: int) -> Array:
    """exp(4 z): most numbers lie within 14 decades."""
    return generator.lognormal(0, 4, n).astype(np.float32)


def cancelling(generator: Generator, n: int) -> Array:
    """Pairs of a and almost -a over 20 binades, and one number that makes sum(|x|) / |sum(x)| = CONDITION."""
    half = generator.standard_normal(n // 2) * 2.0 ** generator.integers(-20, 1, n // 2)
    other = -half * (1 + 2.0**-20 * generator.standard_normal(n // 2))
    x = np.concatenate([half, other]).astype(np.float32)
    x[0] = 0
    wanted = np.abs(x).sum(dtype=np.float64) / CONDITION
    x[0] = wanted - math.fsum(x.tolist())
    return generator.permutation(x)


def harmonic(generator: Generator, n: int) -> Array:
    """1, 1/2, 1/3, ... 1/n, rounded to float32; nothing in it is random."""
    return (1 / np.arange(1, n + 1)).astype(np.float32)


DATA: dict[str, Callable[[Generator, int], Array]] = {
    "uniform in [0, 1)": uniform,
    "normal": normal,
    "log-normal, exp(4 z)": log_normal,
    "ill-conditioned": cancelling,
    "harmonic series": harmonic,
}


def errors(result: float, exact: float, size: float) -> dict[str, object]:
    """The error in ulp of the float32 sum, and over eps * sum(|x|)."""
    ulp = float(np.spacing(np.float32(abs(exact))))
    error = abs(result - exact)
    return {"error_ulp": error / ulp, "error_scaled": error / (EPSILON * size)}


@functools.cache
def call(provider: str, n: int, device: str) -> Call:
    return prepare(provider, Case((n,), None, torch.float32), torch.ones(n, device=device), 120)


def measure(data: str, n: int, trial: int, device: str) -> list[dict[str, object]]:
    """One row per provider for one draw of the data."""
    values = DATA[data](np.random.default_rng([n, trial]), n)
    exact, size = math.fsum(values.tolist()), float(np.abs(values).sum(dtype=np.float64))
    x = torch.from_numpy(values).to(device)
    rows: list[dict[str, object]] = []
    for provider in (OURS, *MODES, "torch", "cub"):
        try:
            result = float(parts(call(provider, n, device)(x))[0])
        except NotApplicable:
            continue
        row: dict[str, object] = {"data": data, "n": n, "trial": trial, "condition": size / abs(exact)}
        row |= {"exact": exact.hex(), "provider": provider, "result": result.hex()}
        rows.append(row | errors(result, exact, size))
    return rows


def report(rows: list[results.Row]) -> int:
    """Prints the worst errors; 1 if the compensated or the double sum is more than LIMIT_ULP off anywhere."""
    failures = 0
    for (data, n), providers in results.worst(rows).items():
        texts = [f"{name} {error['error_ulp']:.3g} ulp" for name, error in providers.items()]
        print(f"{data:22} n {n:8,} condition {providers[OURS]['condition']:7.2g}: {', '.join(texts)}")
        for mode in MODES:
            if providers[mode]["error_ulp"] > LIMIT_ULP:
                print(f"FAILED: {mode} is more than {LIMIT_ULP:g} ulp off")
                failures = 1
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=results.RESULTS, help="folder for the results file")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    record = machine.record(options.device)
    print(", ".join(f"{key} {value}" for key, value in record.items() if value), flush=True)
    rows: list[dict[str, object]] = []
    for data in DATA:
        for n in SIZES:
            for trial in range(1 if data == "harmonic series" else TRIALS):
                rows += measure(data, n, trial, options.device)
    path = results.save("accuracy", rows, record, options.out)
    print(path)
    return report(results.read(path))


if __name__ == "__main__":
    sys.exit(main())
