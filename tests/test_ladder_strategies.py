"""The ladder's other strategies on CUDA: maps, tiles, columns, pipelines and uneven rows, against exact results."""

import pytest
import torch

import torch_reduce
from tests import common, read_checker

op = torch.ops.gpureduce.ladder


def calls(kind):
    return [call for rung in torch_reduce.ladder.rungs() if rung.kind == kind for call in rung.calls]


def integers(*shape, seed=0, largest=8):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-largest, largest + 1, shape, generator=generator).float().cuda()


@pytest.mark.cuda
@pytest.mark.parametrize("rung", calls("map"))
def test_map(rung):
    for n in (0, 1, 31, 1000, 1_000_003):
        a, b = integers(n + 3, seed=1)[1 : n + 1], integers(n + 3, seed=2)[3 : n + 3]
        common.assert_same_bits(op(a, rung, b), a + b, f"{rung} {n}")
        common.assert_same_bits(op(a, rung), a + a, f"{rung} {n}")


@pytest.mark.cuda
@pytest.mark.parametrize("rung", calls("tile"))
def test_tile(rung):
    for m, k, n in ((1, 1, 1), (16, 16, 16), (33, 50, 17), (128, 64, 256), (70, 0, 5), (0, 4, 5), (300, 257, 129)):
        a, b = integers(m, k, seed=1), integers(k, n, seed=2)
        want = (a.double() @ b.double()).float()
        torch.testing.assert_close(op(a, rung, b), want, rtol=0, atol=0)


@pytest.mark.cuda
@pytest.mark.parametrize("rung", calls("columns"))
def test_columns(rung):
    for rows, columns in ((1, 1), (5, 300), (257, 33), (1025, 64), (100_003, 7), (0, 4), (4, 0), (300_000, 32)):
        x = integers(rows, columns)
        torch.testing.assert_close(op(x, rung), x.double().sum(0).float(), rtol=0, atol=0)


@pytest.mark.cuda
@pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "pageable"])
def test_pipeline(pinned):
    for n in (0, 1, 1000, 1 << 20, (3 << 20) + 5, (1 << 24) + 1):
        base = read_checker.weights(n + 1)
        x = (base.pin_memory() if pinned else base)[1:]
        results = [op(x, rung) for rung in calls("pipeline")]
        assert {result.item() for result in results} == {read_checker.exact_sum(x)} and results[0].is_cuda
    x = common.random_data((5 << 20) + 3, torch.float32)
    x = x.pin_memory() if pinned else x
    for rung in calls("pipeline"):
        common.assert_same_bits(op(x, rung), op(x, "pipeline:1"), "the number of streams")


@pytest.mark.cuda
def test_pipeline_keeps_pinned_memory():
    """Memory that is given back while copies are on their way is not handed out again too early."""
    want = []
    got = []
    for seed in range(6):
        x = read_checker.weights(6 << 20, seed).pin_memory()
        want.append(read_checker.exact_sum(x))
        got.append(op(x, "pipeline:4"))
        del x
    assert [result.item() for result in got] == want


def uneven_rows(rows, longest, seed=0):
    """Offsets of rows of which one in 50 is long, some are empty and the others short."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, 60, (rows,), generator=generator)
    long = torch.rand(rows, generator=generator) < 0.02
    lengths[long] = torch.randint(1, longest + 1, (int(long.sum()),), generator=generator)
    lengths[rows // 2] = longest
    return torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])


def row_sums(values, offsets):
    bounds = offsets.clamp(0, values.numel())
    before = torch.cat([torch.zeros(1, dtype=torch.float64), values.cpu().double().cumsum(0)])
    return (before[torch.maximum(bounds[1:], bounds[:-1])] - before[bounds[:-1]]).float()


@pytest.mark.cuda
@pytest.mark.parametrize("rung", calls("adaptive"))
def test_adaptive(rung):
    for rows, longest in ((1, 1), (1, 100_000), (7, 2048), (7, 2049), (3000, 50_000), (100, 2_000_001)):
        offsets = uneven_rows(rows, longest, seed=rows)
        values = integers(int(offsets[-1]) + 1)[1:]
        torch.testing.assert_close(op(values, rung, offsets.cuda()).cpu(), row_sums(values, offsets), rtol=0, atol=0)
    empty = op(torch.empty(0, device="cuda"), rung, torch.zeros(4, dtype=torch.int64, device="cuda"))
    assert empty.tolist() == [0, 0, 0]


@pytest.mark.cuda
@pytest.mark.parametrize("rung", calls("adaptive"))
def test_adaptive_with_any_offsets(rung):
    """Rows that overlap, run backwards or lead out of the values: cut, and read nothing else."""
    values = integers(50_000)
    wild = torch.randint(-70_000, 120_000, (400,), generator=torch.Generator().manual_seed(5))
    overlapping = torch.tensor([0, 50_000] * 200)
    for offsets in (wild, overlapping, torch.tensor([-(2**62), 2**62, 5])):
        got = op(values, rung, offsets.cuda()).cpu()
        torch.testing.assert_close(got, row_sums(values, offsets), rtol=0, atol=0)
