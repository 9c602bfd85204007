"""vecdot and dot: values, bits, broadcasting without a temporary, and torch's rules."""

import itertools
import math

import numpy as np
import pytest
import torch

import torch_reduce
from tests import common, reference_tree
from tests.common import BLOCK_ROW, FLOATING, REAL, SHORT_ROW, WARP_ROW, assert_same_bits, name, tensors_of

vecdot = torch.ops.gpureduce.vecdot
dot = torch.ops.gpureduce.dot
real = pytest.mark.parametrize("dtype", REAL, ids=name)
floating = pytest.mark.parametrize("dtype", FLOATING, ids=name)
MODES = [None, "compensated", "double"]


# --- the tree again, from its description -----------------------------------------------------------------------------


def is_column(x, y, dim):
    """Whether the axis that moves fastest in x is kept; in y, where x is the same along all kept axes."""
    for t in (x, y):
        strides = [(t.stride(d), d) for d in range(t.dim()) if t.size(d) != 1 and t.stride(d) != 0 and d != dim]
        if strides or t is y:
            step = t.stride(dim) if t.size(dim) != 1 else 0
            return bool(strides) and t.size(dim) > 1 and (step == 0 or min(strides)[0] < step)
    return False


def tree_dot(x, y, dim=-1, dtype=None):
    """Of real tensors, products rounded in the accumulator's type."""
    wide = np.float64 if x.dtype == torch.float64 else np.float32
    x, y = torch.broadcast_tensors(x, y)
    dim %= x.dim()
    column = is_column(x, y, dim)
    kept = [size for d, size in enumerate(x.shape) if d != dim]
    if x.numel() == 0:
        return torch.zeros(kept, dtype=x.dtype)
    rows = [reference_tree.to_numpy(t.movedim(dim, -1).reshape(-1, t.size(dim))).astype(wide) for t in (x, y)]
    with np.errstate(all="ignore"):
        products = rows[0] * rows[1]
    return reference_tree.real_sum(products, column, x.element_size(), wide, False, x.dtype).reshape(kept)


@real
def test_rows_are_the_trees(device, dtype):
    for n in common.sizes(dtype, largest_leaves=5):
        for rows in (1, 3):
            x, y = tensors_of([(rows, n), (rows, n)], dtype, seed=n)
            got = vecdot(x.to(device), y.to(device))
            assert_same_bits(got.cpu(), tree_dot(x, y), f"{rows} x {n}")


@real
def test_columns_are_the_trees(device, dtype):
    for rows, columns in itertools.product(common.COLUMN_ROWS, (1, 3, 16, 70)):
        x, y = tensors_of([(2, rows, columns), (2, rows, columns)], dtype, seed=rows)
        got = vecdot(x.to(device), y.to(device), dim=1)
        assert_same_bits(got.cpu(), tree_dot(x, y, 1), f"{rows} x {columns}")


@real
def test_long_rows_and_columns(device, dtype):
    for shape, dim in (((300_001,), 0), ((2, 70_000), 1), ((20_000, 24), 0), ((5003, 7), 0)):
        x, y = tensors_of([shape, shape], dtype, seed=len(shape))
        assert_same_bits(vecdot(x.to(device), y.to(device), dim=dim).cpu(), tree_dot(x, y, dim), f"{shape} {dim}")


LAYOUTS = {
    "contiguous": lambda t: t.contiguous(),
    "transposed": lambda t: t.t().contiguous().t(),
    "gapped": lambda t: t.new_zeros(t.size(0), 2 * t.size(1))[:, ::2].copy_(t),
    "offset": lambda t: torch.cat([t.new_zeros(1), t.reshape(-1)])[1:].view(t.shape),
    "pitched": lambda t: t.new_zeros(t.size(0), t.size(1) + 1)[:, :-1].copy_(t),
    "row": lambda t: t[:1].expand_as(t),
    "column": lambda t: t[:, :1].expand_as(t),
    "one": lambda t: t[:1, :1].expand_as(t),
}


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=name)
def test_layouts(device, dtype, dim):
    data = tensors_of([(40, 300), (40, 300)], dtype)
    for first, second in itertools.product(LAYOUTS, LAYOUTS):
        x, y = LAYOUTS[first](data[0]), LAYOUTS[second](data[1])
        got = vecdot(LAYOUTS[first](data[0].to(device)), LAYOUTS[second](data[1].to(device)), dim=dim)
        assert_same_bits(got.cpu(), tree_dot(x, y, dim), f"{first} {second}")


SHAPES = [
    ((5, 1, 40), (3, 40), -1),
    ((5, 7, 40), (1,), 1),
    ((40,), (5, 7, 40), 2),
    ((5, 1, 4, 1), (6, 1, 30), -1),
    ((5, 6, 1), (5, 1, 7), 0),
    ((5, 6, 1), (5, 1, 7), 1),
    ((1, 1), (1, 1), 0),
    ((2, 1, 3, 1, 4, 1, 5), (2, 2, 3, 2, 4, 2, 5), 2),
    ((4, 0, 3), (1, 3), 1),
    ((4, 0, 3), (1, 3), 2),
    ((4, 1), (4, 0), 1),
    ((), (), -1),
    ((), (5,), 0),
]


@floating
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting(device, dtype, shapes):
    *sizes, dim = shapes
    x, y = tensors_of(sizes, dtype)
    got = vecdot(x.to(device), y.to(device), dim=dim).cpu()
    want = torch.linalg.vecdot(*torch.broadcast_tensors(x.to(torch.complex128), y.to(torch.complex128)), dim=dim)
    assert got.dtype == dtype and got.shape == want.shape and got.is_contiguous()
    scale = torch.linalg.vecdot(*torch.broadcast_tensors(x.abs().double(), y.abs().double()), dim=dim)
    error = (got.to(torch.complex128) - want).abs()
    assert (error <= 4 * torch.finfo(dtype).eps * scale).all()
    if dtype in REAL and x.dim() and y.dim() and got.numel():
        assert_same_bits(got, tree_dot(x, y, dim))


@floating
@pytest.mark.parametrize("mode", MODES)
def test_accumulate(device, dtype, mode):
    """Compensated and double are right to the last bit where native is not."""
    x, y = tensors_of([(3, 5000), (3, 5000)], dtype)
    y[:, 2500:] = -y[:, :2500].flip(1) if dtype.is_complex else y[:, 2500:]
    got = vecdot(x.to(device), y.to(device), accumulate=mode).cpu()
    wide = [t.to(torch.complex128) for t in (x, y)]
    want = (wide[0].conj() * wide[1]).sum(1)
    scale = (wide[0].abs() * wide[1].abs()).sum(1)
    eps = torch.finfo(dtype).eps
    small = (
        eps * 2**-20 if mode and dtype not in (torch.float64, torch.complex128) else 16 * torch.finfo(torch.float32).eps
    )
    if dtype in (torch.float64, torch.complex128):
        small = 16 * eps
    assert ((got.to(torch.complex128) - want).abs() <= eps * want.abs() + small * scale).all()
    assert_same_bits(vecdot(x, y, accumulate=mode), got)


def test_compensated_holds_the_errors_of_products(device):
    for dtype in (torch.float32, torch.float64):
        e = torch.finfo(dtype).eps
        x = torch.tensor([1 + e, -1.0, -2 * e], dtype=dtype, device=device)
        y = torch.tensor([1 + e, 1.0, 1.0], dtype=dtype, device=device)
        assert vecdot(x, y, accumulate="compensated").item() == e * e
        assert dot(x, y).item() == 0


@floating
def test_vecdot_conjugates_and_dot_does_not(device, dtype):
    x, y = tensors_of([(100,), (100,)], dtype, device)
    both = [t.to(torch.complex128) for t in (x, y)]
    tolerance = {
        "rtol": 8 * torch.finfo(dtype).eps,
        "atol": 64 * torch.finfo(dtype).eps * both[0].norm() * both[1].norm(),
    }
    torch.testing.assert_close(vecdot(x, y).to(torch.complex128), (both[0].conj() * both[1]).sum(), **tolerance)
    torch.testing.assert_close(dot(x, y).to(torch.complex128), (both[0] * both[1]).sum(), **tolerance)
    torch.testing.assert_close(vecdot(x.conj(), y), dot(x, y), **tolerance)
    if dtype in REAL:
        assert_same_bits(vecdot(x, y), dot(x, y))


@pytest.mark.parametrize("dtype", [t for t in common.INTEGER if t != torch.bool], ids=name)
def test_dot_of_integers_wraps_as_torchs(device, dtype):
    for n in (0, 1, 7, 33, 5000, 300_000):
        x, y = tensors_of([(n,), (n,)], dtype)
        want = torch.dot(x, y)
        assert_same_bits(dot(x.to(device), y.to(device)).cpu(), want, f"{n}")
        spread = [t.repeat_interleave(2).to(device)[::2] for t in (x, y)]
        assert_same_bits(dot(*spread).cpu(), want)


@floating
def test_nan_infinity_and_signed_zero(device, dtype):
    for n in (1, 5, 100, 3000):
        for at in {0, n - 1}:
            x, y = torch.ones(2, n, dtype=dtype, device=device), torch.ones(n, dtype=dtype, device=device)
            x[0, at] = float("nan")
            got = vecdot(x, y)
            want = torch.tensor([math.nan, n], dtype=dtype)
            assert torch.isnan(got[0].real if dtype.is_complex else got[0]) and got[1] == n
            if not dtype.is_complex:
                assert_same_bits(got.cpu(), want)
                x[0, at], y[at] = float("inf"), 0
                assert math.isnan(vecdot(x, y)[0].item())  # inf * 0
                y[at] = -1
                assert vecdot(x, y)[0].item() == -math.inf
    if not dtype.is_complex:
        zeros = torch.zeros(70, dtype=dtype, device=device)
        assert math.copysign(1, vecdot(-zeros, zeros.abs()).item()) == -1
        assert math.copysign(1, vecdot(zeros[:0], zeros[:0]).item()) == 1


@real
def test_threads_do_not_matter(dtype, threads):
    cases = [((300_000,), -1), ((3, 100_000), -1), ((100_000, 3), 0), ((500, 900), 0), ((900, 500), 1)]
    for shape, dim in cases:
        x, y = tensors_of([shape, shape], dtype)
        threads(1)
        want = vecdot(x, y, dim=dim)
        for count in (2, 3, 8):
            threads(count)
            assert_same_bits(vecdot(x, y, dim=dim), want, f"{shape} {count} threads")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", FLOATING, ids=name)
def test_launches_do_not_matter(dtype, geometry):
    leaf = common.leaf_elements(dtype)
    for n, rows in ((17, 100), (leaf, 9), (5 * leaf + 3, 40), (70 * leaf + 4, 3)):
        x, y = tensors_of([(rows, n), (rows, n)], dtype, seed=n)
        want = vecdot(x, y)
        for path, threads, chunk in itertools.product((SHORT_ROW, WARP_ROW, BLOCK_ROW), (32, 128, 512), (0, 1, 8)):
            geometry(path=path, threads=threads, chunk_leaves=chunk)
            assert_same_bits(vecdot(x.cuda(), y.cuda()).cpu(), want, f"{rows} x {n} {path} {threads} {chunk}")
    for rows, columns in ((1000, 3), (5000, 64), (129, 500)):
        x, y = tensors_of([(rows, columns), (rows, columns)], dtype, seed=rows)
        want = vecdot(x, y, dim=0)
        for threads, across, chunk in ((0, 0, 0), (64, 4, 1), (128, 32, 16), (256, 8, 256)):
            geometry(threads=threads, threads_across=across, chunk_leaves=chunk)
            assert_same_bits(vecdot(x.cuda(), y.cuda(), dim=0).cpu(), want, f"{rows} x {columns} {threads} {chunk}")


@pytest.mark.cuda
def test_no_temporary():
    """Broadcast inputs of 256 MB allocate the result alone."""
    x = torch.randn(1 << 26, device="cuda").view(1 << 13, 1 << 13)
    for a, b, dim in (
        (x, x[0], 1),
        (x, x[:, :1], 0),
        (x[0], x, -1),
        (x.t(), x, 0),
        (x[:, None, :64], x[None, :1, :64], 2),
    ):
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        y = vecdot(a, b, dim=dim)
        used = torch.cuda.max_memory_allocated() - before
        assert used <= y.numel() * 4 + (3 << 20), f"{used} bytes"


@pytest.mark.cuda
def test_capture_and_streams():
    for shape, dim in (((1 << 20,), 0), ((4000, 64), 0), ((64, 4000), 1), ((1000, 3), 1)):
        x, y = torch.ones(shape, device="cuda"), torch.ones(shape, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            z = vecdot(x, y, dim=dim)
        for value in (1, 2, 3):
            x.fill_(value)
            graph.replay()
            assert z.sum().item() == value * x.numel()


# --- torch's rules ----------------------------------------------------------------------------------------------------


def test_errors(device):
    ones = lambda *sizes, **o: torch.ones(*sizes, device=device, **o)  # noqa: E731
    with pytest.raises(RuntimeError, match="expected floating point or complex tensors, but x is of dtype Int"):
        vecdot(ones(3, dtype=torch.int32), ones(3, dtype=torch.int32))
    with pytest.raises(RuntimeError, match="same dtype"):
        vecdot(ones(3), ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="must match the size"):
        vecdot(ones(3), ones(4))
    with pytest.raises(
        IndexError, match=r"gpureduce::vecdot: dim 2 is out of range for 2-d tensors \(expected -2..1\)"
    ):
        vecdot(ones(3), ones(2, 3), dim=2)
    with pytest.raises(IndexError):
        vecdot(ones(()), ones(()), dim=1)
    with pytest.raises(ValueError, match='got "exact"'):
        vecdot(ones(3), ones(3), accumulate="exact")
    with pytest.raises(RuntimeError, match="same device"):
        vecdot(ones(3), torch.ones(3, device="meta"))
    with pytest.raises(RuntimeError, match="expected 1-d tensors, but self is 2-d and tensor is 1-d"):
        dot(ones(2, 3), ones(3))
    with pytest.raises(RuntimeError, match="same number of elements, but got 3 and 1"):
        dot(ones(3), ones(1))
    with pytest.raises(RuntimeError, match="same dtype"):
        dot(ones(3), ones(3, dtype=torch.float64))
    with pytest.raises(NotImplementedError, match="Bool"):
        dot(ones(3, dtype=torch.bool), ones(3, dtype=torch.bool))
    with pytest.raises(NotImplementedError, match="ComplexHalf"):
        vecdot(
            torch.empty(3, dtype=torch.complex32, device=device), torch.empty(3, dtype=torch.complex32, device=device)
        )


def test_meta():
    for *sizes, dim in SHAPES:
        x, y = (torch.empty(shape, device="meta") for shape in sizes)
        want = torch.linalg.vecdot(*torch.broadcast_tensors(x, y), dim=dim)
        got = vecdot(x, y, dim=dim)
        assert got.shape == want.shape and got.device.type == "meta" and got.dtype == torch.float32
    assert dot(torch.empty(3, device="meta"), torch.empty(3, device="meta")).shape == ()


def test_out(device):
    x, y = tensors_of([(6, 50), (50,)], torch.float32, device)
    want = vecdot(x, y)
    out = torch.empty(6, device=device)
    version = out._version
    assert vecdot(x, y, out=out) is out and out._version > version
    assert_same_bits(out, want)
    gapped = torch.empty(12, device=device)[::2]
    assert_same_bits(torch_reduce.vecdot(x, y, out=gapped), want)
    resized = torch.empty(0, device=device)
    assert_same_bits(vecdot(x, y, out=resized), want)
    assert_same_bits(vecdot(x, y, out=torch.empty(2, device=device)), want)
    assert_same_bits(torch_reduce.dot(y, y, out=torch.empty((), device=device)), dot(y, y))
    with pytest.raises(RuntimeError, match="expected out of dtype Float, but found Double"):
        vecdot(x, y, out=torch.empty(6, device=device, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="share memory"):
        vecdot(x, y, out=x.view(-1)[:6])
    mine = x.clone()
    assert_same_bits(vecdot(mine, y, out=mine[:, 0]), want)  # torch cannot tell, so it is computed beside
    with pytest.raises(RuntimeError, match="single memory location"):
        vecdot(x, y, out=torch.empty(1, device=device).expand(6))
    with pytest.raises(RuntimeError, match="requires grad"):
        vecdot(x.clone().requires_grad_(), y, out=out)
    compiled = torch.compile(lambda a, b: vecdot(a * 2, b, out=torch.empty(6, device=device)), fullgraph=True)
    torch.testing.assert_close(compiled(x, y), 2 * want)


def test_autocast():
    x, y = torch.randn(3, 4), torch.randn(3, 4, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert vecdot(x, y).dtype == torch.linalg.vecdot(x, y).dtype == torch.bfloat16
        assert dot(x[0], x[1]).dtype == torch.dot(x[0], x[1]).dtype == torch.float32
        with torch.autocast("cpu", enabled=False):
            assert vecdot(x, x).dtype == torch.float32


@pytest.mark.cuda
def test_autocast_cuda():
    x, y = torch.randn(3, 4, device="cuda"), torch.randn(3, 4, device="cuda", dtype=torch.float16)
    with torch.autocast("cuda", torch.float16):
        for a, b in itertools.product((x, y), (x, y)):
            assert vecdot(a, b).dtype == torch.linalg.vecdot(a, b).dtype == torch.float16
            assert dot(a[0], b[1]).dtype == torch.dot(a[0], b[1]).dtype
        assert vecdot(x.double(), x.double()).dtype == torch.float64
