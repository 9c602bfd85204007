"""The doctor's self-test: about a second of sums on each device, whose results and bits are known."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ._facts import Facts
from ._finding import Finding
from ._stamp import rebuild_command

if TYPE_CHECKING:
    import torch

N = (1 << 22) + 1027  # elements: several blocks or threads, and a rest
LARGE_BYTES = 1 << 28  # more than any cache holds
REPORT = "python -m pytest tests  (a wrong sum is a fault of gpureduce: please report it with this output)"


def self_test(facts: Facts) -> list[Finding]:
    """A finding for the CPU and, where torch can use one, for the GPU."""
    if not facts.stamp or facts.library_error or facts.torch_error:
        return [Finding("self-test", "skipped", "the library is not loaded")]
    devices = ["cpu", *(["cuda"] if facts.gpus and facts.has_cuda_kernels else [])]
    return [test_device(device) for device in devices]


def test_device(device: str) -> Finding:
    """Whether integers add up, bits repeat and are those of the CPU; and the GB/s of a large sum."""
    name = f"self-test on {device}"
    try:
        wrong, speed = faults(device), gigabytes_per_second(device)
    except RuntimeError as error:  # no kernel image, out of memory, an illegal address
        fix = f"nvidia-smi  (is there free memory?), else: {rebuild_command()}"
        return Finding(name, "broken", f"{type(error).__name__}: {error}".partition("\n")[0], fix)
    if wrong:
        return Finding(name, "broken", "; ".join(wrong), REPORT)
    same = "the same twice" if device == "cpu" else "the same twice and the CPU's"
    return Finding(name, "ok", f"sum right, bits {same}, {speed:,.0f} GB/s")


def faults(device: str) -> list[str]:
    import torch

    generator = torch.Generator().manual_seed(0)
    # Random, so that no wrong order of reading gives the same sum, and float32 adds them exactly in any order.
    weights = torch.randint(-100, 101, (N,), generator=generator)
    exact, x = int(weights.sum()), weights.to(torch.float32).to(device)
    noise = torch.randn(N, generator=generator)
    found = []
    got = total(x).item()
    if got != exact:
        found.append(f"the sum of {N:,} integers is {got:.0f}, not {exact}")
    first, second, on_cpu = total(noise.to(device)), total(noise.to(device)), total(noise)
    if not torch.equal(first, second):
        found.append(f"the same sum twice: {first.item()!r}, then {second.item()!r}")
    if not torch.equal(first.cpu(), on_cpu):
        found.append(f"{device} gives {first.item()!r}, the CPU {on_cpu.item()!r}")
    return found


def total(x: torch.Tensor) -> torch.Tensor:
    import torch

    result: torch.Tensor = torch.ops.gpureduce.sum(x)
    return result


def gigabytes_per_second(device: str) -> float:
    """Of the best of some sums of float32: by events on a GPU, by the clock on a CPU."""
    import torch

    elements = LARGE_BYTES // 4 if device == "cuda" else N
    x = torch.zeros(elements, device=device)
    best = float("inf")
    for _ in range(10):
        best = min(best, gpu_seconds(x) if device == "cuda" else cpu_seconds(x))
    return 4 * elements / best / 1e9


def cpu_seconds(x: torch.Tensor) -> float:
    started = time.perf_counter()
    total(x)
    return time.perf_counter() - started


def gpu_seconds(x: torch.Tensor) -> float:
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    total(x)
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1e3
