"""torch.func: grad, jvp, jacrev, jacfwd, hessian and vmap over every dim, with no fallback."""

import warnings

import pytest
import torch
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from tests import common
from tests.common import assert_same_bits, name, op


@pytest.fixture(autouse=True)
def no_fallback():
    """Without a batching rule vmap would loop, and only warn (or not even that); here it raises."""
    before = torch._C._functorch._is_vmap_fallback_enabled()
    torch._C._functorch._set_vmap_fallback_enabled(False)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*(batching rule|performance drop|fallback).*")
        yield
    torch._C._functorch._set_vmap_fallback_enabled(before)


def test_grad_jacobian_hessian(device):
    x = common.random_data((4, 5), torch.float64, device=device)
    ours, theirs = (lambda t: op(t.sin() ** 2, 1).prod()), (lambda t: torch.sum(t.sin() ** 2, 1).prod())
    for transform in (grad, jacrev, jacfwd, hessian):
        torch.testing.assert_close(transform(ours)(x), transform(theirs)(x))
    rows = lambda t: op(t, 0)  # noqa: E731
    assert torch.equal(jacrev(rows)(x), jacfwd(rows)(x))


def test_jvp_and_vjp(device):
    x, t = common.random_data((3, 9), torch.float32, 1, device), common.random_data((3, 9), torch.float32, 2, device)
    value, tangent = jvp(lambda a: op(a, 1), (x,), (t,))
    assert_same_bits(value, op(x, 1))
    assert_same_bits(tangent, op(t, 1))
    value, pull = vjp(lambda a: op(a, 1), x)
    assert torch.equal(pull(torch.ones(3, device=device))[0], torch.ones_like(x))


CALLS = [{}, {"dim": 0}, {"dim": -1}, {"dim": [0, 1]}, {"dim": [-1, 0], "keepdim": True}, {"dim": [], "keepdim": True}]
CALLS += [{"keepdim": True}, {"dim": 1, "dtype": torch.float64, "accumulate": "compensated"}]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.complex64], ids=name)
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_vmap_over_every_in_dim(device, dtype, call):
    x = common.exact_data(120, dtype, device).view(4, 5, 6)
    call = {k: v for k, v in call.items() if k != "dtype" or not dtype.is_complex}
    for in_dim in (-3, -2, -1, 0, 1, 2):
        for out_dim in (0, -1):
            got = vmap(lambda t: op(t, **call), in_dims=in_dim, out_dims=out_dim)(x)
            want = torch.stack([op(t, **call) for t in x.unbind(in_dim)], out_dim)
            assert_same_bits(got.contiguous(), want.contiguous(), f"in_dim {in_dim}")


def test_vmap_of_scalars_and_nested(device):
    x = common.exact_data(60, torch.float32, device)
    assert torch.equal(vmap(lambda t: op(t))(x), x)
    assert torch.equal(vmap(lambda t: op(t, 0))(x), x)
    assert torch.equal(vmap(lambda t: op(t, -1, True))(x), x)
    cube = x.view(3, 4, 5)
    assert torch.equal(vmap(vmap(lambda t: op(t)))(cube), op(cube, 2))
    assert torch.equal(vmap(vmap(lambda t: op(t), in_dims=1), in_dims=2)(cube), op(cube, 0).t())
    assert torch.equal(vmap(lambda t: op(t, []))(cube), op(cube, [1, 2]))


def test_vmap_of_an_unbatched_input(device):
    x, y = common.exact_data(12, torch.float32, device).view(3, 4), torch.ones(7, device=device)
    got = vmap(lambda a, b: b * op(a, 0)[0], in_dims=(None, 0))(x, y)
    assert torch.equal(got, op(x, 0)[0].expand(7))


def test_vmap_with_grad(device):
    x = common.random_data((6, 4, 5), torch.float64, device=device)
    ours, theirs = (lambda t: op(t * t, 1).prod()), (lambda t: torch.sum(t * t, 1).prod())
    torch.testing.assert_close(vmap(grad(ours))(x), vmap(grad(theirs))(x))
    torch.testing.assert_close(grad(lambda t: vmap(ours)(t).sum())(x), grad(lambda t: vmap(theirs)(t).sum())(x))
    torch.testing.assert_close(vmap(hessian(ours))(x[:2]), vmap(hessian(theirs))(x[:2]))


def test_vmap_errors_name_the_dims_of_one_sample(device):
    x = torch.ones(2, 3, 4, device=device)
    with pytest.raises(IndexError, match=r"dim 2 is out of range for a 2-d tensor \(expected -2\.\.1\)"):
        vmap(lambda t: op(t, 2))(x)
    with pytest.raises(RuntimeError, match="dim 0 appears more than once"):
        vmap(lambda t: op(t, [0, -2]))(x)
