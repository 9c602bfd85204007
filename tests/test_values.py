"""Values: every dtype, dim, keepdim, dtype=, accumulate= and layout, exactly where the data allows and within the
error bound of the tree elsewhere."""

import itertools

import pytest
import torch

from tests import bounds, common
from tests.common import ACCUMULATE, DTYPES, FLOATING, INTEGER, LAYOUTS, REAL, name, op

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=name)


def rounded(total, dtype):
    """An exact sum (float64, complex128 or int64) in the result type of the op."""
    return total.to(torch.int64 if dtype in INTEGER else dtype)


def exact(x, dim=None, keepdim=False):
    x = x.cpu()
    wide = torch.complex128 if x.is_complex() else torch.int64 if x.dtype in INTEGER else torch.float64
    return rounded(torch.sum(x.to(wide), dim, keepdim), x.dtype)


@dtypes
def test_every_element_counts_once(device, dtype):
    for n in common.sizes(dtype):
        x = common.exact_data(n, dtype)
        common.assert_same_bits(op(x.to(device)).cpu(), exact(x), f"n={n}")


@dtypes
def test_every_element_counts_in_rows_and_columns(device, dtype):
    for n in (1, 2, 7, 8, 9, 17, 33, 129, 520):
        x = common.exact_data(n * 6, dtype)
        for dim, shape in ((1, (6, n)), (0, (n, 6)), (1, (2, n, 3))):
            got = op(x.view(shape).to(device), dim).cpu()
            common.assert_same_bits(got, exact(x.view(shape), dim), f"{shape} dim {dim}")


@dtypes
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (1, 5), (5, 1), (3, 4, 5), (2, 3, 1, 4)], ids=str)
def test_every_dim_and_keepdim(device, dtype, shape):
    x = common.exact_data(torch.Size(shape).numel(), dtype).view(shape)
    dims = [None, [], (), *list(range(-max(len(shape), 1), max(len(shape), 1)))]
    for count in range(1, len(shape) + 1):
        dims += [list(chosen) for chosen in itertools.combinations(range(len(shape)), count)]
    for dim, keepdim in itertools.product(dims, (False, True)):
        got = op(x.to(device), dim, keepdim).cpu()
        want = torch.sum(x, dim, keepdim)
        assert got.is_contiguous() and got.data_ptr() != x.data_ptr()
        common.assert_same_bits(got, want, f"dim {dim} keepdim {keepdim}")


@pytest.mark.parametrize("out", DTYPES, ids=name)
@dtypes
def test_dtype_argument_is_torchs(device, dtype, out):
    """33 elements: every partial sum fits every type, so torch and the tree must agree exactly."""
    x = common.exact_data(33, dtype).view(3, 11)
    if dtype.is_complex and not out.is_complex:
        x = x.real.to(dtype)  # torch warns and drops the imaginary part
    if dtype in REAL and out == torch.uint8:
        x = x.abs()  # a negative float to an unsigned type is undefined
    for dim in (None, 0, 1):
        want = torch.sum(x, dim, dtype=out)
        common.assert_same_bits(op(x.to(device), dim, dtype=out).cpu(), want, f"dim {dim}")


@pytest.mark.parametrize("accumulate", ACCUMULATE)
@pytest.mark.parametrize("dtype", FLOATING, ids=name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_error_bound(device, dtype, accumulate, layout):
    flat = common.random_data(37 * 301, dtype, seed=3)
    x = LAYOUTS[layout](flat, 37, 301).to(device)
    if layout in ("expanded", "repeated", "overlapping", "gapped", "pitched", "offset"):
        x = LAYOUTS[layout](flat.to(device), 37, 301)  # .to() would have made it dense
    for dim in (None, 0, 1):
        y = op(x, dim, accumulate=accumulate)
        bounds.assert_within_bound(y, x, dim, accumulate=accumulate)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64], ids=name)
def test_dtype_float64_accumulates_in_float64(device, dtype):
    x = common.random_data((5, 3001), dtype, seed=4)
    out = torch.complex128 if dtype.is_complex else torch.float64
    for dim in (None, 0, 1):
        bounds.assert_within_bound(op(x.to(device), dim, dtype=out), x, dim, dtype=out)


@pytest.mark.parametrize("accumulate", ["compensated", "double"])
def test_accumulate_is_more_accurate(device, accumulate):
    """1e8 and -1e8 cancel; the ones between them are lost by float32 and kept by both options."""
    x = torch.ones(4096)
    x[0], x[2500] = 1e8, -1e8
    assert op(x.to(device), accumulate=accumulate).item() == 4094
    assert op(x.view(64, 64).t().contiguous().to(device), [0, 1], accumulate=accumulate).item() == 4094
    assert op(x.to(device)).item() != 4094


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", REAL, ids=name)
@pytest.mark.parametrize("accumulate", ACCUMULATE)
def test_nan_and_inf_at_every_edge(device, dtype, bad, accumulate):
    n = 2 * common.leaf_elements(dtype) + 1
    want = torch.tensor(bad, dtype=dtype)
    x = torch.ones(n, dtype=dtype, device=device)
    for position in {0, 1, 31, 32, 127, 128, 255, 256, n // 2, n - 2, n - 1}:
        x[position] = bad
        common.assert_same_bits(op(x, accumulate=accumulate).cpu(), want, f"position {position}")
        x[position] = 1
    columns = torch.ones(19, 5, dtype=dtype, device=device)
    for row, column in ((0, 0), (7, 1), (8, 2), (18, 4)):
        columns[row, column] = bad
        got = op(columns, 0, accumulate=accumulate).cpu()
        common.assert_same_bits(got[column], want, f"row {row} column {column}")
        assert torch.equal(got[torch.arange(5) != column], torch.full((4,), 19, dtype=dtype))
        columns[row, column] = 1


@pytest.mark.parametrize("dtype", REAL, ids=name)
@pytest.mark.parametrize("accumulate", ACCUMULATE)
def test_nan_results_are_the_one_quiet_nan(device, dtype, accumulate):
    want = torch.tensor(float("nan"), dtype=dtype)
    infinities = torch.ones(1030, dtype=dtype, device=device)
    infinities[5], infinities[1029] = float("inf"), -float("inf")
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    negative = (want.view(integer) | torch.iinfo(integer).min | 1).view(dtype).expand(1030)  # sign and payload set
    for x in (infinities, negative.to(device), negative.contiguous().to(device)):
        common.assert_same_bits(op(x, accumulate=accumulate).cpu(), want)


@pytest.mark.parametrize("dtype", FLOATING, ids=name)
@pytest.mark.parametrize("accumulate", ACCUMULATE)
def test_signed_zeros(device, dtype, accumulate):
    signs = lambda t: torch.signbit(torch.view_as_real(t) if dtype.is_complex else t)  # noqa: E731
    for n in (1, 3, 33, 4100):
        zeros = torch.zeros(n, 3, dtype=dtype, device=device)
        negative = torch.full_like(zeros, complex(-0.0, -0.0) if dtype.is_complex else -0.0)
        assert signs(negative).all()
        for dim in (None, 0):
            assert signs(op(negative, dim, accumulate=accumulate)).all()
            assert not signs(op(zeros, dim, accumulate=accumulate)).any()
            if n > 1:
                mixed = torch.cat([negative[1:], zeros[:1]])
                assert not signs(op(mixed, dim, accumulate=accumulate)).any()
    common.assert_same_bits(op(torch.zeros(0, dtype=dtype, device=device)).cpu(), torch.zeros((), dtype=dtype))


def test_integers_do_not_wrap(device):
    assert op(torch.ones(300, dtype=torch.uint8, device=device)).item() == 300
    assert op(torch.ones(3, 100, dtype=torch.uint8, device=device), 1).tolist() == [100] * 3
    assert op(torch.ones(320, dtype=torch.bool, device=device)).item() == 320
    assert op(torch.full((2,), 2**31 - 1, dtype=torch.int32, device=device)).item() == 2**32 - 2
    assert op(torch.ones(300, dtype=torch.uint8, device=device), dtype=torch.uint8).item() == 44
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32):
        extreme = torch.full((70001,), torch.iinfo(dtype).max, dtype=dtype, device=device)
        assert op(extreme).item() == 70001 * torch.iinfo(dtype).max
    wrapped = torch.full((4,), 2**62, dtype=torch.int64, device=device)
    assert op(wrapped).item() == torch.sum(wrapped).item() == 0


def test_integer_sum_with_float_dtype_is_rounded_once(device):
    x = torch.full((1 << 15,), 2**31 - 1, dtype=torch.int32, device=device)
    x[0] = 2
    total = (2**31 - 1) * (2**15 - 1) + 2
    assert op(x, dtype=torch.float64).item() == total
    assert op(x, dtype=torch.float32).item() == torch.tensor(total, dtype=torch.int64).to(torch.float32).item()
    assert op(torch.full((100000,), 7, dtype=torch.int8, device=device), dtype=torch.float16).item() == float("inf")
    assert op(torch.full((301,), 7, dtype=torch.uint8, device=device), dtype=torch.bfloat16).item() == 2112


def test_bool_storage_other_than_one_is_true(device):
    x = torch.tensor([0, 1, 2, 255, 128] * 100, dtype=torch.uint8, device=device).view(torch.bool)
    assert op(x).item() == 400
    assert op(x.view(100, 5), 0).tolist() == [0, 100, 100, 100, 100]
