"""More rows than a grid dimension has blocks, and more than 2^31 and 2^32 elements, columns and outputs on CUDA."""

import gc

import pytest
import torch

from tests import common
from tests.common import name, op

pytestmark = [pytest.mark.cuda, pytest.mark.large]


def skip_without(gigabytes):
    gc.collect()
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info()[0] / 2**30
    if free < gigabytes:
        pytest.skip(f"needs {gigabytes} GiB of free GPU memory, {free:.0f} are free")


def weights_at(n):
    """Positions around every 32-bit limit, each with a weight of its own."""
    limits = [0, 1, 2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, n // 2, n - 2, n - 1]
    return {p: 3 + i for i, p in enumerate(sorted({p for p in limits if p < n}))}


@pytest.mark.parametrize("n", [2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 2 * (2**31 - 1), 2**32 + 3])
@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16], ids=name)
def test_counts_beyond_32_bits(n, dtype):
    skip_without(1 + n * dtype.itemsize / 2**30)
    small = n % 1000
    x = (
        torch.zeros(n, dtype=dtype, device="cuda")
        if dtype.is_floating_point
        else torch.ones(n, dtype=dtype, device="cuda")
    )
    base = 0 if dtype.is_floating_point else n
    weights = weights_at(n)
    for position, weight in weights.items():
        x[position] += weight
    out = torch.float32 if dtype.is_floating_point else torch.int64
    assert op(x, dtype=out).item() == base + sum(weights.values())
    assert op(x[small:], dtype=out).item() == op(x, dtype=out).item() - op(x[:small], dtype=out).item()


def test_rows_and_columns_beyond_32_bits():
    skip_without(12)
    rows, columns = 3, 2**31 + 2
    x = torch.ones(rows * columns, dtype=torch.int8, device="cuda").view(rows, columns)
    x[1, 2**31], x[2, 5], x[2, -1] = 3, 5, 7
    assert op(x, 1).tolist() == [columns, columns + 2, columns + 4 + 6]
    tall = x.view(-1)[: 2 * (2**31 + 5)].view(2**31 + 5, 2)
    assert op(tall, 0).sum().item() == op(x.view(-1)[: 2 * (2**31 + 5)]).item()
    half = columns // 2
    assert op(x[:, ::2], 1).tolist() == [half, half + 2, half]
    assert op(x[:, 1::2], 1).tolist() == [half, half, half + 4 + 6]


def test_outputs_beyond_32_bits():
    skip_without(24)
    n = 2**31 + 7
    x = torch.ones(n, 2, dtype=torch.bool, device="cuda")
    x[n - 1], x[2**31] = False, False
    y = op(x, 1, dtype=torch.int8)
    assert y.shape == (n,) and y[n - 1].item() == 0 and y[2**31].item() == 0
    assert (
        y[:: 2**20].float().mean().item() < 2 and y[: 2**31].min().item() == 2 and y[2**31 + 1 : -1].min().item() == 2
    )


def test_expanded_beyond_32_bits():
    """2^33 elements that are four bytes in memory."""
    x = torch.ones(1, 1, device="cuda").expand(1 << 16, 1 << 17)
    assert op(x).item() == 2**33
    assert (op(x, 0) == 1 << 16).all()


@pytest.mark.parametrize(
    "shape, dim", [((70_000, 1), 0), ((1, 70_000), 1), ((200_000, 3), 1), ((3, 200_000), 0), ((70_000, 2, 600), 2)]
)
def test_more_rows_than_a_grid_dimension(shape, dim):
    x = common.exact_data(torch.Size(shape).numel() % 5000 + 1, torch.float32, "cuda")
    x = x.repeat(torch.Size(shape).numel() // x.numel() + 1)[: torch.Size(shape).numel()].view(shape)
    assert torch.equal(op(x, dim), x.double().sum(dim).float())
