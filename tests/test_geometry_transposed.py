"""Rows that go down the columns of memory: which are read as tiles, and tiles of any kind give the same bits."""

import itertools
import json
import math
import pathlib
import shutil
import subprocess
import tempfile

import pytest
import torch

from tests import common
from tests.common import BLOCK_ROW, FLOATING, INTEGER, TRANSPOSED_ROW, assert_same_bits, name, op
from tests.family import FAMILY, results
from tests.test_elementary import COMPILER

MEMBERS = [member for member in FAMILY if torch.float32 not in member.composed]


def plan(shape, dtype=torch.float32, dim=None, view=lambda t: t.transpose(-1, -2), **options):
    """Of a view of a tensor that is never touched, so that it takes no memory."""
    return common.description(view(torch.empty(shape, dtype=dtype, device="meta")), dim, **options)


def channels_last(t):
    return t.permute(0, 3, 1, 2)


def test_rows_down_the_columns_are_read_as_tiles():
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.complex64):
        assert plan((4096, 4096), dtype)["path"] == "transposed_row", dtype
        assert plan((64, 56, 56, 256), dtype, view=channels_last)["path"] == "transposed_row", dtype
        assert plan((64, 56, 56, 256), dtype, (1, 2, 3), view=channels_last)["path"] == "transposed_row", dtype
    assert plan((4096, 4096), accumulate="compensated")["path"] == "transposed_row"
    assert plan((4096, 4096), view=lambda t: t[:, 3:].t())["path"] == "transposed_row"
    for operator in ("mean", "nansum", "sumsq", "norm"):
        assert plan((4096, 4096), op=operator)["path"] == "transposed_row", operator
    assert plan((128_256, 4096))["path"] == plan((200_000, 4096), torch.float64)["path"] == "transposed_row"


def test_other_rows_are_not():
    assert plan((500, 500))["path"] != "transposed_row"  # few leaves
    assert plan((8, 1 << 20))["path"] != "transposed_row"  # columns of few rows
    assert plan((1 << 20, 4))["path"] != "transposed_row"  # rows that share a sector
    assert plan((3001, 3001), torch.bfloat16)["path"] != "transposed_row"  # rows at odd multiples of 2 bytes
    assert plan((4096, 4096), view=lambda t: t)["path"] != "transposed_row"
    assert plan((4096, 4096), view=lambda t: t[:, ::2].t())["path"] != "transposed_row"
    assert plan((0, 5))["path"] == plan((5, 0))["path"] != "transposed_row"


def test_a_tile_fits_what_a_block_can_have():
    for rows, columns, dtype in itertools.product((32, 49, 784, 3136, 4096, 100_000), (32, 100, 5000), FLOATING):
        found = plan((rows, columns), dtype)
        if found["path"] == "transposed_row":
            assert found["shared_bytes"] <= 112 << 10, (rows, columns, dtype)


def test_a_tile_fits_every_device():
    """Beside what its kernel has for folding: with 64 KB a block, 99, 163 and 227."""
    if shutil.which(COMPILER[0]) is None:
        pytest.skip(f"no C++ compiler: {COMPILER[0]} is not found")
    core = common.ROOT / "csrc/core"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "plans")
        sources = [common.ROOT / "tests/cpp/plans.cpp", core / "shape.cpp", *core.glob("plan*.cpp")]
        build = [*COMPILER, "-std=c++20", "-O1", *map(str, sources), "-o", str(program)]
        compiled = subprocess.run(build, capture_output=True, text=True, timeout=240)
        assert compiled.returncode == 0, compiled.stderr
        found = json.loads(subprocess.run([program], capture_output=True, text=True, timeout=60, check=True).stdout)
    assert len(found) == 4
    for device in found:
        assert device["plans"] > 500 and device["most"] <= device["limit"], device


@pytest.mark.parametrize("dtype", INTEGER, ids=name)
def test_axes_of_integers_go_as_memory_does(dtype):
    """Their order is free, so the sum of all elements reads one run, however the dims are permuted."""
    x = common.random_data((6, 5, 4, 700), dtype, seed=1)
    for order in itertools.permutations(range(4)):
        view = x.permute(order)
        assert common.description(view)["loader"] == common.description(x)["loader"], order
        assert_same_bits(op(view), op(x), f"{order}")
        assert_same_bits(op(view[1:], (0, 1)), op(view[1:].contiguous(), (0, 1)), f"{order} dims 0, 1")
    repeated = x[0, 0].t().unsqueeze(1).expand(700, 3, 4)
    assert_same_bits(op(repeated), op(repeated.contiguous()), "repeated")


FORCED = [
    {"path": BLOCK_ROW},
    *(
        {"path": TRANSPOSED_ROW, "threads": threads, "threads_across": across}
        for threads, across in ((0, 0), (64, 0), (0, 2), (256, 16), (32, 64), (0, 1024))
    ),
]
# Memory of (outer, rows, columns): columns shorter than a leaf, of a leaf and of several, whole leaves and not.
MEMORY = [
    (1, 33, 800),
    (3, 49, 260),
    (1, 300, 96),
    (2, 784, 64),
    (1, 1024, 48),
    (2, 2048, 20),
    (1, 2049, 36),
    (1, 3136, 32),
    (2, 4099, 20),
    (1, 9000, 24),
]


def check(geometry, view, data, dim, text, **options):
    """`view` of the data on CUDA by every forced geometry against the CPU."""
    here, there = view(data), view(data.cuda())
    want = op(here, dim, **options)
    taken = False
    for forced in FORCED:
        geometry(**forced)
        taken |= common.description(there, dim, **options)["path"] == "transposed_row"
        for _ in range(2):  # the second finds the mailbox as the first has left it
            assert_same_bits(op(there, dim, **options).cpu(), want, f"{text} {forced} {options}")
    geometry()
    return taken


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", FLOATING, ids=name)
def test_tiles_of_any_kind(geometry, dtype):
    """Of all elements, and of each outer matrix; rows of cells of 16 bytes and of less; gaps between them."""
    pair = max(1, 4 // dtype.itemsize)  # the fewest elements that are a cell
    for memory in MEMORY:
        data = common.random_data(memory, dtype, seed=memory[1])
        odd = (memory[0], memory[1] - 1, memory[2] - 2 * pair)
        strides = (memory[1] * memory[2], memory[2], 1)
        views = {
            "whole": lambda t: t.transpose(1, 2),
            "odd": lambda t, s=odd, d=strides: t.view(-1).as_strided(s, d, pair).transpose(1, 2),
        }
        for text, view in views.items():
            for dim in (None, (1, 2)):
                assert check(geometry, view, data, dim, f"{memory} {text} dim {dim}")


@pytest.mark.cuda
@pytest.mark.parametrize("accumulate", ["compensated", "double"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.complex64], ids=name)
def test_other_accumulators(geometry, dtype, accumulate):
    for memory in ((1, 300, 96), (2, 2048, 20), (1, 4099, 24)):
        data = common.random_data(memory, dtype, seed=memory[1])
        check(geometry, lambda t: t.transpose(1, 2), data, None, f"{memory}", accumulate=accumulate)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.complex64], ids=name)
@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_other_operators(geometry, member, dtype):
    """Those that add what they load have tiles, too; the last leaf is not whole."""
    if dtype not in member.dtypes or dtype in member.composed or member.dims == "one":
        pytest.skip(f"{member} has no kernel for whole tensors of {dtype}")
    for rows, columns in ((49, 516), (300, 96), (2049, 36), (4099, 24)):
        data = member.data((rows, columns), dtype, seed=rows)
        dim = [0, 1] if member.dims == "any" else None
        want = results(member.ours(data.t(), dim, False))
        for forced in FORCED[1:4]:
            geometry(**forced)
            for got, expected in zip(results(member.ours(data.cuda().t(), dim, False)), want, strict=True):
                assert_same_bits(got.cpu(), expected, f"{member} ({rows}, {columns}) {forced}")
        geometry()


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex128], ids=name)
def test_axes_around_the_matrix(geometry, dtype):
    """One and two of them, kept axes outside and between, repeats, results of another type."""
    data = common.random_data((3, 2, 150, 48), dtype, seed=7)
    for text, view, dim in (
        ("one axis", lambda t: t.transpose(2, 3), None),
        ("two axes", lambda t: t.permute(1, 0, 3, 2), None),
        ("kept outside", lambda t: t.transpose(2, 3), (1, 2, 3)),
        ("kept between", lambda t: t.transpose(2, 3), (0, 2, 3)),
        ("repeated", lambda t: t[0].transpose(1, 2).expand(3, 2, 48, 150), (0, 2, 3)),
    ):
        wide = torch.complex128 if dtype.is_complex else torch.float64
        for options in ({}, {"dtype": wide}):
            assert check(geometry, view, data, dim, text, **options), text


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64], ids=name)
def test_launches_that_share_a_mailbox(geometry, dtype):
    """One group of leaves at a time, and three; the last one is not whole, and tiles have leaves of several."""
    leaf = common.leaf_elements(dtype)
    for rows, columns in ((49, 120 * leaf // 4 + 8), (leaf, 4204), (leaf + 4, 4000), (8 * leaf + 4, 600)):
        data = common.random_data((rows, columns), dtype, seed=rows)
        x, want = data.cuda().t(), op(data.t())
        for chunk, threads in itertools.product((0, 1024, 3 * 1024), (0, 64)):
            geometry(path=TRANSPOSED_ROW, threads=threads, chunk_leaves=chunk)
            assert common.description(x)["path"] == "transposed_row"
            for _ in range(2):
                assert_same_bits(op(x).cpu(), want, f"({rows}, {columns}) {chunk} {threads}")


@pytest.mark.cuda
def test_planned_tiles(geometry):
    """As the planner makes them, of many groups of leaves; a graph, and a second stream beside the first."""
    for shape, view in (
        ((2048, 1536), torch.t),
        ((3001, 1000), torch.t),
        ((5003, 500), torch.t),
        ((7, 56, 56, 128), channels_last),
        ((70, 7, 7, 640), channels_last),
    ):
        data = common.random_data(shape, torch.float32, seed=shape[0])
        x = view(data.cuda())
        assert common.description(x)["path"] == "transposed_row", shape
        want = op(view(data))
        assert_same_bits(op(x).cpu(), want, f"{shape}")
        other = torch.cuda.Stream()
        other.wait_stream(torch.cuda.current_stream())
        results = []
        for _ in range(10):
            results.append(op(x))
            with torch.cuda.stream(other):
                results.append(op(x))
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = op(x)
        for _ in range(3):
            captured.zero_()
            graph.replay()
            results.append(captured.clone())
        for result in results:
            assert_same_bits(result.cpu(), want, f"{shape}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64], ids=name)
def test_special_values(geometry, dtype):
    """-0.0 stays where a leaf ends behind the row; a NaN or an infinity anywhere is found, none around memory."""
    for rows, columns in ((300, 96), (2049, 36), (4099, 24)):
        base = torch.full((rows + 2, columns + 16), math.nan, dtype=dtype, device="cuda")
        x = base[1:-1, 8:-8]
        x.fill_(-0.0)
        places = (0, columns - 1, rows * columns // 2, rows * columns - 1)
        for forced in FORCED:
            geometry(**forced)
            assert math.copysign(1, op(x.t()).item()) == -1, f"{rows} {columns} {forced}"
            for value, place in itertools.product((math.nan, math.inf, 1.0), places):
                x[place // columns, place % columns] = value
                got = op(x.t()).item()
                assert got == value or (math.isnan(got) and math.isnan(value)), (
                    f"{rows} {columns} {value} {place} {forced}"
                )
                x[place // columns, place % columns] = -0.0
