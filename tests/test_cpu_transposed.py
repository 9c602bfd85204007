"""Sums down the columns of memory on the CPU: leaves side by side, short and long columns, tiles that end anywhere. The
bits are those of a contiguous copy, whose elements have the same order."""

import math

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

from tests import common
from tests.common import COMPLEX, REAL, assert_same_bits, name, op
from tests.family import FAMILY, results

# Memory that is read down its columns, the last of which is the one that moves fastest: (batch, rows, columns).
MEMORY = {
    "leaves side by side": (1, 4096, 40),
    "leaves side by side, the last vector overlaps": (1, 2048, 77),
    "leaves side by side, two strips": (1, 1024, 1030),
    "leaves side by side, a strip of less than a vector": (1, 2048, 67),
    "leaves side by side, in batches": (3, 1024, 24),
    "few columns of whole leaves": (1, 4096, 3),
    "short columns": (1, 300, 501),
    "short columns, in batches of less than a leaf": (40, 30, 17),
    "short columns, in odd batches": (5, 321, 50),
    "columns of a few rows": (1, 3, 9000),
    "columns of a vector": (1, 8, 4001),
    "long columns": (1, 2900, 129),
    "long columns, in batches": (3, 2101, 40),
    "long columns, cut into parts": (1, 40_003, 21),
    "few long columns": (1, 30_001, 3),
    "wide": (1, 1100, 700),
}
VIEWS = {
    "whole": lambda x: x.transpose(1, 2),
    "at an odd address": lambda x: (
        x.flatten()[1 : 1 + x.shape[0] * (x.shape[1] - 1) * x.shape[2]]
        .view(x.shape[0], x.shape[1] - 1, x.shape[2])
        .transpose(1, 2)
    ),
    "with gaps": lambda x: x[:, :, 1:].transpose(1, 2),
}
MEMBERS = [member for member in FAMILY if torch.float32 not in member.composed]


@pytest.mark.parametrize("dtype", [*REAL, *COMPLEX], ids=name)
@pytest.mark.parametrize("memory", MEMORY)
def test_bits_are_those_of_a_copy(threads, dtype, memory):
    base = common.random_data(MEMORY[memory], dtype, seed=31)
    for layout, view in VIEWS.items():
        x = view(base)
        for dims in (None, (1, 2)):
            want = op(x.contiguous(), dims)
            for count in (1, 2, 8):
                threads(count)
                assert_same_bits(op(x, dims), want, f"{layout} dims {dims}, {count} threads")


@pytest.mark.parametrize("accumulate", ["double", "compensated"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64], ids=name)
def test_other_accumulators(threads, dtype, accumulate):
    for shape in MEMORY.values():
        x = common.random_data(shape, dtype, seed=32).transpose(1, 2)
        want = op(x.contiguous(), accumulate=accumulate)
        for count in (1, 8):
            threads(count)
            assert_same_bits(op(x, accumulate=accumulate), want, f"{shape}, {count} threads")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.int32, torch.complex64], ids=name)
@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_other_operators(threads, member, dtype):
    if dtype not in member.dtypes or dtype in member.composed or member.dims == "one":
        pytest.skip(f"{member} has no kernel for whole tensors of {dtype}")
    # of one byte, a leaf has 2,048 elements: columns of fewer, of as many and of some more
    for shape in ((4096, 40), (300, 501), (1030, 40), (2047, 9), (2048, 9), (2049, 9), (5003, 45)):
        x = member.data(shape, dtype, seed=33).t()
        dim = [0, 1] if member.dims == "any" else None
        want = [result.clone() for result in results(member.ours(x.contiguous(), dim, False))]
        for count in (1, 8):
            threads(count)
            for got, expected in zip(results(member.ours(x, dim, False)), want, strict=True):
                assert_same_bits(got, expected, f"{member} {shape}, {count} threads")


@st.composite
def views(draw):
    """Sizes of memory around the constants of the engine, and a view of it: permuted, cut, with steps and repeats."""
    edges = [1, 2, 3, 8, 9, 16, 31, 64, 65, 130, 257, 512, 1023, 1025, 1030, 1537, 2047, 2048, 2049, 4100]
    sizes = draw(st.lists(st.sampled_from(edges), min_size=2, max_size=4))
    while math.prod(sizes) > 150_000:
        sizes[sizes.index(min(s for s in sizes if s > 1))] = 1
    order = draw(st.permutations(range(len(sizes))))
    cut, first, step = draw(st.integers(0, len(sizes) - 1)), draw(st.integers(0, 1)), draw(st.integers(1, 3))
    repeats = draw(st.sampled_from([0, 0, 0, 3]))

    def view(x):
        x = x.narrow(cut, 0, x.shape[cut])[(slice(None),) * cut + (slice(first, None, step),)].permute(order)
        return x.unsqueeze(1).expand(x.shape[0], repeats, *x.shape[1:]) if repeats else x

    return sizes, view


@hypothesis.settings(max_examples=60)
@hypothesis.given(problem=views(), count=st.sampled_from([1, 2, 8]), data=st.data())
def test_any_view_has_the_bits_of_its_copy(problem, count, data):
    sizes, view = problem
    dtype = data.draw(
        st.sampled_from([torch.float32, torch.float16, torch.float64, torch.int8, torch.bool, torch.int16])
    )
    whole = [m for m in MEMBERS if m.dims != "one" and dtype in m.dtypes and dtype not in m.composed]
    member = data.draw(st.sampled_from(whole))
    x = view(member.data(tuple(sizes), dtype, seed=37))
    hypothesis.assume(x.numel() > 0)
    dim = list(range(x.dim())) if member.dims == "any" else None
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        got, want = (results(member.ours(t, dim, False)) for t in (x, x.contiguous()))
    finally:
        torch.set_num_threads(before)
    for one, other in zip(got, want, strict=True):
        assert_same_bits(one, other, f"{member} {dtype} {sizes}, {tuple(x.shape)} by {x.stride()}, {count} threads")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8], ids=name)
@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_repeated_rows(member, dtype):
    """Leaves of expanded rows are computed once."""
    if dtype not in member.dtypes or dtype in member.composed or member.dims in ("whole", "one"):
        pytest.skip(f"{member} has no kernel for columns of {dtype}")
    row = member.data((1, 300), dtype, seed=34)
    for rows in (2, 8, 9, 64, 1003, 70_000 // 8):
        x = row.expand(rows, 300)
        pairs = zip(results(member.ours(x, 0, False)), results(member.ours(x.contiguous(), 0, False)), strict=True)
        for got, want in pairs:
            assert_same_bits(got, want, f"{member} {rows} rows")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8], ids=name)
@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_repeated_results(member, dtype):
    """Results along expanded axes are computed once: of rows and of columns, in front, in the middle and behind."""
    if dtype not in member.dtypes or dtype in member.composed or member.dims == "whole":
        pytest.skip(f"{member} has no kernel for rows of {dtype}")
    for shape, sizes, dim in (
        ((7, 1, 40), (7, 5, 40), 2),
        ((7, 1, 40), (7, 5, 40), 0),
        ((1, 30, 40), (6, 30, 40), 1),
        ((1, 3000, 1), (6, 3000, 3), 1),
        ((1, 1, 50, 1, 9), (2, 3, 50, 4, 9), 2),
        ((1, 2, 9, 1, 60), (2, 2, 9, 4, 60), 4),
    ):
        x = member.data(shape, dtype, seed=36)
        kept = [size for d, size in enumerate(sizes) if d != dim]
        pairs = zip(results(member.ours(x.expand(sizes), dim, False)), results(member.ours(x, dim, False)), strict=True)
        for got, once in pairs:
            want = once.expand(kept)
            assert_same_bits(got, want, f"{member} {shape} as {sizes} dim {dim}")


@pytest.mark.parametrize("dtype", REAL, ids=name)
def test_special_values(dtype):
    """-0.0 stays, and a NaN or an infinity anywhere is found."""
    for shape in ((1024, 20), (300, 60), (2900, 20)):
        zeros = torch.full(shape, -0.0, dtype=dtype)
        assert math.copysign(1, op(zeros.t()).item()) == -1, f"{shape}"
        for value in (math.nan, math.inf):
            for place in (0, 1, shape[1], zeros.numel() // 2, zeros.numel() - 1):
                x = torch.zeros(shape, dtype=dtype)
                x.view(-1)[place] = value
                assert_same_bits(op(x.t()), op(x.t().contiguous()), f"{shape} {value} at {place}")
                assert math.isnan(op(x.t()).item()) or value == math.inf


def test_nothing_is_read_around_memory():
    """Of the memory in front of a matrix, between its rows and behind it."""
    for shape in MEMORY.values():
        batch, rows, columns = shape
        base = torch.full((batch * rows * (columns + 5) + 64,), math.nan)
        view = base[32:-32].view(batch, rows, columns + 5)[:, :, :columns]
        view.copy_(common.random_data(shape, torch.float32, seed=35))
        x = view.transpose(1, 2)
        assert_same_bits(op(x), op(x.contiguous()), f"{shape}")
        assert not op(x).isnan()
