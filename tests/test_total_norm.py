"""total_norm and clip_grad_norm_: values, bits, edge cases of lists, gradients, and torch's own functions beside."""

import itertools
import math
import types
import warnings

import numpy as np
import pytest
import torch

import torch_reduce
from tests import common, reference_tree
from tests.common import REAL, assert_same_bits, name

total_norm = torch.ops.gpureduce.total_norm
clip_grads_ = torch.ops.gpureduce.clip_grads_
INF = float("inf")
ORDERS = [1, 2, INF]
orders = pytest.mark.parametrize("order", ORDERS)
real = pytest.mark.parametrize("dtype", REAL, ids=name)
SHAPES = [(1,), (3, 5), (), (64,), (7, 11, 13), (2048,), (513, 3), (5000,)]


def tensors_of(shapes, dtype, device="cpu", seed=0):
    return [common.random_data(shape, dtype, seed + i, device) for i, shape in enumerate(shapes)]


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


# --- gradients --------------------------------------------------------------------------------------------------------

GRADIENT_CASES = [(order, dtype) for order in (1, 2, INF, 3) for dtype in (torch.float64, torch.complex128)]


@pytest.mark.parametrize("order, dtype", GRADIENT_CASES, ids=str)
def test_gradients(device, order, dtype):
    tensors = [t.requires_grad_() for t in tensors_of([(3,), (2, 2), ()], dtype, device)]
    function = lambda *xs: total_norm(list(xs), order)  # noqa: E731
    assert torch.autograd.gradcheck(function, tensors, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(function, tensors, check_fwd_over_rev=order != INF, check_batched_grad=True)


@pytest.mark.parametrize("order", [1, 2, INF, 3])
def test_gradients_are_torchs(device, order):
    def gradients(function):
        leaves = [t.requires_grad_() for t in tensors_of([(30,), (4, 5), (0,)], torch.float64, device)]
        function(leaves).backward()
        return [t.grad for t in leaves]

    flat = lambda ts: torch.linalg.vector_norm(torch.cat([t.reshape(-1) for t in ts]), order)  # noqa: E731
    for got, want in zip(gradients(lambda ts: total_norm(ts, order)), gradients(flat), strict=True):
        torch.testing.assert_close(got, want)


def test_gradient_at_zero_and_ties(device):
    x, y = torch.zeros(3, device=device, requires_grad=True), torch.zeros(2, device=device, requires_grad=True)
    total_norm([x, y]).backward()
    assert not x.grad.any() and not y.grad.any()
    x, y = torch.tensor([1.0, -3.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    total_norm([x, y], INF).backward()
    assert x.grad.tolist() == [0, -0.5] and y.grad.tolist() == [0.5]


def test_only_some_require_gradients(device):
    x, y = torch.ones(3, device=device, requires_grad=True), torch.ones(1, device=device)
    norm = total_norm([x, y])
    norm.backward()
    assert x.grad.tolist() == [0.5] * 3 and y.grad is None
    mixed = total_norm([x, y.double()])
    mixed.backward()
    assert x.grad.tolist() == [1.0] * 3 and mixed.dtype == torch.float64


def test_func(device):
    xs = [torch.randn(4, 3, dtype=torch.float64, device=device), torch.randn(4, 2, dtype=torch.float64, device=device)]
    for order in (1, 2, INF, 3, 0):
        got = torch.func.vmap(lambda a, b, o=order: total_norm([a, b], o))(*xs)
        torch.testing.assert_close(got, torch.stack([total_norm([a, b], order) for a, b in zip(*xs, strict=True)]))
    got = torch.func.vmap(lambda a: total_norm([a, xs[1]]))(xs[0])
    torch.testing.assert_close(got, torch.stack([total_norm([a, xs[1]]) for a in xs[0]]))
    got = torch.func.vmap(torch.func.grad(lambda a: total_norm([a])))(xs[0])
    torch.testing.assert_close(got, xs[0] / xs[0].norm(dim=1, keepdim=True))


def test_opcheck(device):
    for dtype, differentiable in ((torch.float32, True), (torch.bfloat16, False), (torch.complex64, True)):
        tensors = [t.requires_grad_(differentiable) for t in tensors_of([(3, 4), (7,), ()], dtype, device)]
        for order in (1, 2, INF, 3):
            torch.library.opcheck(total_norm.default, (tensors, order))
    plain = tensors_of([(3, 4), (7,), ()], torch.float32, device)
    torch.library.opcheck(clip_grads_.default, (plain, 1.0))


def test_compile(device):
    xs = tensors_of([(3, 4), (7,)], torch.float32, device)
    compiled = torch.compile(lambda ts: total_norm([t * 2 for t in ts]) + 1, fullgraph=True)
    torch.testing.assert_close(compiled(xs), total_norm([t * 2 for t in xs]) + 1)

    def clip(ts):
        doubled = [t * 2 for t in ts]
        norm = clip_grads_(doubled, 1.0)
        return norm, doubled

    got, want = torch.compile(clip, fullgraph=True)(xs), clip(xs)
    torch.testing.assert_close(got, want)


# --- clipping ---------------------------------------------------------------------------------------------------------


def model(device, dtype=torch.float32):
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 10)]
    net = torch.nn.Sequential(*layers).to(device, dtype)
    net.unused = torch.nn.Parameter(torch.ones(3, device=device, dtype=dtype))
    x = torch.randn(16, 3, 8, 8, device=device, dtype=dtype)
    torch.nn.functional.cross_entropy(net(x), torch.arange(16, device=device) % 10).backward()
    return net


@orders
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=name)
@pytest.mark.parametrize("share", [0.1, 0.9, 1.1, 100])
def test_clip_is_torchs(device, dtype, order, share):
    ours, theirs = model(device, dtype), model(device, dtype)
    limit = (
        share * torch.nn.utils.get_total_norm([p.grad for p in ours.parameters() if p.grad is not None], order).item()
    )
    got = torch_reduce.clip_grad_norm_(ours.parameters(), limit, order)
    want = torch.nn.utils.clip_grad_norm_(theirs.parameters(), limit, order)
    tolerance = {"rtol": (4 if dtype == torch.bfloat16 else 16) * torch.finfo(dtype).eps, "atol": 0}
    torch.testing.assert_close(got, want, **tolerance)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        if a.grad is None:
            assert b.grad is None
            continue
        torch.testing.assert_close(a.grad, b.grad, **tolerance)
        if share > 1:
            assert_same_bits(a.grad, b.grad)


def parameters_of(values, device="cpu", dtype=torch.float32):
    parameters = [torch.nn.Parameter(torch.zeros(len(v), device=device, dtype=dtype)) for v in values]
    for p, v in zip(parameters, values, strict=True):
        p.grad = torch.tensor(v, device=device, dtype=dtype)
    return parameters


def test_clip_arguments(device):
    p, q = parameters_of([[3.0], [4.0]], device)
    q.grad, kept = None, q.grad
    assert torch_reduce.clip_grad_norm_(p, 1.0).item() == 3 and math.isclose(p.grad.item(), 1.0, rel_tol=1e-6)
    q.grad = kept
    assert torch_reduce.clip_grad_norm_([q, torch.nn.Parameter(torch.ones(2))], 2.0).item() == 4
    assert torch_reduce.clip_grad_norm_((x for x in [q]), 100).item() == pytest.approx(2.0, rel=1e-6)
    assert torch_reduce.clip_grad_norm_([], 1.0).item() == 0
    with pytest.warns(UserWarning, match="empty generator"):
        torch_reduce.clip_grad_norm_((x for x in []), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch_reduce.clip_grad_norm_([], 1.0, foreach=True)
    assert torch_reduce.clip_grad_norm_(parameters_of([[3.0], [4.0]], device), 1.0, "inf").item() == 4
    assert torch_reduce.clip_grad_norm_(parameters_of([[3.0], [4.0]], device), 1.0, 3, foreach=False).item() > 4


def test_clip_of_what_is_not_finite(device):
    for value in (INF, float("nan")):
        mine, theirs = parameters_of([[value, 2.0]], device), parameters_of([[value, 2.0]], device)
        for function, ps in ((torch_reduce.clip_grad_norm_, mine), (torch.nn.utils.clip_grad_norm_, theirs)):
            with pytest.raises(RuntimeError, match=r"order 2\.0 for gradients from `parameters` is non-finite"):
                function(ps, 1.0, error_if_nonfinite=True)
            assert ps[0].grad[1] == 2
            function(ps, 1.0)
        torch.testing.assert_close(mine[0].grad, theirs[0].grad, equal_nan=True)
    mine = parameters_of([[3.0, 4.0]], device)
    assert torch_reduce.clip_grad_norm_(mine, 1.0, error_if_nonfinite=True).item() == 5
    assert math.isclose(mine[0].grad.norm().item(), 1.0, rel_tol=1e-6)


def test_clip_of_mixed_and_other_gradients(device):
    def gradients():
        p = parameters_of([[3.0] * 5, [4.0] * 3], device)
        half = parameters_of([[5.0] * 7], device, torch.float16)
        wide = torch.nn.Parameter(torch.zeros(4, 6, device=device))
        wide.grad = torch.ones(4, 12, device=device)[:, ::2]  # with gaps
        across = torch.nn.Parameter(torch.zeros(4, 6, device=device))
        across.grad = torch.ones(6, 4, device=device).t()
        complex_one = torch.nn.Parameter(torch.zeros(3, dtype=torch.complex64, device=device))
        complex_one.grad = torch.full((3,), 3 + 4j, device=device)
        return {
            "gaps": [*p, wide, across],
            "mixed": [*p, *half, wide],
            "complex": [complex_one],
            "all": [*p, complex_one],
        }

    for case, order in itertools.product(gradients(), [2, 1, INF]):
        mine, other = gradients()[case], gradients()[case]
        got = torch_reduce.clip_grad_norm_(mine, 1.0, order)
        want = torch.nn.utils.clip_grad_norm_(other, 1.0, order)
        torch.testing.assert_close(got, want, rtol=2e-3, atol=0)
        for a, b in zip(mine, other, strict=True):
            torch.testing.assert_close(a.grad, b.grad, rtol=2e-3, atol=0)


def test_clip_changes_versions_and_nothing_else(device):
    (p,) = parameters_of([[3.0, 4.0]], device)
    before, address = p.grad._version, p.grad.data_ptr()
    torch_reduce.clip_grad_norm_([p], 1.0)
    assert p.grad._version > before and p.grad.data_ptr() == address
    x = torch.ones(3, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable"):
        clip_grads_([x], 1.0)
    y = torch.ones(3, device=device, requires_grad=True)
    (y**3).sum().backward(create_graph=True)
    torch_reduce.clip_grad_norm_([y], 1.0)
    assert math.isclose(y.grad.norm().item(), 1.0, rel_tol=1e-6)


def test_clip_of_subclasses_is_torchs_work():
    class Marked(torch.Tensor):
        pass

    p = torch.nn.Parameter(torch.zeros(2))
    p.grad = torch.tensor([3.0, 4.0]).as_subclass(Marked)
    assert torch_reduce.clip_grad_norm_([p], 1.0).item() == 5
    assert type(p.grad) is Marked and math.isclose(p.grad.norm().item(), 1.0, rel_tol=1e-6)


def test_clip_has_torchs_arguments():
    import inspect

    ours = inspect.signature(torch_reduce.clip_grad_norm_).parameters
    theirs = inspect.signature(torch.nn.utils.clip_grad_norm_).parameters
    assert [(p.name, p.default) for p in ours.values()] == [(p.name, p.default) for p in theirs.values()]
    assert isinstance(torch_reduce.total_norm, types.FunctionType)


# --- CUDA -------------------------------------------------------------------------------------------------------------


@pytest.mark.cuda
@real
def test_clip_has_the_cpus_bits(dtype):
    for limit in (0.5, 1e6):
        shapes = [(300_000,), (70, 1001), (5,), (33,)] * 70  # more than one launch's small table
        mine = tensors_of(shapes, dtype)
        there = [t.cuda() for t in mine]
        assert_same_bits(clip_grads_(there, limit).cpu(), clip_grads_(mine, limit))
        for a, b in zip(there, mine, strict=True):
            assert_same_bits(a.cpu(), b)


@pytest.mark.cuda
def test_launches():
    """Two for a clip of up to 2,048 tensors, and nothing else on the device."""
    from torch.profiler import ProfilerActivity, profile

    gradients = [torch.randn(100, device="cuda") for _ in range(161)]
    clip_grads_(gradients, 1.0)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as run:
        clip_grads_(gradients, 1.0)
        torch.cuda.synchronize()
    kernels = [event for event in run.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    assert len(kernels) == 2, [event.name for event in kernels]


@pytest.mark.cuda
def test_capture_and_replay():
    for count in (10, 3000):
        sources = tensors_of([(100 + i % 7,) for i in range(count)], torch.float32, "cuda")
        gradients = [t.clone() for t in sources]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            norm = clip_grads_(gradients, 1.0)
        for factor in (1, 2, 3):
            for gradient, source in zip(gradients, sources, strict=True):
                gradient.copy_(source * factor)
            graph.replay()
            want = [source * factor for source in sources]
            assert_same_bits(norm, clip_grads_(want, 1.0))
            assert all(torch.equal(a, b) for a, b in zip(gradients, want, strict=True))


@pytest.mark.cuda
def test_current_stream_is_used():
    stream = torch.cuda.Stream()
    gradients = [torch.zeros(1 << 20, device="cuda") for _ in range(3)]
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        for gradient in gradients:
            gradient.fill_(1)
        norm = clip_grads_(gradients, 1.0)
    stream.synchronize()
    assert math.isclose(norm.item(), (3 << 20) ** 0.5, rel_tol=1e-6)
    assert math.isclose(total_norm(gradients).item(), 1.0, rel_tol=1e-5)


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
