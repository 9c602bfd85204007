"""clip_grad_norm_: torch's own function beside, bits, launches, graphs and streams."""

import itertools
import math
import types
import warnings

import pytest
import torch

import torch_reduce
from tests.common import REAL, assert_same_bits, name, tensors_of

total_norm = torch.ops.gpureduce.total_norm
clip_grads_ = torch.ops.gpureduce.clip_grads_
INF = float("inf")
orders = pytest.mark.parametrize("order", [1, 2, INF])
real = pytest.mark.parametrize("dtype", REAL, ids=name)


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
