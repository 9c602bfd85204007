"""total_norm: values, bits, and edge cases of lists."""

import itertools
import math

import numpy as np
import pytest
import torch

import torch_reduce
from tests import common, reference_tree
from tests.common import REAL, assert_same_bits, name, tensors_of

total_norm = torch.ops.gpureduce.total_norm
clip_grads_ = torch.ops.gpureduce.clip_grads_
INF = float("inf")
ORDERS = [1, 2, INF]
orders = pytest.mark.parametrize("order", ORDERS)
real = pytest.mark.parametrize("dtype", REAL, ids=name)
SHAPES = [(1,), (3, 5), (), (64,), (7, 11, 13), (2048,), (513, 3), (5000,)]


def exact(tensors, order):
    """Of values whose squares are in range."""
    values = torch.cat([t.detach().cpu().double().reshape(-1) for t in tensors]).abs().tolist()
    return max(values) if order == INF else math.fsum(values) if order == 1 else math.fsum(v * v for v in values) ** 0.5


def tree_norm(tensors, order, dtype):
    """The tree of core/list.h in numpy: the leaves of all tensors under one perfect binary tree."""
    if order == INF:
        return max(t.abs().max() for t in tensors if t.numel()).to(dtype)
    leaves = []
    for t in tensors:
        values = reference_tree.to_numpy(t.reshape(1, -1)).astype(np.float64)
        values = np.abs(values) if order == 1 else values * values
        size = common.leaf_elements(t.dtype)
        for start in range(0, values.shape[1], size):
            leaves.append(reference_tree.row_tree((values[:, start : start + size],), t.element_size())[0])
    acc = (np.stack(leaves, 1),)
    acc = reference_tree.padded(acc, 1, reference_tree.next_power_of_two(acc[0].shape[1]))
    total = reference_tree.pairwise(acc, 1)[0]
    return reference_tree.round_to(total if order == 1 else np.sqrt(total), dtype)[0]


@orders
@real
def test_values(device, dtype, order):
    for shapes in ([(1,)], SHAPES[:3], SHAPES):
        tensors = tensors_of(shapes, dtype, device)
        got = total_norm(tensors, order)
        assert got.dtype == dtype and got.shape == () and got.device.type == device
        want = torch.tensor(exact(tensors, order), dtype=torch.float64).to(dtype).item()  # of float16, perhaps infinite
        assert math.isclose(got.item(), want, rel_tol=(16 if dtype == torch.float64 else 1) * torch.finfo(dtype).eps)


@orders
@real
def test_bits_are_the_trees(device, dtype, order):
    leaf = common.leaf_elements(dtype)
    for sizes in ([leaf - 1], [1, 2, leaf, leaf + 1], [3 * leaf + 5, 7, 2 * leaf, 40 * leaf + 1, 9]):
        tensors = tensors_of([(n,) for n in sizes], dtype, seed=sum(sizes))
        want = tree_norm(tensors, order, dtype)
        assert_same_bits(total_norm([t.to(device) for t in tensors], order).cpu(), want, f"{sizes} {order}")


@orders
@real
def test_threads_do_not_matter(dtype, order, threads):
    tensors = tensors_of([(300_000,), (70, 1000), (5,)], dtype)
    threads(1)
    want = total_norm(tensors, order)
    for count in (2, 3, 8):
        threads(count)
        assert_same_bits(total_norm(tensors, order), want, f"{count} threads")


@pytest.mark.cuda
@orders
@real
def test_launches_do_not_matter(dtype, order, geometry):
    tensors = tensors_of([(300_000,), (70, 1000), (5,), (33,)] * 3, dtype)
    want = total_norm(tensors, order)
    there = [t.cuda() for t in tensors]
    for threads, chunk in ((0, 0), (32, 1), (64, 2), (128, 1), (512, 32), (96, 256), (512, 1024)):
        geometry(threads=threads, chunk_leaves=chunk)
        assert_same_bits(total_norm(there, order).cpu(), want, f"{threads} threads, {chunk} leaves a chunk")


@orders
@pytest.mark.parametrize("count", [255, 256, 257, 1500, 2048, 2049, 5000])
def test_many_tensors(device, order, count, geometry):
    """Around the number of tensors that a launch takes, in chunks that end within tensors and launches."""
    sizes = [1 + 37 * i % 700 for i in range(count)]
    tensors = tensors_of([(n,) for n in sizes], torch.float32, seed=count)
    want = tree_norm(tensors, order, torch.float32)
    there = [t.to(device) for t in tensors]
    for chunk in (0, 1, 64, 1024) if device == "cuda" else (0,):
        geometry(chunk_leaves=chunk)
        assert_same_bits(total_norm(there, order).cpu(), want, f"{chunk} leaves a chunk")


def test_of_one_tensor_and_of_pieces_with_whole_leaves(device):
    """Cut where leaves end, a tensor has the norm of its pieces."""
    x = common.random_data(64 * 512, torch.float32, device=device)
    want = total_norm([x])
    for pieces in (2, 4, 64):
        assert_same_bits(total_norm(list(x.chunk(pieces))), want)


@orders
def test_layouts(device, order):
    """Elements without gaps are taken in the order of memory; others are copied."""
    x = common.random_data((4, 6, 5, 3), torch.float32, device=device)
    want = total_norm([x], order)
    assert_same_bits(total_norm([x.permute(3, 1, 0, 2)], order), want)
    assert_same_bits(
        total_norm([x.to(memory_format=torch.channels_last)], order).cpu(),
        total_norm([x.cpu().to(memory_format=torch.channels_last)], order),
    )
    gapped = torch.zeros(4, 6, 5, 7, device=device)[..., 1::2].copy_(x)
    assert_same_bits(total_norm([gapped], order), want)
    row = x[0, 0, 0]
    assert_same_bits(total_norm([row.expand(50, 3)], order), total_norm([row.repeat(50, 1)], order))


@orders
@real
def test_misaligned_views(device, dtype, order):
    for offset, n in itertools.product((1, 2, 3, 5, 7), (1, 7, 8, 33, 1023, 4099)):
        x = common.random_data(n + offset, dtype, seed=n, device=device)[offset:]
        other = common.random_data((5, n), dtype, seed=1, device=device)
        assert_same_bits(total_norm([x, other[1:]], order), total_norm([x.clone(), other[1:].clone()], order))


def test_nothing_overflows_or_underflows_on_the_way(device):
    def norm(values, dtype, order=2):
        return total_norm([torch.tensor(part, dtype=dtype, device=device) for part in values], order).item()

    assert norm([[200.0] * 3, [200.0] * 2], torch.float16) == 447.25
    assert norm([[60000.0], [1.0] * 9], torch.float16) == 60000
    assert norm([[1e20, 1.0], [1.0]], torch.float32) == torch.tensor(1e20).item()
    assert norm([[1e-30], [1e-30]], torch.float32) == torch.tensor(2**0.5 * 1e-30).item()
    assert norm([[1e-45]], torch.float32) == torch.tensor(1e-45).item()
    assert norm([[3e38], [3e38]], torch.float32) == INF  # as the result
    assert math.isclose(norm([[1e300], [1e300, 1.0]], torch.float64), 2**0.5 * 1e300, rel_tol=1e-15)
    assert math.isclose(norm([[3e-320], [4e-320]], torch.float64), 5e-320, rel_tol=1e-3)
    assert math.isclose(norm([[3e-160], [4e-160]], torch.float64), 5e-160, rel_tol=1e-15)
    assert math.isclose(norm([[1e-170], [1e-150]], torch.float64), 1e-150, rel_tol=1e-15)
    assert norm([[1e300], [1e-300], [1.0]], torch.float64) == 1e300
    assert norm([[5e-324]], torch.float64) == 5e-324
    assert norm([[1e4] * 9, []], torch.float16, 1) == INF and norm([[1e4] * 6], torch.float16, 1) == 6e4


@orders
@real
def test_nan_and_infinity_at_each_edge(device, dtype, order):
    leaf = common.leaf_elements(dtype)
    for size, at in ((1, 0), (7, 6), (leaf, 0), (leaf, leaf - 1), (3 * leaf + 3, 3 * leaf + 2)):
        for value, want in ((INF, INF), (-INF, INF), (float("nan"), float("nan"))):
            tensors = [torch.ones(100, dtype=dtype), torch.ones(size, dtype=dtype), torch.ones(3, dtype=dtype)]
            tensors[1][at] = value
            got = total_norm([t.to(device) for t in tensors], order).cpu()
            assert_same_bits(got, torch.tensor(want, dtype=dtype), f"{size} {at} {value}")
            both = [*tensors, torch.tensor([float("nan")], dtype=dtype)]
            got = total_norm([t.to(device) for t in both], order).cpu()
            assert_same_bits(got, torch.tensor(float("nan"), dtype=dtype))


def test_empty(device):
    nothing = torch.empty(0, 3, device=device)
    for order in (1, 2, 0, 3):
        assert total_norm([nothing], order).item() == 0 and total_norm([nothing, nothing], order).device.type == device
    assert total_norm([]).item() == 0 and total_norm([]).dtype == torch.float32
    assert clip_grads_([], 1.0).item() == 0 and clip_grads_([nothing], 1.0).item() == 0
    ones = torch.ones(5, device=device)
    for order in ORDERS:
        assert_same_bits(total_norm([nothing, ones, nothing[:, :0], ones], order), total_norm([ones, ones], order))
    with pytest.raises(RuntimeError, match="infinity norm of no elements"):
        total_norm([nothing], INF)


@pytest.mark.parametrize("order", [1, 2, INF, 3, 0.5, -1, -INF])
def test_types(device, order):
    """Mixed types promote as torch's do; complex tensors have real norms."""
    mixes = [[torch.float16, torch.float32], [torch.float64, torch.float32], [torch.bfloat16, torch.float16]]
    mixes += [[torch.complex64], [torch.complex128, torch.float32]]
    for dtypes in mixes:
        tensors = [common.random_data(50, dtype, seed=i, device=device) for i, dtype in enumerate(dtypes * 2)]
        want = torch.nn.utils.get_total_norm(tensors, order)
        got = total_norm(tensors, order)
        torch.testing.assert_close(got, want, rtol=1e-2 if torch.bfloat16 in dtypes else 1e-3, atol=0)


def test_order_zero_counts(device):
    x = torch.tensor([1.0, 0.0, 2.0], device=device)
    assert total_norm([x, x[1:], x * 0], 0).item() == 3


@pytest.mark.parametrize("dtype", common.INTEGER, ids=name)
def test_integers_have_no_norm(device, dtype):
    for op in (total_norm, lambda tensors: clip_grads_(tensors, 1.0)):
        with pytest.raises(RuntimeError, match="tensor 1 is of dtype"):
            op([torch.ones(3, device=device), torch.ones(3, device=device).to(dtype)])
    with pytest.raises(RuntimeError, match="tensor 0 is of dtype"):
        total_norm([torch.ones(3, device="meta").to(dtype)])


@pytest.mark.cuda
def test_tensors_of_several_devices():
    tensors = [torch.full((3,), 2.0), torch.full((3,), 2.0, device="cuda")]
    assert total_norm(tensors).device.type == "cpu" and total_norm(tensors[::-1]).device.type == "cuda"
    assert math.isclose(total_norm(tensors).item(), 24**0.5, rel_tol=1e-6)
    got = clip_grads_(tensors, 1.0)
    assert got.device.type == "cpu" and math.isclose(total_norm(tensors).item(), 1.0, rel_tol=1e-5)


@orders
def test_out(device, order, capfd):
    tensors = tensors_of(SHAPES, torch.float32, device)
    want = total_norm(tensors, order)
    for function in (total_norm, torch_reduce.total_norm):
        out = torch.empty_like(want)
        assert function(tensors, order, out=out) is out
        assert_same_bits(out, want)
    assert_same_bits(total_norm(tensors, order, out=tensors[0].view(())), want)  # of the list itself
    assert "was resized" not in capfd.readouterr().err
    with pytest.raises(RuntimeError, match=r"(?i)gpureduce::total_norm: expected out of dtype float, but found double"):
        total_norm(tensors, order, out=want.double())
    with pytest.raises(RuntimeError, match="gpureduce::total_norm: expected out on"):
        total_norm(tensors, order, out=want.to("meta"))
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        total_norm([tensors[1].requires_grad_()], order, out=out)
    meta = torch.empty((), device="meta")
    assert total_norm([t.detach().to("meta") for t in tensors], order, out=meta) is meta


def test_out_in_a_graph(device):
    x, out = torch.ones(3, 4, device=device), torch.zeros((), device=device)

    def function(x, out):
        total_norm([x, x], 2, out=out)
        return out * 2

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    assert_same_bits(compiled(x, out), function(x, torch.zeros_like(out)))
    assert_same_bits(out, total_norm([x, x], 2))
