"""Rows longer than one load a lane, of up to two leaves: every launch geometry gives the bits of the CPU."""

import itertools

import pytest
import torch

from tests import common
from tests.common import BLOCK_ROW, SHORT_ROW, STAGED_ROW, WARP_ROW, assert_same_bits, name, op


def lengths_of_a_leaf(dtype, step):
    """Every length from one load a lane to two leaves, `step` apart, and those around each load and leaf."""
    leaf = common.leaf_elements(dtype)
    edges = {edge + d for edge in range(leaf // 4, 2 * leaf + 1, leaf // 4) for d in (-1, 0, 1)}
    return sorted(edges | set(range(leaf // 4 + 1, 2 * leaf + 2, step)))


@pytest.mark.parametrize("sms", [1, 132])
def test_paths_of_rows_of_a_leaf(sms):
    """Whole packs go at once, odd rows through shared memory where they are many, and one by one where they are few."""
    for n, rows, path in ((256, 3, "short_row"), (512, 3, "short_row"), (516, 3, "warp_row"), (257, 3, "warp_row")):
        assert common.description(torch.empty(rows, n), 1, sms=sms)["path"] == path, (rows, n)
    for n, loads in ((4, 1), (128, 1), (132, 2), (256, 2), (260, 4), (512, 4)):
        assert common.description(torch.empty(3, n), 1, sms=sms)["lane_loads"] == loads, n
    for n, path in ((129, "staged_row"), (257, "staged_row"), (511, "staged_row"), (513, "warp_row")):
        plan = common.description(torch.empty(100_000, n), 1, sms=sms)
        assert plan["path"] == path, n
        assert path != "staged_row" or 0 < plan["tile_rows"] * n * 4 <= 48 * 1024 - 16
    padded = torch.empty(100_000, 512)
    for n in (129, 254, 511):  # the last pack is not whole; gaps of more than the row are not read
        wanted = "staged_row" if 2 * n >= 512 else "warp_row"
        assert common.description(padded[:, :n], 1, sms=sms)["path"] == wanted, n


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
def test_whole_rows_of_a_leaf(geometry, dtype):
    """Rows of whole packs, with one to four loads a lane, around the edges of blocks and groups."""
    vector = common.components(dtype)
    packs = sorted({*range(1, 130, 7), 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128})
    for rows, gap, accumulate in ((1, 0, None), (35, 0, None), (67, vector, None), (35, 0, "compensated")):
        for n in (vector * count for count in packs):
            data = common.random_data(rows * (n + gap), dtype, seed=41)
            want = op(data.view(rows, n + gap)[:, :n], 1, accumulate=accumulate)
            there = data.cuda().view(rows, n + gap)[:, :n]
            for path, threads, group in ((0, 0, 0), (SHORT_ROW, 128, 1), (SHORT_ROW, 256, 2), (SHORT_ROW, 512, 4)):
                geometry(path=path, threads=threads, rows_per_group=group)
                limit = common.leaf_elements(dtype)
                expected = "short_row"
                if path == 0 and rows == 1:
                    expected = "tiny_row"
                elif path == 0 and gap == 0 and n == 2:
                    expected = "thread_row"
                assert n > limit or common.description(there, 1)["path"] == expected
                got = op(there, 1, accumulate=accumulate).cpu()
                assert_same_bits(got, want, f"({rows}, {n}) gap {gap} path {path} threads {threads} group {group}")


def test_paths_of_one_row():
    for n, path in ((4, "tiny_row"), (512, "tiny_row"), (16384, "tiny_row"), (16388, "block_row"), (513, "warp_row")):
        assert common.description(torch.empty(n))["path"] == path, n


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
def test_one_row_of_whole_packs(geometry, dtype):
    """One to thirty-two leaves and one pack more, with any number of loads, lanes and warps in use."""
    leaf, vector = common.leaf_elements(dtype), common.components(dtype)
    data = common.random_data(33 * leaf, dtype, seed=44)
    on_gpu = data.cuda()
    edges = {
        edge + d
        for edge in (*range(0, 6 * leaf, leaf // 4), *range(6 * leaf, 33 * leaf, 3 * leaf // 4), 16 * leaf, 32 * leaf)
        for d in (-vector, 0, vector)
    }
    for n in sorted(n for n in edges if n > 0):
        for accumulate in (None, "compensated"):
            want = op(data[:n], accumulate=accumulate)
            geometry()
            assert n > 32 * leaf or common.description(on_gpu[:n])["path"] == "tiny_row"
            for path in (0, WARP_ROW, BLOCK_ROW):
                geometry(path=path)
                assert_same_bits(op(on_gpu[:n], accumulate=accumulate).cpu(), want, f"n={n} path {path}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
@pytest.mark.parametrize("offset, gap", [(0, 0), (1, 0), (0, 1), (3, 2)])
def test_odd_rows_of_a_leaf(geometry, dtype, offset, gap):
    """Lengths from one load a lane to two leaves, through shared memory where they may, around the edges of tiles."""
    leaf = common.leaf_elements(dtype)
    for n, rows in itertools.product(lengths_of_a_leaf(dtype, max(1, leaf // 40)), (2, 35)):
        pitch = n + gap
        data = common.random_data(offset + rows * pitch - gap, dtype, seed=42)
        there, here = (t.as_strided((rows, n), (pitch, 1), offset) for t in (data.cuda(), data))
        for accumulate in (None, "compensated"):
            want = op(here, 1, accumulate=accumulate)
            for path, groups in ((0, 0), (STAGED_ROW, 0), (STAGED_ROW, 1), (STAGED_ROW, 4)):
                geometry(path=path, rows_per_group=groups)
                got = op(there, 1, accumulate=accumulate).cpu()
                assert_same_bits(got, want, f"({rows}, {n}) of {pitch} from {offset}, path {path} groups {groups}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int16], ids=name)
def test_every_length_of_a_leaf(geometry, dtype):
    """No length is like another: each from one load a lane to a leaf, staged if it may be and as the planner wants."""
    leaf = common.leaf_elements(dtype)
    for n in range(leaf // 4, leaf + 2):
        data = common.random_data(5 * n + 1, dtype, seed=43)
        for offset in (0, 1):
            want = op(data[offset : offset + 5 * n].view(5, n), 1)
            there = data.cuda()[offset : offset + 5 * n].view(5, n)
            for path in (0, STAGED_ROW):
                geometry(path=path)
                assert_same_bits(op(there, 1).cpu(), want, f"n={n} offset {offset} path {path}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
def test_a_whole_leaf_and_the_rest(geometry, dtype):
    """An odd or even number of whole leaves and a rest of whole packs or not, by a warp and by the warps of a block."""
    leaf, vector = common.leaf_elements(dtype), common.components(dtype)
    rests = [vector, leaf // 4 - vector, leaf // 4, leaf // 2 + vector, leaf - vector, leaf - vector + 1, 1]
    for leaves, rest in itertools.product((1, 2, 3, 4, 5, 9), rests):
        n = leaves * leaf + rest
        pitch = -(-n // vector) * vector
        data = common.random_data(3 * pitch, dtype, seed=45)
        there, here = (t.view(3, pitch)[:, :n] for t in (data.cuda(), data))
        for accumulate in (None, "compensated"):
            want = op(here, 1, accumulate=accumulate)
            for path, threads, chunk in ((WARP_ROW, 64, 0), (BLOCK_ROW, 32, 0), (BLOCK_ROW, 128, 4)):
                geometry(path=path, threads=threads, chunk_leaves=chunk)
                got = op(there, 1, accumulate=accumulate).cpu()
                assert_same_bits(got, want, f"{leaves} leaves + {rest} path {path} threads {threads} chunk {chunk}")
