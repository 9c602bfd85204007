"""Columns of up to 128 rows, by a thread each: every launch geometry gives the bits of the CPU."""

import itertools

import pytest
import torch

from tests import common
from tests.common import COLUMN, THREAD_COLUMN, assert_same_bits, name, op

ROWS = (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 25, 40, 63, 64, 65, 100, 127, 128)


def path(shape, dim, dtype=torch.float32, sms=132):
    return common.description(torch.empty(shape, dtype=dtype, device="meta"), dim, sms=sms)["path"]


def test_paths_of_columns_of_few_rows():
    """A thread walks a leaf of rows at any width, and more where the columns are many."""
    for rows in range(2, 9):
        assert path((rows, 2), 0) == path((rows, 1_000_001), 0) == path((5, rows, 7), 1) == "thread_column", rows
    for rows in (9, 64, 128):
        assert path((rows, 1000), 0) == path((3, rows, 1000), 1) == "column", rows
        assert path((rows, 1_000_000), 0) == path((1000, rows, 1000), 1) == "thread_column", rows
        assert path((rows, 40_000), 0, sms=264) != path((rows, 40_000), 0, sms=1) == "thread_column", rows
    assert path((129, 1_000_000), 0) == "column"
    assert path((4, 1000, 4, 1000), [0, 2]) == "column"  # rows along two axes


@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
def test_every_column_has_a_thread(geometry, dtype):
    for rows, columns, batch, threads in itertools.product((3, 4, 5, 100), (1, 5, 16, 70_001), (1, 3), (0, 32, 256)):
        geometry(path=THREAD_COLUMN, threads=threads)
        plan = common.description(torch.empty(batch, rows, columns, dtype=dtype, device="meta"), 1)
        if plan["family"] == "row":
            continue
        assert plan["path"] == "thread_column" and 32 <= plan["threads"] <= 256 and plan["mailbox_bytes"] == 0
        bytes_at_once = plan["vector_columns"] * dtype.itemsize
        units = (1 if bytes_at_once >= 16 else 2) * (2 if rows <= 4 else 1)
        block = plan["threads"] * units * plan["vector_columns"]
        assert (plan["grid_x"] - 1) * block < plan["outputs"] <= plan["grid_x"] * block


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
@pytest.mark.parametrize("columns, gap, offset", [(48, 0, 0), (48, 16, 0), (67, 0, 0), (7, 3, 1), (64, 0, 1)])
def test_thread_column_geometries(geometry, dtype, columns, gap, offset):
    """Vectors and single columns, whole and partial leaves, around the last thread of a block."""
    for rows in ROWS:
        shape, pitch = (5, rows, columns), columns + gap
        data = common.random_data(offset + 5 * rows * pitch, dtype, seed=46)
        here, there = (t.as_strided(shape, (rows * pitch, pitch, 1), offset) for t in (data, data.cuda()))
        for accumulate in (None, "compensated"):
            want = op(here, 1, accumulate=accumulate)
            for forced, threads in ((THREAD_COLUMN, 0), (THREAD_COLUMN, 32), (THREAD_COLUMN, 256), (COLUMN, 0)):
                geometry(path=forced, threads=threads)
                assert common.description(there, 1)["path"] == ("column" if forced == COLUMN else "thread_column")
                got = op(there, 1, accumulate=accumulate).cpu()
                assert_same_bits(got, want, f"{shape} of {pitch} from {offset}, path {forced} threads {threads}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
def test_thread_columns_of_any_kept_axes(geometry, dtype):
    """Two and three axes outside the columns, permuted outputs, expanded batches, columns that are not side by side."""
    views = {
        "two axes": (lambda t: t.view(4, 3, 20, 48)[:, :2], 2),
        "three axes": (lambda t: t.view(4, 3, 20, 2, 24)[:, :2, :, :1], 2),
        "permuted": (lambda t: t.view(4, 3, 20, 48)[:, :2].permute(3, 1, 2, 0), 2),
        "expanded": (lambda t: t[: 20 * 48].view(1, 20, 48).expand(7, 20, 48), 1),
        "every second": (lambda t: t.view(12, 20, 48)[:, :, ::2], 1),
        "backward": (lambda t: t.view(12, 20, 48).transpose(0, 1), 0),
    }
    data = common.random_data(4 * 3 * 20 * 48, dtype, seed=47)
    there = data.cuda()
    for text, (view, dim) in views.items():
        want = op(view(data), dim)
        geometry(path=THREAD_COLUMN)
        assert common.description(view(there), dim)["path"] == "thread_column", text
        assert_same_bits(op(view(there), dim).cpu(), want, text)


@pytest.mark.cuda
@pytest.mark.parametrize("rows", [2, 4, 7, 8, 33])
def test_thread_columns_as_planned(rows):
    """Many columns, odd and even, as the planner wants them; results in other types than the usual one."""
    for columns, dtype in itertools.product((300_001, 300_000), (torch.float32, torch.bfloat16, torch.int8)):
        data = common.random_data((rows, columns), dtype, seed=48)
        there = data.cuda()
        assert rows > 8 or common.description(there, 0)["path"] == "thread_column"
        for out in (None, torch.float64, torch.float32):
            assert_same_bits(op(there, 0, dtype=out).cpu(), op(data, 0, dtype=out), f"({rows}, {columns}) to {out}")
