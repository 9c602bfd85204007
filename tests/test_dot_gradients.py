"""vecdot and dot: gradients, torch.func, torch.compile and TorchScript."""

import pytest
import torch

from tests.common import assert_same_bits, name, tensors_of

vecdot = torch.ops.gpureduce.vecdot
dot = torch.ops.gpureduce.dot

CALLS = [((3, 4), (3, 4), -1), ((3, 1), (1, 4), 1), ((4,), (2, 3, 4), 0), ((), (3,), 0), ((2, 0), (2, 1), 1)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=name)
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_gradients(device, dtype, call):
    *shapes, dim = call
    x, y = (t.requires_grad_() for t in tensors_of(shapes, dtype, device))
    checks = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    function = lambda a, b: vecdot(a, b, dim=dim)  # noqa: E731
    assert torch.autograd.gradcheck(function, (x, y), **checks)
    assert torch.autograd.gradgradcheck(function, (x, y), check_fwd_over_rev=True, check_batched_grad=True)
    assert torch.autograd.gradcheck(function, (x, y.detach()), **checks)
    assert torch.autograd.gradcheck(function, (x.detach(), y), **checks)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=name)
def test_gradients_of_dot(device, dtype):
    x, y = (t.requires_grad_() for t in tensors_of([(5,), (5,)], dtype, device))
    assert torch.autograd.gradcheck(dot, (x, y), check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(dot, (x, y), check_fwd_over_rev=True)


def test_same_tensor_twice(device):
    x = torch.arange(3.0, device=device, requires_grad=True)
    vecdot(x, x).backward()
    assert x.grad.tolist() == [0, 2, 4]


def test_func(device):
    x, y = tensors_of([(4, 3, 5), (4, 5)], torch.float64, device)
    vmap = torch.func.vmap
    for dim in (0, 1, -1, -2):
        want = torch.stack([vecdot(a, b, dim=dim) for a, b in zip(x, y, strict=True)])
        torch.testing.assert_close(vmap(lambda a, b, d=dim: vecdot(a, b, dim=d))(x, y), want)
    torch.testing.assert_close(vmap(lambda a: vecdot(a, y[0]))(x), vecdot(x, y[0]))
    got = vmap(lambda b: vecdot(x, b), in_dims=1)(y.t())
    torch.testing.assert_close(got, torch.stack([vecdot(x, b) for b in y]))
    torch.testing.assert_close(vmap(vecdot)(y[:, 0], y[:, 1]), y[:, 0] * y[:, 1])
    torch.testing.assert_close(vmap(dot)(y, y), (y * y).sum(1))
    torch.testing.assert_close(vmap(lambda b: dot(y[0], b))(y), (y * y[0]).sum(1))
    integers = torch.arange(12, device=device, dtype=torch.int32).view(3, 4)
    assert vmap(dot)(integers, integers).tolist() == (integers * integers).sum(1).tolist()
    z = torch.randn(4, 5, dtype=torch.complex128, device=device)
    torch.testing.assert_close(vmap(dot)(z, z), (z * z).sum(1))
    torch.testing.assert_close(vmap(torch.func.grad(lambda b: vecdot(b, b)))(y), 2 * y)
    torch.testing.assert_close(
        torch.func.hessian(lambda b: vecdot(b, b))(y[0]), 2 * torch.eye(5, dtype=torch.float64, device=device)
    )
    with pytest.raises(IndexError, match="dim 2 is out of range for 2-d"):
        vmap(lambda a, b: vecdot(a, b, dim=2))(x, y)


def test_opcheck(device):
    for dtype, differentiable in ((torch.float32, True), (torch.bfloat16, True), (torch.complex64, True)):
        x, y = (t.requires_grad_(differentiable) for t in tensors_of([(2, 3, 4), (3, 4)], dtype, device))
        for dim, accumulate in ((-1, None), (1, None), (0, "compensated")):
            torch.library.opcheck(vecdot.default, (x, y), {"dim": dim, "accumulate": accumulate})
        torch.library.opcheck(dot.default, (x[0, 0], y[0]))
    plain = tensors_of([(5,), (5,)], torch.float32, device)
    torch.library.opcheck(dot.out, tuple(plain), {"out": torch.empty((), device=device)}, test_utils="test_schema")


def test_compile(device):
    function = lambda a, b: vecdot(a.sin(), b, dim=0) + 1  # noqa: E731
    x, y = (t.requires_grad_() for t in tensors_of([(6, 5), (1, 5)], torch.float64, device))
    compiled = torch.compile(function, fullgraph=True)
    torch.testing.assert_close(compiled(x, y), function(x, y))
    got = torch.autograd.grad(compiled(x, y).sum(), (x, y))
    torch.testing.assert_close(got, torch.autograd.grad(function(x, y).sum(), (x, y)))


def test_compiled_autograd():
    for function in (
        lambda a, b: vecdot(a, b),
        lambda a, b: torch.ops.gpureduce.total_norm([a, b]),
        lambda a, b: dot(a[0], b[0]),
    ):
        x, y = (t.requires_grad_() for t in tensors_of([(6, 5), (6, 5)], torch.float64))
        function(x, y).sum().backward()
        want = [x.grad.clone(), y.grad.clone()]
        x.grad = y.grad = None
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
            function(x, y).sum().backward()
        torch.testing.assert_close([x.grad, y.grad], want)


def test_script():
    if not hasattr(torch, "jit"):
        pytest.skip("torch has no TorchScript")

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.ops.gpureduce.vecdot(x, y, dim=0) + torch.ops.gpureduce.total_norm([x, y])

    x, y = tensors_of([(3, 4), (3, 4)], torch.float32)
    assert_same_bits(torch.jit.script(function)(x, y), function(x, y))
