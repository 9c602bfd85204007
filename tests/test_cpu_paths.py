"""Bits on every path of the CPU engine: rows side by side, groups of narrow columns, strips, gathered and transposed
runs, integers in narrow lanes; each for several numbers of threads."""

import pytest
import torch

from tests import common
from tests.common import INTEGER, REAL, assert_same_bits, name, op
from tests.reference_tree import reference_sum

PATHS = {
    "short rows": ((1037, 3), 1),
    "rows of a vector and a part": ((1037, 33), 1),
    "rows of part of a leaf": ((523, 300), 1),
    "rows of leaves and a part": ((67, 3001), 1),
    "rows of more than a node": ((3, 70_001), 1),
    "two long rows": ((2, 300_001), 1),
    "columns of less than a pack": ((20_011, 3), 0),
    "narrow columns": ((10_003, 9), 0),
    "columns of a strip": ((2_003, 257), 0),
    "columns of two strips": ((67, 1500), 0),
    "columns in the middle": ((9, 130, 65), 1),
    "runs of memory": ((5, 7, 800), (0, 2)),
}
VIEWS = {
    "contiguous": lambda x: x,
    "sliced": lambda x: x[..., :-1],
    "every second": lambda x: x[..., ::2],
    "transposed": lambda x: x.transpose(0, -1),
    "expanded": lambda x: x[:1].expand_as(x),
    "overlapping": lambda x: x.as_strided(x.shape, (*x.stride()[:-2], 1, 1)),
}


@pytest.mark.parametrize("dtype", REAL, ids=name)
@pytest.mark.parametrize("path", PATHS)
def test_paths_are_the_reference_tree(threads, dtype, path):
    shape, dim = PATHS[path]
    base = common.random_data(shape, dtype, seed=24)
    for layout, view in VIEWS.items():
        x = view(base)
        for dims in (dim, None):
            want = reference_sum(x, dims)
            for count in (1, 2, 8):
                threads(count)
                assert_same_bits(op(x, dims), want, f"{layout} dim {dims}, {count} threads")


@pytest.mark.parametrize("dtype", INTEGER, ids=name)
@pytest.mark.parametrize("path", PATHS)
def test_integers_are_exact(threads, dtype, path):
    shape, dim = PATHS[path]
    base = common.random_data(shape, dtype, seed=25)
    for layout, view in VIEWS.items():
        x = view(base)
        for dims in (dim, None):
            want = torch.sum(x.long(), dims)
            for count in (1, 8):
                threads(count)
                assert torch.equal(op(x, dims), want), f"{layout} dim {dims}, {count} threads"


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32], ids=name)
def test_narrow_lanes_do_not_overflow(dtype):
    """Extremes only, around the counts after which the lanes of bytes and of 16-bit integers are full."""
    for value in (torch.iinfo(dtype).min, torch.iinfo(dtype).max):
        for n in (127, 128, 129, 8193, 32_767, 32_769, 65_536, 200_003):
            x = torch.full((n, 3), value, dtype=dtype)
            for view, dims in ((x, None), (x, 0), (x.t().contiguous(), 1), (x[:, :2], None), (x[:, :2], 0)):
                assert (op(view, dims) == value * view.numel() // op(view, dims).numel()).all(), f"{value} {n} {dims}"
