"""What the ladder's kernels compute, thread by thread on the CPU; tests/test_ladder.py asks for more on CUDA."""

import itertools

import pytest
import torch

import torch_reduce
from tests import cuda_on_cpu, read_checker
from tests.sanitize import strategy_case

RUNGS = torch_reduce.ladder.rungs()
SUMS = [call for rung in RUNGS if rung.kind == "sum" and rung.name != "production" for call in rung.calls]
STRATEGIES = [(rung.kind, call) for rung in RUNGS if rung.kind not in ("sum", "pipeline") for call in rung.calls]


def guarded(x, offset=0):
    """The same values, NaN around them, as far behind an aligned address as offset says."""
    fill = torch.nan if x.is_floating_point() else 1 << 40
    base = torch.full((x.numel() + 64,), fill, dtype=x.dtype)
    view = base[32 + offset :][: x.numel()].view(x.shape)
    view.copy_(x)
    return view


@pytest.mark.parametrize("rung", SUMS)
def test_every_element_counts_once(rung):
    def summed(x):
        return cuda_on_cpu.run(rung, [x.numel()], 1, guarded(x, x.storage_offset()))

    for n in (1, 4, 31, 255, 257, 1000, 1025, 4097, 20_003, 70_000):
        assert read_checker.faults(summed, n, offsets=(0, 1, 2, 3), seeds=(n,)) == []


def test_checker_catches_the_faulty_kernel():
    for n in (5000, 100_003):
        assert {fault.split()[0] for fault in read_checker.faults(cuda_on_cpu.faulty_serial, n)} == {"weights", "marks"}
    ones = torch.ones(1_000_000)
    assert cuda_on_cpu.faulty_serial(ones).item() == pytest.approx(1e6, rel=1e-3), "ones hardly show it"


@pytest.mark.parametrize("rung", next(rung.calls for rung in RUNGS if rung.kind == "pipeline"))
def test_pipeline(rung):
    for n in (5, (2 << 20) + 5):
        x = guarded(read_checker.weights(n), 1)
        assert cuda_on_cpu.run(rung, [n], 1, x).item() == read_checker.exact_sum(x)


@pytest.mark.parametrize("kind, rung", STRATEGIES)
def test_strategies(kind, rung):
    operands, want = strategy_case(kind, torch.float32)
    x, *other = operands
    sizes = list(x.shape)
    if kind == "map":
        sizes = [x.numel()]
    if kind == "tile":
        sizes = [x.shape[0], other[0].shape[1], x.shape[1]]
    if kind == "adaptive":
        sizes = [x.numel(), other[0].numel() - 1]
    got = cuda_on_cpu.run(rung, sizes, want.numel(), guarded(x, 1), *(guarded(y) for y in other))
    assert torch.equal(got.view(want.shape), want)


@pytest.mark.parametrize("rung", ["warp_per_row", "adaptive"])
def test_rows_that_overlap(rung):
    """More pieces than the list has room for, backward rows, offsets that lead out of the values."""
    values = read_checker.weights(10_000)
    for offsets in ([0, 10_000] * 20, [5000, -(2**62), 2**62, 10_000, 10_001, 1]):
        bounds = torch.tensor(offsets)
        cut = bounds.clamp(0, 10_000).tolist()
        want = [values[a : max(a, b)].sum() for a, b in itertools.pairwise(cut)]
        got = cuda_on_cpu.run(rung, [10_000, len(offsets) - 1], len(want), guarded(values), bounds)
        assert got.tolist() == torch.stack(want).tolist()
