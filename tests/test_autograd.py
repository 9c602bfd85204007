"""Autograd: opcheck, first and second derivatives, forward mode, torch.func, and gradients with any strides."""

import pytest
import torch

from tests import common
from tests.common import assert_same_bits, name, op

CALLS = [{}, {"dim": 0}, {"dim": -1, "keepdim": True}, {"dim": [0, 2]}, {"dim": [], "keepdim": True}]
CALLS += [{"dim": 1, "accumulate": "compensated"}, {"dim": 1, "accumulate": "double"}]
calls = pytest.mark.parametrize("call", CALLS, ids=str)


def leaf(shape, dtype=torch.float64, device="cpu", seed=0):
    return common.random_data(shape, dtype, seed, device).requires_grad_()


OPCHECKS = [(torch.float32, call) for call in CALLS]
OPCHECKS += [(dtype, {"dim": [0, 2]}) for dtype in (torch.bfloat16, torch.complex64, torch.int32)]


@pytest.mark.parametrize("dtype, call", OPCHECKS, ids=str)
def test_opcheck(device, dtype, call):
    x = common.exact_data(24, dtype, device).view(2, 3, 4)
    differentiable = dtype != torch.int32
    for view in (x, x.permute(2, 0, 1), x[:, ::2, 1:], x[:1].expand(5, 3, 4), x[:, :0]):
        sample = view.detach().requires_grad_(differentiable)
        torch.library.opcheck(op.default, (sample,), call)
    if dtype == torch.float32:
        torch.library.opcheck(op.default, (x.detach().requires_grad_(),), {"dtype": torch.float64, **call})


@calls
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=name)
def test_gradients(device, call, dtype):
    for shape in ((2, 3, 4), (1, 1, 3), (3, 1, 0)):
        for x in (leaf(shape, dtype, device), leaf(shape, dtype, device).permute(2, 0, 1).detach().requires_grad_()):
            function = lambda t: op(t, **call)  # noqa: E731
            assert torch.autograd.gradcheck(
                function, x, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
            )
            assert torch.autograd.gradgradcheck(function, x, check_fwd_over_rev=True, check_batched_grad=True)
    scalar = leaf((), dtype, device)
    assert torch.autograd.gradcheck(lambda t: op(t), scalar, check_forward_ad=True)


def gradient(x, grad, dim, keepdim=False, **options):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(op(x, dim, keepdim, **options), x, grad)[0]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64], ids=name
)
def test_incoming_gradients_of_any_strides(device, dtype):
    """Stride-0, row-pitch and transposed gradients give the bits of contiguous ones: pytorch/pytorch#64529."""
    x = common.random_data((6, 4, 5), dtype, device=device)
    weights = common.random_data((6, 5), dtype, seed=1, device=device)
    pitched = torch.zeros(6, 9, dtype=dtype, device=device)[:, 2:7].copy_(weights)
    for grad in (
        torch.tensor(3.0, dtype=dtype, device=device).expand(6, 5),
        weights[:1].expand(6, 5),
        weights[:, :1].expand(6, 5),
        weights.t().contiguous().t(),
        pitched,
    ):
        got, want = gradient(x, grad, 1), gradient(x, grad.contiguous(), 1)
        assert_same_bits(got, want)
        assert_same_bits(got, grad.unsqueeze(1).expand(6, 4, 5).contiguous())
    y = x.detach().requires_grad_()
    total = op(op(y, 2), None)
    total.backward(torch.ones_like(total))
    assert_same_bits(y.grad, torch.ones_like(x))


def test_gradient_is_torchs(device):
    for shape, dim, keepdim in [
        ((4, 5), None, False),
        ((4, 5), 1, True),
        ((4, 5, 6), [0, 2], False),
        ((), None, False),
    ]:
        for dtype in (torch.float32, torch.bfloat16, torch.complex64):
            x = common.random_data(shape, dtype, device=device).requires_grad_()
            ours = op(x, dim, keepdim)
            theirs = torch.sum(x, dim, keepdim) if dim is not None else torch.sum(x)
            weights = common.random_data(theirs.shape, dtype, seed=1, device=device).reshape(ours.shape)
            (got,) = torch.autograd.grad(ours, x, weights)
            (want,) = torch.autograd.grad(theirs, x, weights.reshape(theirs.shape))
            assert_same_bits(got.contiguous().cpu(), want.contiguous().cpu())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=name)
@pytest.mark.parametrize("out", [torch.float64, torch.float32, torch.bfloat16, torch.complex64], ids=name)
def test_gradient_has_the_dtype_of_the_input(device, dtype, out):
    x = common.exact_data(12, dtype, device).view(3, 4).requires_grad_()
    y = op(x, 1, dtype=out)
    weights = torch.tensor([1.0, 2.0, 3.0], device=device).to(out)
    (got,) = torch.autograd.grad(y, x, weights)
    want = weights.real if out.is_complex else weights
    assert_same_bits(got.contiguous(), want.to(dtype)[:, None].expand(3, 4).contiguous())


def test_integers_record_nothing(device):
    assert not op(torch.ones(3, dtype=torch.int32, device=device)).requires_grad
    x = torch.ones(3, device=device, requires_grad=True)
    for function in (torch.sum, op):  # torch's rule, and so ours
        with pytest.raises(RuntimeError, match="Autograd not support dtype: Long"):
            function(x, dtype=torch.int64)
    assert op(x.detach(), dtype=torch.int64).item() == 3
    from_integers = op(torch.ones(3, dtype=torch.int32, device=device), dtype=torch.float32)
    assert not from_integers.requires_grad


def test_nothing_is_recorded_without_grad(device):
    x = torch.ones(3, device=device, requires_grad=True)
    with torch.no_grad():
        assert op(x).grad_fn is None
    with torch.inference_mode():
        assert op(x).grad_fn is None
    assert op(x.detach()).grad_fn is None
    assert "Sum" in op(x).grad_fn.name()


def test_the_node_keeps_no_tensor_alive():
    x = torch.ones(3, requires_grad=True) * 2
    storage = torch.multiprocessing.reductions.StorageWeakRef(x.untyped_storage())
    y = op(x)
    del x
    assert storage.expired()
    y.backward()


def test_double_backward_reaches_the_incoming_gradient(device):
    x, weights = leaf((3, 4), device=device), leaf((3,), device=device, seed=1)
    (first,) = torch.autograd.grad(op(x.sin(), 1), x, weights, create_graph=True)
    second = torch.autograd.grad(first.sum(), (x, weights))
    (first_want,) = torch.autograd.grad(torch.sum(x.sin(), 1), x, weights, create_graph=True)
    want = torch.autograd.grad(first_want.sum(), (x, weights))
    for got, expected in zip(second, want, strict=True):
        torch.testing.assert_close(got, expected)


def test_inplace_after_is_harmless():
    """The sum saves nothing, so its input may be changed before backward."""
    x = torch.ones(3, requires_grad=True)
    z = x * 1
    y = op(z)
    z.data.add_(5)
    z.add_(1)
    y.backward()
    assert x.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("accumulate", [None, "compensated"])
def test_forward_mode(device, accumulate):
    import torch.autograd.forward_ad as forward

    x, tangent = (
        common.random_data((3, 70), torch.float32, 1, device),
        common.random_data((3, 70), torch.float32, 2, device),
    )
    with forward.dual_level():
        primal, derivative = forward.unpack_dual(op(forward.make_dual(x, tangent), 1, accumulate=accumulate))
        assert_same_bits(primal, op(x, 1, accumulate=accumulate))
        assert_same_bits(derivative, op(tangent, 1, accumulate=accumulate))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "int32"])
@pytest.mark.parametrize("fast", [torch.bfloat16, torch.float16], ids=name)
def test_autocast_is_torchs(device, kind, fast):
    x = common.exact_data(40, getattr(torch, kind), device).view(5, 8)
    x.requires_grad_(x.is_floating_point())
    with torch.autocast(device, dtype=fast):
        for call in ({}, {"dim": 1}, {"dtype": torch.float64}, {"dim": 0, "keepdim": True}):
            ours, theirs = op(x, **call), torch.sum(x, **call)
            assert_same_bits(ours.detach(), theirs.detach(), str(call))
        with torch.autocast(device, enabled=False):
            assert op(x).dtype == torch.sum(x).dtype
        loss = op(x @ x.t()) if x.is_floating_point() and kind != "float64" else None
    if loss is not None:
        loss.backward()
        assert x.grad.dtype == x.dtype
