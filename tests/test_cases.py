"""Faults that public projects had in reductions: a small literal input and the right value, for every operator."""

import math

import pytest
import torch

from tests import common
from tests.common import REAL, assert_same_bits, name

ops = torch.ops.gpureduce
inf, nan = math.inf, math.nan

floats = pytest.mark.parametrize("dtype", REAL, ids=name)

# Operators as functions of (x, dims or None, keepdim); torch's namesakes in the same form.
MANY = {
    "sum": lambda o, x, d, k: o.sum(x, d, k),
    "mean": lambda o, x, d, k: o.mean(x, d, k),
    "nansum": lambda o, x, d, k: o.nansum(x, d, k),
    "nanmean": lambda o, x, d, k: o.nanmean(x, d, k),
    "amax": lambda o, x, d, k: o.amax(x, [] if d is None else d, k),
    "amin": lambda o, x, d, k: o.amin(x, [] if d is None else d, k),
    "any": lambda o, x, d, k: o.any(x, d, k),
    "all": lambda o, x, d, k: o.all(x, d, k),
    "norm": lambda o, x, d, k: norm_of(o)(x, 2, d, k),
    "norm1": lambda o, x, d, k: norm_of(o)(x, 1, d, k),
    "norm_inf": lambda o, x, d, k: norm_of(o)(x, inf, d, k),
    "var": lambda o, x, d, k: o.var(x, d, correction=1, keepdim=k),
    "std": lambda o, x, d, k: o.std(x, d, correction=0, keepdim=k),
    "var_mean": lambda o, x, d, k: o.var_mean(x, d, correction=1, keepdim=k),
    "std_mean": lambda o, x, d, k: o.std_mean(x, d, correction=0, keepdim=k),
    "logsumexp": lambda o, x, d, k: o.logsumexp(x, list(range(x.dim())) if d is None else d, k),
}
ONE = {  # of one dim, or of all if that is None
    "prod": lambda o, x, d, k: o.prod(x) if d is None else o.prod(x, d, k),
    "max": lambda o, x, d, k: o.max(x) if d is None else o.max(x, d, k),
    "min": lambda o, x, d, k: o.min(x) if d is None else o.min(x, d, k),
    "argmax": lambda o, x, d, k: o.argmax(x, d, k),
    "argmin": lambda o, x, d, k: o.argmin(x, d, k),
    "aminmax": lambda o, x, d, k: o.aminmax(x, dim=d, keepdim=k),
}
EVERY = {**MANY, **ONE}
every = pytest.mark.parametrize("operator", EVERY)


def norm_of(where):
    return torch.linalg.vector_norm if where is torch else where.norm


def results(operator, where, x, dim=None, keepdim=False):
    values = EVERY[operator](where, x, dim, keepdim)
    return list(values) if isinstance(values, tuple) else [values]


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


NAN_OPERATORS = [word for word in EVERY if word not in ("nansum", "nanmean", "any", "all", "argmax", "argmin")]


@floats
@pytest.mark.parametrize("n", [1025, 1 << 17])
def test_nan_at_every_position(device, dtype, n):
    """B08: in any lane, leaf or block a NaN is the result, and it is its index that is found."""
    for position in (0, 31, 32, 255, 256, n // 2, n - 1):
        x = torch.ones(n, dtype=dtype, device=device)
        x[position] = nan
        for operator in NAN_OPERATORS:
            for value in results(operator, ops, x):
                assert value.isnan().item(), f"{operator}, NaN at {position}"
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


OF_NOTHING = {"sum": 0, "nansum": 0, "prod": 1, "any": False, "all": True, "norm": 0, "norm1": 0, "logsumexp": -inf}
OF_NOTHING |= dict.fromkeys(("mean", "nanmean", "var", "std", "var_mean", "std_mean"), nan)


@every
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0,), (3, 0, 4)], ids=str)
def test_empty_dims(device, operator, shape):
    """B24: the identity of an empty row, or an error where there is none; no error where there are no rows."""
    for place in (device, "meta"):
        x = torch.ones(shape, device=place)
        for dim in (None, *range(len(shape))):
            for keepdim in (False, True):
                empty_row = dim is None or shape[dim] == 0
                if empty_row and operator not in OF_NOTHING:
                    with pytest.raises((RuntimeError, IndexError)):
                        results(operator, ops, x, dim, keepdim)
                    continue
                for value in results(operator, ops, x, dim, keepdim):
                    rows = [n for d, n in enumerate(shape) if d != dim] if dim is not None else []
                    if keepdim:
                        continue
                    assert list(value.shape) == rows
                    if place != "meta" and empty_row:
                        want = torch.full(value.shape, OF_NOTHING[operator], dtype=value.dtype)
                        torch.testing.assert_close(value.cpu(), want, equal_nan=True)


@every
def test_empty_errors_are_torchs(device, operator):
    for dim in (None, 0):
        try:
            torch_results = results(operator, torch, torch.ones(0, 3), dim)
        except (RuntimeError, IndexError) as error:
            for place in (device, "meta"):
                with pytest.raises(type(error)):
                    results(operator, ops, torch.ones(0, 3, device=place), dim)
        else:
            got = results(operator, ops, torch.ones(0, 3, device=device), dim)
            for ours, theirs in zip(got, torch_results, strict=True):
                assert_same_bits(ours.cpu(), theirs, operator)


def test_norms_of_nothing(device):
    x = torch.ones(2, 0, device=device)
    assert ops.norm(x, 0, 1).tolist() == [0, 0] and ops.norm(x, 2, 1).tolist() == [0, 0]
    for order in (inf, -inf, -1):
        with pytest.raises((RuntimeError, IndexError)):
            ops.norm(x, order, 1)
        assert ops.norm(x, order, 0).shape == (0,)


DIFFERENTIABLE = [word for word in EVERY if word not in ("any", "all", "argmax", "argmin")]


@pytest.mark.parametrize("operator", DIFFERENTIABLE)
def test_nothing_to_read_and_nothing_to_write(device, operator):
    """B25: no launch of 0 blocks, forward or backward, and no error left behind for the next call."""
    x = torch.ones(4, 5, 0, device=device, requires_grad=True)
    first = results(operator, ops, x, 1)[0]
    assert first.shape == (4, 0)
    first.sum().backward()
    assert x.grad.shape == (4, 5, 0)
    if operator in OF_NOTHING:
        first = results(operator, ops, x, 2)[0]
        assert first.shape == (4, 5)
        (gradient,) = torch.autograd.grad(first.sum(), x)
        assert gradient.shape == (4, 5, 0)
    assert ops.sum(torch.ones(10, device=device)).item() == 10


@pytest.mark.parametrize("operator", MANY)
def test_lists_of_dims(device, operator):
    """B27: None, [], repeated and negative dims, on every device the same."""
    for place in (device, "meta"):
        x = torch.tensor([[1.0, 2, 3], [4, 5, 7]], device=place)
        for dim in ([0, 0], [0, -2], [-1, 1]):
            with pytest.raises(RuntimeError, match=r"dim \d appears more than once"):
                results(operator, ops, x, dim)
        for dim in (2, [2], [0, -3]):
            with pytest.raises(IndexError, match=r"dim -?\d is out of range for a 2-d tensor \(expected -2\.\.1\)"):
                results(operator, ops, x, dim)
        for dim in (None, [], [0, 1], [-1], -2):
            for keepdim in (False, True):
                want = results(operator, torch, torch.tensor([[1.0, 2, 3], [4, 5, 7]]), dim, keepdim)
                for ours, theirs in zip(results(operator, ops, x, dim, keepdim), want, strict=True):
                    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
                    if place != "meta":
                        torch.testing.assert_close(ours.cpu(), theirs)


@pytest.mark.parametrize("operator", ONE)
def test_one_dim(device, operator):
    for place in (device, "meta"):
        x = torch.tensor([[1.0, 2, 3], [4, 5, 7]], device=place)
        with pytest.raises(IndexError, match=r"dim 2 is out of range for a 2-d tensor \(expected -2\.\.1\)"):
            results(operator, ops, x, 2)
        for dim in (0, 1, -1, -2):
            for keepdim in (False, True):
                want = results(operator, torch, torch.tensor([[1.0, 2, 3], [4, 5, 7]]), dim, keepdim)
                for ours, theirs in zip(results(operator, ops, x, dim, keepdim), want, strict=True):
                    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype


LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.transpose(1, 3),
    "channels_last": lambda x: x.to(memory_format=torch.channels_last),
    "expanded": lambda x: x[:1].expand(5, 3, 4, 5),
    "sliced": lambda x: x[:, 1:, ::2],
}


@every
@pytest.mark.parametrize("layout", LAYOUTS)
def test_meta_has_the_sizes_and_strides_of_the_real_results(device, operator, layout):
    """B28: both are contiguous, in any layout."""
    x = LAYOUTS[layout](common.random_data((2, 3, 4, 5), torch.float32, device=device))
    fake = LAYOUTS[layout](torch.empty(2, 3, 4, 5, device="meta"))
    for dim in (None, 0, 1, -1, *([[0, 2], [0, 1, 2, 3]] if operator in MANY else [])):
        for keepdim in (False, True):
            pairs = zip(
                results(operator, ops, x, dim, keepdim), results(operator, ops, fake, dim, keepdim), strict=True
            )
            for real, meta in pairs:
                assert real.shape == meta.shape and real.stride() == meta.stride() and real.dtype == meta.dtype
                assert real.is_contiguous()


OPCHECKS = ["mean", "nansum", "prod", "amax", "max", "argmax", "any", "norm", "var_mean", "std", "logsumexp", "aminmax"]


@pytest.mark.parametrize("operator", OPCHECKS)
def test_opcheck(device, operator):
    x = common.random_data((2, 3, 4), torch.float32, device=device)
    word, positional, named = operator, (1,), {}
    overload = "dim" if operator == "max" else "default"
    if operator in ("std", "var_mean"):
        named = {"correction": 0, "keepdim": True}
    elif operator == "norm":
        positional = (2, [0, 2])
    elif operator == "aminmax":
        positional, named = (), {"dim": 1}
    elif operator in ("mean", "nansum", "amax", "prod", "logsumexp"):
        positional = ([0, 2],)
    operation = getattr(getattr(ops, word), overload)
    for view in (x, x.permute(2, 0, 1), x[:1].expand(5, 3, 4), x[:, :, :0] if operator == "nansum" else x[:, ::2]):
        torch.library.opcheck(operation, (view.detach().requires_grad_(), *positional), named)


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
    with torch.autocast(device, dtype=fast):
        for operator in EVERY:
            for dim in (None, 1):
                got, want = results(operator, ops, x, dim), results(operator, torch, x, dim)
                assert [v.dtype for v in got] == [v.dtype for v in want], operator
                if operator in DIFFERENTIABLE:
                    (gradient,) = torch.autograd.grad(got[0].sum(), x)
                    assert gradient.dtype == x.dtype, operator
        with torch.autocast(device, enabled=False):
            for operator in EVERY:
                assert results(operator, ops, x)[0].dtype == results(operator, torch, x)[0].dtype
