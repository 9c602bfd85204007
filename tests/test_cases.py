"""Faults that public projects had in reductions: a small literal input and the right value, for every operator."""

import math

import pytest
import torch

from tests import common
from tests.common import REAL, name
from tests.family import FAMILY, ops, results

inf, nan = math.inf, math.nan

floats = pytest.mark.parametrize("dtype", REAL, ids=name)


def tensor(values, dtype, device):
    return torch.tensor(values, dtype=dtype, device=device)


# --- start values, NaN, ties, numbering -----------------------------------------------------------------------------


@floats
def test_start_values_are_infinite(device, dtype):
    """B06: the largest finite number is not the identity of a minimum."""
    high, low = torch.full((10,), inf, dtype=dtype, device=device), torch.full((10,), -inf, dtype=dtype, device=device)
    assert ops.amin(high).item() == inf and ops.argmin(high).item() == 0
    assert ops.amax(low).item() == -inf and ops.argmax(low).item() == 0
    assert [v.item() for v in ops.min(high, 0)] == [inf, 0] and [v.item() for v in ops.max(low, 0)] == [-inf, 0]
    assert [v.item() for v in ops.aminmax(high)] == [inf, inf] and [v.item() for v in ops.aminmax(low)] == [-inf, -inf]
    assert ops.norm(low, inf).item() == inf and ops.norm(high, -inf).item() == inf


@pytest.mark.parametrize("dtype", [d for d in common.INTEGER if d != torch.bool], ids=name)
def test_start_values_of_integers(device, dtype):
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    for n in (1, 10, 3000):
        high, low = (torch.full((n,), v, dtype=dtype, device=device) for v in (most, least))
        assert ops.amin(high).item() == most and ops.argmin(high).item() == 0
        assert ops.amax(low).item() == least and ops.argmax(low).item() == 0


SEES_NAN = [
    member
    for member in FAMILY
    if member.differentiable and member.name not in ("nansum", "nanmean", "norm 0", "max.dim", "min.dim")
]


@floats
@pytest.mark.parametrize("n", [1025, 1 << 17])
def test_nan_at_every_position(device, dtype, n):
    """B08: in any lane, leaf or block a NaN is the result, and it is its index that is found."""
    for position in (0, 31, 32, 255, 256, n // 2, n - 1):
        x = torch.ones(n, dtype=dtype, device=device)
        x[position] = nan
        for member in SEES_NAN:
            for value in results(member.ours(x, 0 if member.dims == "one" else None, False)):
                assert value.isnan().item(), f"{member}, NaN at {position}"
        for word in ("argmax", "argmin"):
            assert getattr(ops, word)(x).item() == position
        for word in ("max", "min"):
            value, index = getattr(ops, word)(x, 0)
            assert value.isnan().item() and index.item() == position
        assert ops.any(x).item() and ops.all(x).item() and ops.nansum(x).item() == float(tensor(n - 1, dtype, "cpu"))
        assert ops.nanmean(x).item() == 1
    x[:] = nan
    assert ops.argmax(x).item() == 0 and ops.nansum(x).item() == 0 and ops.nanmean(x).isnan().item()


@pytest.mark.parametrize("dtype", [d for d in common.DTYPES if not d.is_complex and d != torch.bool], ids=name)
def test_ties_go_to_the_lowest_index(device, dtype):
    """B09: whichever thread finds which."""
    assert ops.argmax(torch.ones(16, dtype=dtype, device=device)).item() == 0
    rows = tensor([[2, 3, 0, 3, 3], [1, 3, 1, 3, 1]], dtype, device)
    assert ops.argmax(rows, 1).tolist() == ops.max(rows, 1)[1].tolist() == [1, 1]
    assert ops.argmin(rows, 1).tolist() == [2, 0]
    long = torch.zeros(1 << 20, dtype=dtype, device=device)
    assert ops.argmax(long).item() == ops.argmin(long).item() == 0
    long[300] = long[700_000] = 1
    assert ops.argmax(long).item() == 300
    by_column = ops.argmax(long.view(1024, 1024), 0)  # 700,000 is row 683 of column 608
    assert by_column.count_nonzero().item() == 1 and by_column[608].item() == 683


@floats
def test_zeros_of_both_signs_are_a_tie(device, dtype):
    """The first of them is found, in rows, columns and over leaves, as torch's; the value is +0.0."""
    for first, second in ((-0.0, 0.0), (0.0, -0.0)):
        for rest in (0, 1, 7, 40, 3000):
            x = tensor([first, second, *[second] * rest], dtype, device)
            for row, dim in ((x, 0), (x.expand(3, -1).contiguous(), 1), (x[:, None].repeat(1, 3), 0)):
                for word in ("argmax", "argmin"):
                    index = getattr(ops, word)(row, dim)
                    assert not index.any(), f"{word} of {first}, {second}, {rest} more"
                    assert torch.equal(index.cpu(), getattr(torch, word)(row.cpu(), dim))
                for word in ("max", "min"):
                    value, index = getattr(ops, word)(row, dim)
                    assert not index.any(), f"{word} of {first}, {second}, {rest} more"
                    assert not value.any() and not value.signbit().any()
            assert ops.argmax(x).item() == ops.argmin(x).item() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8], ids=name)
def test_flat_indices_follow_the_logical_order(device, dtype):
    """B10: not the order in memory."""
    x = tensor([[3, 1], [4, 2]], dtype, device)
    columns = x.t().contiguous().t()
    assert ops.argmax(columns).item() == 2 and ops.argmin(columns).item() == 1
    assert ops.argmax(x.flip(0)).item() == 0 and ops.argmax(x.flip(1)).item() == 3
    assert ops.argmax(tensor([7], dtype, device).expand(4)).item() == 0
    image = common.random_data((2, 3, 4, 5), dtype, device=device)
    for view in (image.to(memory_format=torch.channels_last), image.permute(3, 1, 0, 2), image[:, 1:, ::2]):
        for word in ("argmax", "argmin"):
            flat = getattr(ops, word)(view)
            assert flat.item() == getattr(torch, word)(view.contiguous().cpu()).item()


# --- precision ------------------------------------------------------------------------------------------------------


def test_halves_are_not_accumulated_in_halves(device):
    """B18, B19: partial results that do not fit, and counts that are not exact."""
    half, brain = torch.float16, torch.bfloat16
    alternating = tensor([32000] * 4 + [-32000] * 4, half, device)
    assert ops.nansum(alternating).item() == ops.mean(alternating).item() == 0
    for word in ("nansum", "sumsq"):
        assert getattr(ops, word)(torch.ones(390, dtype=brain, device=device)).item() == 390
        assert getattr(ops, word)(torch.ones(4096, dtype=half, device=device)).item() == 4096
        columns = getattr(ops, word)(torch.ones(4096, 3, dtype=half, device=device), 0)
        assert columns.tolist() == [4096] * 3
    for rows in (tensor([[300, 300, 0.001]], half, device), tensor([[300], [300], [0.001]], half, device)):
        assert ops.prod(rows, int(rows.shape[0] == 1)).tolist() == [90.0625]
    for word in ("mean", "nanmean"):
        operator = getattr(ops, word)
        assert operator(torch.ones(100_000, dtype=half, device=device)).item() == 1
        assert operator(tensor([40000] * 3, half, device)).item() == 40000
        assert operator(torch.ones(100_000, 2, dtype=half, device=device), 0).tolist() == [1, 1]
    assert ops.var(tensor([1000, 1001, 1002], half, device)).item() == 1
    assert ops.var(torch.full((1000,), 300.0, dtype=half, device=device)).item() == 0
    assert ops.logsumexp(tensor([1e4, 1e4], half, device), 0).item() == 1e4


def test_norms_do_not_overflow_or_vanish(device):
    """B20, B59."""

    def norm(values, dtype=torch.float32, order=2):
        return ops.norm(tensor(values, dtype, device), order)

    half = torch.float16
    assert norm([200] * 3, half).item() == 346.5
    assert norm([100] * 9, half).item() == 300 and norm([256] * 5, half).item() == 572.5
    assert norm([1e20, 1, 1]).item() == torch.tensor(1e20).item()
    torch.testing.assert_close(norm([1e-30, 1e-30]).cpu(), torch.tensor(2**0.5 * 1e-30), rtol=2e-7, atol=0)
    assert norm([1e-45]).item() == norm([1e-45], order=1).item() == norm([1e-45], order=inf).item() == 2**-149
    assert norm([3e-310, 4e-310], torch.float64).item() == 5e-310
    assert norm([3e300, 4e300], torch.float64).item() == pytest.approx(5e300, rel=1e-15)
    assert norm([inf, 1]).item() == inf and norm([nan, inf]).isnan().item()
    torch.testing.assert_close(norm([1e20, 1e20], order=3).cpu(), torch.tensor(2 ** (1 / 3) * 1e20), rtol=1e-6, atol=0)
    torch.testing.assert_close(norm([1e-30] * 2, order=4).cpu(), torch.tensor(2**0.25 * 1e-30), rtol=1e-6, atol=0)


def test_logsumexp_of_infinities_and_large_numbers(device):
    """B15."""
    for dtype in REAL:

        def logsumexp(*values, dtype=dtype):
            return ops.logsumexp(tensor(values, dtype, device), 0).item()

        assert logsumexp(-inf, -inf) == -inf and logsumexp(-inf, 2) == 2 and logsumexp(inf, 1) == inf
        assert math.isnan(logsumexp(inf, nan)) and logsumexp(-inf) == -inf and logsumexp(inf, -inf) == inf
        assert logsumexp(1e4, -1e4) == float(tensor(1e4, dtype, "cpu"))
    maximum, total = ops.softmax_stats(tensor([[1, 1, 0], [-inf, 2, -inf]], torch.float32, device))
    assert maximum.tolist() == [1, 2]
    torch.testing.assert_close(total.cpu(), torch.tensor([2 + math.exp(-1), 1]))


def test_subnormals_are_kept(device):
    """B59."""
    least = 2**-149
    x = tensor([least] * 3, torch.float32, device)
    assert ops.nansum(x).item() == 3 * least and ops.mean(x).item() == least
    assert ops.amax(tensor([-1, least], torch.float32, device)).item() == least
    assert ops.argmax(tensor([0, least], torch.float32, device)).item() == 1
    assert ops.any(x).item() and ops.all(x).item() and ops.count_nonzero(x).item() == 3
    assert ops.prod(tensor([least, 2], torch.float32, device)).item() == 2 * least
    assert (torch.tensor([1e-40], device=device) * 1).item() > 0


def test_variance_of_large_numbers(device):
    """E[x^2] - E[x]^2 would cancel to nothing, or below 0."""
    for dtype, offset in ((torch.float32, 1e4), (torch.float64, 1e9)):
        x = tensor([offset + v for v in (4, 7, 13, 16)], dtype, device)
        assert ops.var(x).item() == 30 and ops.var(x, correction=0).item() == 22.5
        many = x.repeat(5000)
        torch.testing.assert_close(
            ops.var(many, correction=0).cpu(), torch.tensor(22.5, dtype=dtype), rtol=1e-5, atol=0
        )
        assert [v.item() for v in ops.var_mean(torch.full((100_000,), offset, dtype=dtype, device=device))] == [
            0,
            offset,
        ]
    wide = tensor([1e30, 3e30], torch.float64, device)
    assert ops.std(wide, correction=0).item() == pytest.approx(1e30, rel=1e-15)
    assert ops.var(tensor([5], torch.float32, device)).isnan().item()
    assert ops.var(tensor([5], torch.float32, device), correction=0).item() == 0


# --- shapes ---------------------------------------------------------------------------------------------------------


def test_norms_of_nothing(device):
    x = torch.ones(2, 0, device=device)
    assert ops.norm(x, 0, 1).tolist() == [0, 0] and ops.norm(x, 2, 1).tolist() == [0, 0]
    for order in (inf, -inf, -1):
        with pytest.raises((RuntimeError, IndexError)):
            ops.norm(x, order, 1)
        assert ops.norm(x, order, 0).shape == (0,)


@pytest.mark.parametrize("member", [m for m in FAMILY if m.differentiable and m.dims != "whole"], ids=str)
def test_nothing_to_read_and_nothing_to_write(device, member):
    """B25: no launch of 0 blocks, forward or backward, and no error left behind for the next call."""
    x = torch.ones(4, 5, 0, device=device, requires_grad=True)
    for dim, shape in ((1, (4, 0)), *([(2, (4, 5))] if member.empty else [])):
        first = results(member.ours(x, dim, False))[0]
        assert first.shape == shape
        (gradient,) = torch.autograd.grad(first.sum(), x, allow_unused=member.name == "norm 0")
        assert gradient is None or gradient.shape == (4, 5, 0)
    assert ops.sum(torch.ones(10, device=device)).item() == 10


LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.transpose(1, 3),
    "channels_last": lambda x: x.to(memory_format=torch.channels_last),
    "expanded": lambda x: x[:1].expand(5, 3, 4, 5),
    "sliced": lambda x: x[:, 1:, ::2],
}


@pytest.mark.parametrize("member", FAMILY, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_meta_has_the_sizes_and_strides_of_the_real_results(device, member, layout):
    """B28: both are contiguous, in any layout."""
    x = LAYOUTS[layout](common.random_data((2, 3, 4, 5), torch.float32, device=device))
    fake = LAYOUTS[layout](torch.empty(2, 3, 4, 5, device="meta"))
    for dim, keepdim in member.calls(x):
        both = results(member.ours(x, dim, keepdim)), results(member.ours(fake, dim, keepdim))
        for real, meta in zip(*both, strict=True):
            assert real.shape == meta.shape and real.stride() == meta.stride() and real.dtype == meta.dtype
            assert real.is_contiguous()


# --- dtypes ---------------------------------------------------------------------------------------------------------


def test_small_integers_do_not_wrap(device):
    """B41: sums and products are int64, extremes keep their type, means of integers raise."""
    assert ops.prod(tensor([100, 100], torch.int8, device)).item() == 10000
    assert ops.prod(tensor([[100, 100]], torch.int8, device), 1).tolist() == [10000]
    assert ops.prod(tensor([True, True, False], torch.bool, device)).item() == 0
    assert ops.prod(tensor([2**31, 2**31, 4], torch.int64, device)).item() == 0  # wraps, as torch's
    assert ops.prod(tensor([300, 2], torch.int32, device), dtype=torch.uint8).item() == 88
    assert ops.nansum(torch.ones(300, dtype=torch.uint8, device=device)).item() == 300
    assert ops.sumsq(tensor([100, 100], torch.int8, device)).item() == 20000
    assert ops.count_nonzero(torch.ones(320, dtype=torch.bool, device=device)).item() == 320
    for dtype in common.INTEGER:
        x = torch.ones(3, dtype=dtype, device=device)
        for place in (x, x.to("meta")):
            for word in ("prod", "nansum", "sumsq", "count_nonzero"):
                assert getattr(ops, word)(place).dtype == torch.int64, word
            for word in ("amax", "amin", "max", "min"):
                assert getattr(ops, word)(place).dtype == dtype, word
            for word in ("any", "all"):
                assert getattr(ops, word)(place).dtype == (torch.uint8 if dtype == torch.uint8 else torch.bool)
            if dtype != torch.bool:  # which torch's refuses, too
                assert ops.argmax(place).dtype == torch.int64
            for word in ("mean", "nanmean", "var", "std", "var_mean", "norm"):
                with pytest.raises(RuntimeError, match=f"gpureduce::{word}"):
                    getattr(ops, word)(place)
            assert ops.mean(place, dtype=torch.float32).dtype == torch.float32
            assert ops.logsumexp(place, 0).dtype == torch.float32


def test_complex_numbers(device):
    """B50: norms and variances are real, and there is no order."""
    for dtype, real in ((torch.complex64, torch.float32), (torch.complex128, torch.float64)):
        x = tensor([3 + 4j, 0], dtype, device)
        for order, want in ((2, 5), (1, 5), (inf, 5), (0, 1), (-inf, 0), (3, 5)):
            for place in (x, x.to("meta")):
                value = ops.norm(place, order)
                assert value.dtype == real
            torch.testing.assert_close(ops.norm(x, order).cpu(), torch.tensor(want, dtype=real))
        assert ops.sumsq(x).item() == 25 and ops.sumsq(x).dtype == real
        assert ops.prod(tensor([1 + 2j, 3 - 1j], dtype, device)).item() == 5 + 5j
        assert ops.var(x, correction=0).item() == 6.25 and ops.var(x).dtype == real
        assert ops.mean(x).item() == 1.5 + 2j and ops.any(x).item() and not ops.all(x).item()
        for word in ("amax", "amin", "max", "min", "argmax", "argmin", "aminmax", "nansum"):
            with pytest.raises(RuntimeError, match=f"gpureduce::{word}"):
                getattr(ops, word)(x)
    tiny = tensor([-1e-23 + 0j], torch.complex64, device)
    assert ops.norm(tiny).item() == ops.norm(tiny, 1).item() == ops.norm(tiny, inf).item() == tiny.abs().item() > 0


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("fast", [torch.bfloat16, torch.float16], ids=name)
def test_autocast_is_torchs(device, kind, fast):
    """B53: the same types as torch's namesakes on the same device; gradients have the input's."""
    x = common.exact_data(40, getattr(torch, kind), device).view(5, 8).requires_grad_()
    namesakes = [member for member in FAMILY if member.name not in ("sumsq", "softmax_stats")]
    for enabled in (True, False):
        with torch.autocast(device, dtype=fast, enabled=enabled):
            for member in namesakes:
                for dim in {"whole": [None], "one": [1]}.get(member.dims, [None, 1]):
                    got, want = (results(function(x, dim, False)) for function in (member.ours, member.theirs))
                    assert [value.dtype for value in got] == [value.dtype for value in want], member
                    if member.differentiable and member.name != "norm 0":
                        (gradient,) = torch.autograd.grad(got[0].sum(), x)
                        assert gradient.dtype == x.dtype, member
