"""Layouts: any strides, offsets and shapes; the output is contiguous, never an alias, and the input is left alone."""

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

from tests import common
from tests.common import DTYPES, INTEGER, LAYOUTS, assert_same_bits, name, op
from tests.reference_tree import reference_sum

dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=name)
by_size = [torch.int8, torch.bfloat16, torch.float32, torch.float64, torch.complex128]  # 1, 2, 4, 8, 16 bytes


@dtypes
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_counts_every_element(device, dtype, layout):
    flat = common.exact_data(61 * 67, dtype)
    x = LAYOUTS[layout](flat.to(device), 61, 67)
    dense = LAYOUTS[layout](flat, 61, 67).contiguous()
    wide = torch.complex128 if dtype.is_complex else torch.int64 if dtype in INTEGER else torch.float64
    for dim in [None, *range(x.dim()), list(range(x.dim())), [0, x.dim() - 1]]:
        for keepdim in (False, True):
            y = op(x, dim, keepdim)
            want = torch.sum(dense.to(wide), dim, keepdim).to(torch.int64 if dtype in INTEGER else dtype)
            assert_same_bits(y.cpu(), want, f"dim {dim}")
            assert y.is_contiguous() and y.storage_offset() == 0
            assert y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


@pytest.mark.parametrize("dtype", by_size, ids=name)
def test_storage_offsets(device, dtype):
    base = common.exact_data(4099 + 18, dtype)
    base_there = base.to(device)
    wide = torch.complex128 if dtype.is_complex else torch.int64 if dtype in INTEGER else torch.float64
    for offset in range(18):
        for n in (1, 3, 7, 8, 9, 31, 33, 255, 257, 1023, 4099):
            want = base[offset : offset + n].to(wide).sum().to(torch.int64 if dtype in INTEGER else dtype)
            assert_same_bits(op(base_there[offset : offset + n]).cpu(), want, f"offset {offset} n={n}")


@pytest.mark.parametrize("dtype", by_size, ids=name)
def test_odd_row_pitch(device, dtype):
    for columns in (2, 5, 16, 33, 130):
        for pitch in (columns + 1, columns + 3, columns + 8):
            base = common.exact_data(40 * pitch, dtype).view(40, pitch)
            for first in (0, 1, pitch - columns):
                view, there = base[:, first : first + columns], base.to(device)[:, first : first + columns]
                for dim in (None, 0, 1):
                    want = op(view.contiguous(), dim)
                    if dim is not None or dtype in INTEGER:
                        assert_same_bits(op(there, dim).cpu(), want, f"{columns} of {pitch} from {first}, dim {dim}")
                    assert torch.equal(op(there, dim).cpu(), want)


@dtypes
def test_short_rows_of_every_length(device, dtype):
    """One row and many, at any offset and pitch, each the last thing in its tensor."""
    for n in range(1, 131):
        for rows, pitch, offset in ((1, n, n % 5), (67, n, 0), (67, n, 1 + n % 3), (5, n + 1, 2), (3, 2 * n, 0)):
            end = (rows - 1) * pitch + n
            base = common.random_data(offset + end, dtype, seed=n)
            want = reference_sum(base.as_strided((rows, n), (pitch, 1), offset), 1)
            there = base.to(device).as_strided((rows, n), (pitch, 1), offset)
            assert_same_bits(op(there, 1).cpu(), want, f"{rows} rows of {n}, pitch {pitch}, offset {offset}")


def test_size_one_dims_are_no_dims(device):
    x = common.random_data((37, 1030), torch.float32, device=device)
    assert_same_bits(op(x.view(37, 1, 1030, 1), 2).view(37), op(x, 1))
    assert_same_bits(op(x.view(1, 37, 1, 1030), [0, 1]).view(1030), op(x, 0))
    column = x.view(-1, 1)
    assert_same_bits(op(column, 0).view(()), op(x))
    strange = torch.as_strided(x, (1, 1030), (7, 1))  # a size-1 dim may have any stride
    assert_same_bits(op(strange, 1).view(()), op(x[0]))
    assert_same_bits(op(torch.as_strided(x, (1030, 1), (1, 0)), 0).view(()), op(x[0]))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (3, 0, 4), (4, 5, 0), (0, 0)], ids=str)
@dtypes
def test_zero_sizes(device, dtype, shape):
    x = torch.zeros(shape, dtype=dtype, device=device)
    for dim in [None, *range(len(shape)), [0, len(shape) - 1] if len(shape) > 1 else [0]]:
        for keepdim in (False, True):
            assert_same_bits(op(x, dim, keepdim).cpu(), torch.sum(x.cpu(), dim, keepdim), f"dim {dim}")
    if device == "cuda":
        torch.cuda.synchronize()
        assert op(torch.ones(5, device=device)).item() == 5  # no sticky error


def test_zero_dim(device):
    x = torch.tensor(5.0, device=device)
    for dim in (None, 0, -1, [], [0]):
        for keepdim in (False, True):
            y = op(x, dim, keepdim)
            assert y.shape == () and y.item() == 5
            y.add_(1)
            assert x.item() == 5


@pytest.mark.parametrize(
    "shape, dim, keepdim", [((3, 1), 1, True), ((3, 1), 1, False), ((1, 1), None, True), ((4,), [], False)]
)
def test_nothing_to_reduce_is_still_a_copy(device, shape, dim, keepdim):
    x = torch.ones(shape, device=device)
    y = op(x, dim, keepdim)
    y.add_(1)
    assert torch.equal(x, torch.ones_like(x))


def test_many_dims(device):
    for dims in (10, 25, 64):
        shape = [2 if d % max(dims // 10, 1) == 0 and d < 10 * max(dims // 10, 1) else 1 for d in range(dims)]
        x = common.exact_data(1024, torch.float32).view(shape).to(device)
        for dim in (None, list(range(0, dims, 2)), dims - 1, list(range(dims))):
            assert torch.equal(op(x, dim), torch.sum(x, dim))
        scattered = x.permute(list(range(dims))[::-1])
        assert torch.equal(op(scattered, [0, dims // 2]), torch.sum(scattered, [0, dims // 2]))


def test_axes_that_never_collapse(device):
    """Twelve reduced and kept dims of size 2 in turn, with a gap behind each: the most axes for its elements."""
    base = common.exact_data(3**8, torch.float32).view([3] * 8).to(device)
    x = base[(slice(0, 2),) * 8].permute(3, 0, 5, 1, 7, 2, 6, 4)
    for dim in ([0, 2, 4, 6], [1, 3, 5, 7], [0, 1], [7], None, [0, 7]):
        assert torch.equal(op(x, dim), torch.sum(x.double(), dim).float())
    assert torch.equal(op(x[..., ::2], [0, 3]), torch.sum(x[..., ::2].double(), [0, 3]).float())


@st.composite
def strided_problems(draw):
    """A view with random sizes and strides (also 0, equal and overlapping ones), dims to reduce, keepdim."""
    count = draw(st.integers(1, 5))
    size = st.one_of(st.integers(1, 9), st.sampled_from([1, 2, 31, 33, 130]))
    sizes = draw(st.lists(size, min_size=count, max_size=count))
    while torch.Size(sizes).numel() > 40_000:
        sizes[sizes.index(max(sizes))] //= 4
        sizes = [max(1, s) for s in sizes]
    dense, stride = [0] * count, 1
    for d in draw(st.permutations(range(count))):
        dense[d] = stride
        stride *= sizes[d] + draw(st.sampled_from([0, 0, 1, 3]))
    other = st.sampled_from([0, 1, 2, 3, 8])
    strides = [draw(other) if draw(st.integers(0, 5)) == 0 else s for s in dense]
    dims = draw(st.one_of(st.none(), st.lists(st.integers(0, count - 1), unique=True)))
    return sizes, strides, draw(st.integers(0, 17)), dims, draw(st.booleans())


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.int16], ids=name
)
@hypothesis.settings(max_examples=120, deadline=None, derandomize=True, print_blob=True)
@hypothesis.given(problem=strided_problems())
def test_any_strides(dtype, problem):
    check_strided(dtype, "cpu", problem)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.complex128], ids=name)
@hypothesis.settings(max_examples=150, deadline=None, derandomize=True, print_blob=True)
@hypothesis.given(problem=strided_problems())
def test_any_strides_on_cuda(dtype, problem):
    check_strided(dtype, "cuda", problem)


def check_strided(dtype, device, problem):
    sizes, strides, offset, dims, keepdim = problem
    extent = 1 + offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    base = common.random_data(extent, dtype, seed=extent)
    x = base.as_strided(sizes, strides, offset)
    there = base.to(device).as_strided(sizes, strides, offset)
    before = there.clone()
    y = op(there, dims, keepdim)
    assert_same_bits(y.cpu(), reference_sum(x, dims, keepdim), f"sizes {sizes} strides {strides} dim {dims}")
    assert y.is_contiguous() and torch.equal(there, before)


@pytest.mark.parametrize(
    "dtype", [torch.int16, torch.float16, torch.float32, torch.float64, torch.complex128], ids=name
)
def test_memory_not_aligned_to_its_element(dtype):
    """A tensor over a foreign buffer may start at any byte; pytorch itself only asks for it to be readable."""
    for n in (1, 7, 33, 1000, 70_001):
        x = common.random_data((n, 3), dtype, seed=50)
        raw = bytearray(16 + x.numel() * dtype.itemsize)
        for shift in {1, 2, dtype.itemsize // 2, 8}:
            moved = torch.frombuffer(raw, dtype=dtype, count=x.numel(), offset=shift).view(n, 3)
            torch.frombuffer(raw, dtype=torch.uint8)[shift : shift + x.numel() * dtype.itemsize] = bytes_of(x)
            for dim in (None, 0, 1):
                assert_same_bits(op(moved, dim), op(x, dim), f"n={n} shift {shift} dim {dim}")
                assert_same_bits(op(moved[:, ::2], dim), op(x[:, ::2], dim), f"n={n} shift {shift} dim {dim}, gaps")


def bytes_of(x):
    return torch.frombuffer(bytearray(x.numpy().tobytes()), dtype=torch.uint8)
