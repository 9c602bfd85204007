"""Kernels whose threads own what lies together: rows of two or three elements, and leaves of three columns."""

import itertools

import pytest
import torch

from tests import common
from tests.common import COLUMN, SHORT_ROW, assert_same_bits, name, op


def path(shape, dim, dtype=torch.float32, offset=0, pitch=None):
    """Of a tensor that is never touched, so that it takes no memory; `pitch` elements between its rows."""
    size = torch.Size(shape)
    strides = list(torch.empty(size, device="meta").stride())
    if pitch is not None:
        strides[-2] = pitch
    x = torch.empty(size.numel() * 2 + offset, dtype=dtype, device="meta").as_strided(size, strides, offset)
    return common.description(x, dim)["path"]


def test_short_rows_without_gaps_go_by_threads():
    for n, dtype in itertools.product((2, 3), (torch.float32, torch.bfloat16, torch.int8, torch.float64)):
        assert path((1000, n), 1, dtype) == "thread_row", (n, dtype)
        assert path((1000, n), 1, dtype, pitch=n + 1) != "thread_row", (n, dtype)
        assert path((10, 100, n), (1, 2), dtype) != "thread_row", (n, dtype)
    assert path((1000, 4), 1) != "thread_row" and path((1000, 1), 1) != "thread_row"


def test_batches_of_three_columns_go_by_threads():
    assert path((100, 1024, 3), 1) == path((4, 5, 8, 3), 2) == path((7, 2048, 3), 1, torch.bfloat16) == "batch_column"
    for shape in ((100, 2056, 3), (100, 1023, 3), (100, 1024, 4), (1024, 3)):  # long, not whole packs, wide, one batch
        assert path(shape, -2) != "batch_column", shape
    assert path((100, 1024, 3), 1, torch.int8) != "batch_column" != path((100, 1024, 3), 1, pitch=4)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
@pytest.mark.parametrize("n", [2, 3])
def test_thread_row_geometries(geometry, dtype, n):
    """Around the edges of a thread, a block and several; with gaps and at odd addresses other kernels take them."""
    each = common.components(dtype)
    for rows, gap, offset in itertools.product(
        (2, each, each + 1, 256 * each - 1, 256 * each + 1, 5000), (0, 1), (0, 1)
    ):
        data = common.random_data(offset + rows * (n + gap), dtype, seed=n)
        x, there = (t[offset:].view(rows, n + gap)[:, :n] for t in (data, data.cuda()))
        for accumulate in (None, "compensated"):
            want = op(x, 1, accumulate=accumulate)
            for forced, threads in ((0, 0), (0, 32), (SHORT_ROW, 0)):
                geometry(path=forced, threads=threads)
                assert_same_bits(op(there, 1, accumulate=accumulate).cpu(), want, f"{rows} {gap} {offset} {forced}")
    geometry()
    wide = torch.float64 if dtype.is_floating_point else dtype
    assert_same_bits(op(there, 1, dtype=wide).cpu(), op(x, 1, dtype=wide), "another result type")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
def test_batch_column_geometries(geometry, dtype):
    """A leaf, parts of one, those of a warp, of several, and of a block; batches that fill blocks and that do not."""
    for rows, batches in itertools.product((4, 8, 16, 20, 32, 248, 256, 264, 1000, 2048, 2056), (1, 2, 9, 33)):
        data = common.random_data((batches, 2, rows, 3), dtype, seed=rows)
        there = data.cuda()
        for view in (lambda t: t, lambda t: t[:, 1], lambda t: t.transpose(0, 1)):
            want, on_gpu = op(view(data), -2), view(there)
            for forced in (0, COLUMN):
                geometry(path=forced)
                assert_same_bits(op(on_gpu, -2).cpu(), want, f"{batches} of {rows}, path {forced}")


@pytest.mark.cuda
def test_batch_columns_keep_nan_and_infinity_where_they_are(geometry):
    x = torch.zeros(50, 264, 3)
    for batch, value in enumerate((float("nan"), float("inf"), -float("inf"))):
        x[batch, 263 - batch, batch] = value
    assert_same_bits(op(x.cuda(), 1).cpu(), op(x, 1), "one of each")
