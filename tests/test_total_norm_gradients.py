"""total_norm: gradients, torch.func and torch.compile."""

import pytest
import torch

from tests.common import tensors_of

total_norm = torch.ops.gpureduce.total_norm
clip_grads_ = torch.ops.gpureduce.clip_grads_
INF = float("inf")
ORDERS = [1, 2, INF]
orders = pytest.mark.parametrize("order", ORDERS)


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
