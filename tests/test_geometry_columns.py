"""Columns of odd width, which warps stage leaf by leaf, and three columns of many rows, which lanes share."""

import itertools

import pytest
import torch

from tests import common
from tests.common import COLUMN, STAGED_COLUMN, assert_same_bits, name, op
from tests.test_geometry_threads import path


def odd_columns(dtype):
    """Widths whose rows have 129 to 1,200 bytes and are no whole packs."""
    return [w for w in (17, 33, 67, 101, 201, 257) if 128 < w * dtype.itemsize <= 1200 and w % common.components(dtype)]


def test_columns_of_odd_width_are_staged():
    assert path((64, 4096, 201), 1, torch.bfloat16) == path((512, 512, 101), 1, torch.float16) == "staged_column"
    assert (
        path((64, 4096, 201), 1, torch.bfloat16, pitch=220) == path((7, 11, 13, 1000, 101), (1, 3)) == "staged_column"
    )
    for shape in ((64, 4096, 200), (64, 4096, 61), (64, 4096, 501), (64, 200, 201), (100_003, 201)):
        assert path(shape, -2, torch.bfloat16) != "staged_column", shape  # packs, narrow, wide, few rows, many chunks
    assert path((64, 4096, 201), 1) != "staged_column" != path((64, 4096, 201), 1, torch.bfloat16, pitch=230)
    assert path((7, 11, 13, 1001, 101), (1, 3)) != "staged_column"  # runs that are not of whole leaves
    assert path((7, 11, 13, 1000, 101), (1, 3), torch.int8) != "staged_column"


def test_long_batches_of_three_columns_go_by_lanes():
    for shape in ((1 << 20, 3), (1_000_001, 3), (4, 40, 8196, 3), (16, 1 << 15, 3)):
        assert path(shape, len(shape) - 2) == "batch_column", shape
    assert path((100_003, 3), 0) != "batch_column" != path((1 << 20, 4), 0)
    assert path((1 << 20, 3), 0, pitch=4) != "batch_column" != path((1 << 20, 3), 0, offset=1)
    assert (
        path((1 << 20, 3), 0, torch.int8) != "batch_column" != path((1 << 33, 3), 0)
    )  # more chunks than a mailbox has


def assert_all_geometries(geometry, views, dim, geometries, text, **options):
    x, on_gpu = views
    want = op(x, dim, **options)
    for forced in geometries:
        geometry(**forced)
        assert_same_bits(op(on_gpu, dim, **options).cpu(), want, f"{text} {forced} {options}")
    geometry()


STAGED = [
    {"path": COLUMN},
    *({"path": STAGED_COLUMN, "threads": t, "chunk_leaves": c} for t in (32, 64, 128) for c in (0, 4, 32)),
]
ROUNDS = [{}, {"path": COLUMN}, *({"threads": t, "chunk_leaves": c} for t in (32, 64, 256) for c in (1, 1024, 8192))]


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [d for d in common.DTYPES if d.itemsize == 2], ids=name)
@pytest.mark.parametrize("offset, gap", [(0, 0), (1, 0), (3, 4)])
def test_staged_column_geometries(geometry, dtype, offset, gap):
    """Around the edges of leaves, runs and chunks; rows begin at any place of a pack, and the last one ends memory."""
    for rows, columns in itertools.product((256, 263, 4099), odd_columns(dtype)):
        pitch = columns + min(gap, columns // 8)
        data = common.random_data(offset + rows * pitch, dtype, seed=rows)
        views = [t[offset:].view(rows, pitch)[:, :columns] for t in (data, data.cuda())]
        geometry(path=STAGED_COLUMN, threads=32)
        assert common.description(views[1], 0)["path"] == "staged_column"
        for accumulate in (None, "compensated"):
            text = f"({rows}, {columns}) of {pitch} from {offset}"
            assert_all_geometries(geometry, views, 0, STAGED, text, accumulate=accumulate)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [d for d in common.DTYPES if 1 < d.itemsize < 16], ids=name)
def test_staged_columns_of_two_axes(geometry, dtype):
    """Batches whose rows are several runs of whole leaves, at all kinds of distances."""
    columns = odd_columns(dtype)[0]
    data = common.random_data((3, 5, 2, 136, columns), dtype, seed=5)
    there = data.cuda()
    for view, dim in (
        (lambda t: t, (1, 3)),
        (lambda t: t[:, :, 1], (1, 2)),
        (lambda t: t.transpose(0, 2), (1, 3)),
        (lambda t: t[:, 1:4, :, 8:], (0, 3)),
        (lambda t: t[0, 0].expand(4, 2, 136, columns), (0, 2)),
    ):
        on_gpu = view(there)
        geometry(path=STAGED_COLUMN, threads=32)
        assert common.description(on_gpu, dim)["path"] == "staged_column"
        for accumulate in (None, "compensated"):
            assert_all_geometries(geometry, (view(data), on_gpu), dim, STAGED, f"{dim}", accumulate=accumulate)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
def test_long_batches_of_three_columns(geometry, dtype):
    """The last leaf and the last pack whole or not; one batch, and several; blocks that begin behind the end."""
    for shape in ((270_400, 3), (270_403, 3), (66, 4100, 3), (9, 32_777, 3)):
        data = common.random_data((2, *shape), dtype, seed=shape[0])
        there = data.cuda()
        for view in (lambda t: t[0], lambda t: t[:, ..., : 270_399 if t.dim() == 3 else 4096, :]):
            views = (view(data), view(there))
            assert_all_geometries(geometry, views, -2, ROUNDS, f"{tuple(views[0].shape)}")
    wide = torch.float64 if dtype.is_floating_point else dtype
    assert_all_geometries(geometry, views, -2, ROUNDS[:3], "another result type", dtype=wide)


@pytest.mark.cuda
@pytest.mark.parametrize("shape, dim", [((300_003, 3), 0), ((8, 264, 101), (0, 1)), ((4, 3, 264, 101), (0, 2))])
def test_nan_and_infinity_stay_in_their_columns(geometry, shape, dim):
    x = torch.zeros(shape)
    for column, value in enumerate((float("nan"), float("inf"), -float("inf"))):
        x[..., -1 - column, column] = value
    assert_all_geometries(geometry, (x, x.cuda()), dim, [*STAGED, *ROUNDS], f"{shape}")
