"""The gradient rules of every differentiable operator: first and second derivatives, forward mode, torch.func, any
incoming strides, and the points where a formula divides by zero or overflows."""

import math
import warnings

import pytest
import torch

from tests import common
from tests.common import FLOATING, assert_same_bits, name
from tests.family import FAMILY, Member, norm, ops, results

inf, nan = math.inf, math.nan


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about degrees of freedom
        yield


def corrected(name, correction):
    """A member of the family with another correction than torch's."""
    return Member(
        f"{name} {correction}",
        lambda x, d, k: getattr(ops, name)(x, d, correction=correction, keepdim=k),
        lambda x, d, k: getattr(torch, name)(x, d, correction=correction, keepdim=k),
        None,
        dtypes=FLOATING,
    )


RULES = [member for member in FAMILY if member.differentiable and member.name not in ("sum", "norm 0")]
RULES += [norm(order) for order in (1.5, 2.5)]
RULES += [corrected(*pair) for pair in (("var", 0), ("var", 0.5), ("std", 0), ("var_mean", 0), ("std_mean", 0))]
BY_NAME = {rule.name: rule for rule in RULES}
rules = pytest.mark.parametrize("rule", RULES, ids=str)
FEW = ["mean", "nansum", "prod", "amax", "max.dim", "aminmax", "logsumexp", "softmax_stats", "norm 2", "norm 3"]
FEW += ["norm inf", "var", "std", "var_mean"]
few = pytest.mark.parametrize("rule", [BY_NAME[word] for word in FEW], ids=FEW)


def dims_of(rule, dims):
    """Some that it takes, one of them negative."""
    each = [0, dims - 1, -1]
    lists = [list(range(0, dims, 2)), None]
    return {"whole": [None], "one": each, "maybe": [*each, None], "any": each + lists}[rule.dims]


def results_of(function, x, dim, keepdim):
    """The results that have a gradient."""
    return [r for r in results(function(x, dim, keepdim)) if r.is_floating_point() or r.is_complex()]


def differentiable(function, dim, keepdim):
    """A function for gradcheck: of one tensor, with the results that have a gradient."""
    return lambda x: tuple(results_of(function, x, dim, keepdim))


def leaf(shape, dtype=torch.float64, device="cpu", seed=0):
    """Values of one size, no two the same, so that finite differences are good everywhere."""
    generator = torch.Generator().manual_seed(seed)
    count = math.prod(shape)

    def part():
        magnitudes = 0.5 + (torch.randperm(count, generator=generator) + 0.5) / max(count, 1)
        signs = torch.where(torch.rand(count, generator=generator) < 0.5, -1.0, 1.0)
        return (magnitudes * signs).double().view(shape)

    values = torch.complex(part(), part()) if dtype.is_complex else part()
    return values.to(dtype).to(device).requires_grad_()


def gradient(function, x, *, dim=None, keepdim=False, weights=None):
    x = x.detach().requires_grad_()
    values = results_of(function, x, dim, keepdim)
    weights = weights or [torch.ones_like(result) for result in values]
    return torch.autograd.grad(values, x, weights)[0]


def dtypes_of(rule):
    return [dtype for dtype in (torch.float64, torch.complex128) if dtype in rule.dtypes]


@rules
def test_derivatives(device, rule):
    """First derivatives, backward, forward and batched, and second ones, against finite differences."""
    for dtype in dtypes_of(rule):
        x = leaf((2, 3, 2), dtype, device)
        for view in (x, x.detach().permute(2, 0, 1).requires_grad_()):
            for dim in dims_of(rule, 3):
                function = differentiable(rule.ours, dim, keepdim=False)
                assert torch.autograd.gradcheck(
                    function,
                    view,
                    check_forward_ad=True,
                    check_batched_grad=True,
                    check_batched_forward_grad=True,
                    fast_mode=True,
                )
                assert torch.autograd.gradgradcheck(
                    function, view, check_fwd_over_rev=True, check_batched_grad=True, fast_mode=True
                )


@rules
def test_derivatives_are_torchs(device, rule):
    for dtype in dtypes_of(rule):
        for shape in ((2, 3, 4), (5,), (3, 1, 2), (1, 1)):
            x = leaf(shape, dtype, device)
            for dim in dims_of(rule, len(shape)):
                for keepdim in (False, True):
                    got, want = (differentiable(f, dim, keepdim)(x) for f in (rule.ours, rule.theirs))
                    weights = [torch.randn(r.shape, dtype=r.dtype, device=device) for r in want]
                    (ours,) = torch.autograd.grad(got, x, weights)
                    (theirs,) = torch.autograd.grad(want, x, weights)
                    assert ours.dtype == x.dtype
                    torch.testing.assert_close(ours, theirs, equal_nan=True)


@rules
def test_scalars_and_empty_tensors(device, rule):
    scalar = torch.tensor(1.5, dtype=torch.float64, device=device, requires_grad=True)
    dim = 0 if rule.dims == "one" else None
    if rule.name in ("var", "std", "var_mean", "std_mean"):
        assert gradient(rule.ours, scalar, dim=dim).isnan().item()
    else:
        assert torch.autograd.gradcheck(differentiable(rule.ours, dim, False), scalar, check_forward_ad=True)
    if rule.dims != "whole":  # nothing to return
        empty = torch.ones(2, 0, dtype=torch.float64, device=device)
        assert gradient(rule.ours, empty, dim=0).shape == (2, 0)


@rules
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=name)
def test_incoming_gradients_of_any_strides(device, rule, dtype):
    """Stride-0 and row-pitch gradients give the bits of contiguous ones, of self's type (B01)."""
    x = leaf((6, 4, 5), dtype, device)
    dim = None if rule.dims == "whole" else 1
    shapes = results_of(rule.ours, x, dim, False)
    kinds = [lambda like: torch.tensor(3.0, dtype=like.dtype, device=device).expand(like.shape)]
    if rule.dims != "whole":
        kinds += [
            lambda like: common.random_data((6, 5), like.dtype, 1, device)[:1].expand(6, 5),
            lambda like: common.random_data((5, 6), like.dtype, 2, device).t(),
            lambda like: common.random_data((6, 9), like.dtype, 3, device)[:, 2:7],
        ]
    for kind in kinds:
        strided = [kind(like) for like in shapes]
        got = gradient(rule.ours, x, dim=dim, weights=strided)
        want = gradient(rule.ours, x, dim=dim, weights=[weight.contiguous() for weight in strided])
        assert got.dtype == dtype
        assert_same_bits(got.contiguous(), want.contiguous(), rule.name)


@few
def test_torch_func(device, rule):
    from torch.func import grad, hessian, jacfwd, jacrev, vmap

    x = leaf((3, 4), device=device).detach()
    dim = None if rule.dims == "whole" else 1
    ours = lambda t: sum(r.sin().sum() for r in results_of(rule.ours, t, dim, False))  # noqa: E731
    theirs = lambda t: sum(r.sin().sum() for r in results_of(rule.theirs, t, dim, False))  # noqa: E731
    for transform in (grad, jacrev, jacfwd, hessian, lambda f: vmap(grad(f))):
        batch = x if transform in (grad, jacrev, jacfwd, hessian) else torch.stack([x, x.flip(0), x * 2])
        torch.testing.assert_close(transform(ours)(batch), transform(theirs)(batch))


@few
def test_compiled_with_backward(rule):
    """Traced by AOT autograd, so that the formulas run on fake tensors."""
    dim = None if rule.dims == "whole" else 1
    function = lambda t: sum(r.sum() for r in results_of(rule.ours, t, dim, False))  # noqa: E731
    x = leaf((3, 4), torch.float32)
    (want,) = torch.autograd.grad(function(x), x)
    torch._dynamo.reset()
    (got,) = torch.autograd.grad(torch.compile(function, backend="aot_eager", fullgraph=True)(x), x)
    torch.testing.assert_close(got, want)


# --- values at the points where formulas go wrong -------------------------------------------------------------------


def value(device, rule, x, want, dtype=torch.float64, dim=0, second=True):
    """The gradient of a small literal row; and neither it nor the gradient of its sum is NaN unless the value is."""
    x = torch.tensor(x, dtype=dtype, device=device, requires_grad=True)
    values = results_of(BY_NAME[rule].ours, x, dim, False)
    (got,) = torch.autograd.grad(values, x, [torch.ones_like(r) for r in values], create_graph=True)
    expected = torch.tensor(want, dtype=dtype, device=device)
    torch.testing.assert_close(got.detach(), expected, equal_nan=True, msg=lambda text: f"{rule}: {text}")
    if second and got.requires_grad and not got.isnan().any():
        (twice,) = torch.autograd.grad(got.abs().sum(), x, allow_unused=True)
        assert twice is None or not twice.isnan().any(), f"{rule}: second derivative {twice}"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=name)
def test_product_with_zeros(device, dtype):
    """B14: without a division."""
    value(device, "prod", [2, 3, 0], [0, 0, 6], dtype)
    value(device, "prod", [2, 3, 0, 0], [0, 0, 0, 0], dtype)
    value(device, "prod", [0.0], [1], dtype)
    value(device, "prod", [2, 3, 4, 5, 6], [360, 240, 180, 144, 120], dtype)
    if dtype == torch.float16:  # the products of the first three and of the first two do not fit
        value(device, "prod", [300, 300, 1 / 1024, 1 / 1024], [0.000286102294921875] * 2 + [87.890625] * 2, dtype)


def test_product_with_zeros_twice(device):
    for row in ([2.0, 3, 0], [2.0, 3, 0, 0], [0.0, 0, 0, 1, 2], [0.0], [1.0, 0]):
        x = torch.tensor(row, dtype=torch.float64, device=device, requires_grad=True)
        assert torch.autograd.gradcheck(ops.prod, x, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(ops.prod, x, check_fwd_over_rev=True)
    (first,) = torch.autograd.grad(
        ops.prod(x := torch.tensor([2.0, 3, 0, 0], requires_grad=True)), x, create_graph=True
    )
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [0, 0, 6, 6]
    matrix = torch.tensor([[1.0, 0, 2], [3, 4, 5]], dtype=torch.float64, device=device, requires_grad=True)
    for dim in (0, 1, [0, 1], None):
        assert torch.autograd.gradgradcheck(lambda t, dim=dim: ops.prod(t, dim), matrix)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=name)
def test_logarithm_of_infinities(device, dtype):
    """B15: never NaN. A row of -inf has no gradient, where torch's is NaN; +inf takes all, where torch's is NaN."""
    value(device, "logsumexp", [-inf, -inf], [0, 0], dtype)
    value(device, "logsumexp", [-inf, 2], [0, 1], dtype)
    value(device, "logsumexp", [inf, 1], [1, 0], dtype)
    value(device, "logsumexp", [inf, inf, -inf], [0.5, 0.5, 0], dtype)
    value(device, "logsumexp", [1e4, 1e4], [0.5, 0.5], dtype)  # exp(x - result) would be 1: 1e4 + log(2) is rounded
    value(device, "logsumexp", [nan, 1], [nan, nan], dtype)


def test_logarithm_through_softmax_stats(device):
    """maximum + log(sum) is logsumexp, and has its gradient, ties and -inf included."""
    for row in ([1.0, 2, 3], [2.0, 2, 1], [-inf, 2], [-inf, -inf], [1e4, 1e4]):
        x = torch.tensor(row, dtype=torch.float64, device=device, requires_grad=True)
        maximum, total = ops.softmax_stats(x, 0)
        (got,) = torch.autograd.grad(maximum + total.log(), x)
        (want,) = torch.autograd.grad(ops.logsumexp(x, [0]), x)
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


def test_norms_at_zero_and_at_the_ends_of_the_range(device):
    """B20: torch's subgradient 0 at zero, and nothing that overflows or vanishes on the way."""
    for order in (0.5, 1, 1.5, 2, 3, -1, inf, -inf):
        value(device, f"norm {order}", [0.0, 0, 0], [0, 0, 0])
    value(device, "norm 2", [0.0, 3, -4], [0, 0.6, -0.8])
    value(device, "norm 3", [0.0, 1, 0], [0, 1, 0])
    value(device, "norm 1.5", [0.0, -1, 0], [0, -1, 0])
    value(device, "norm inf", [3.0, -3, 1], [0.5, -0.5, 0])
    value(device, "norm 2", [1e20, 1, 1], [1, 1e-20, 1e-20], torch.float32)
    value(device, "norm 2", [1e-30, 1e-30], [0.5**0.5] * 2, torch.float32)
    value(device, "norm 2", [1e-45], [1], torch.float32, second=False)
    value(device, "norm 3", [1e20, 1e20], [0.5 ** (2 / 3)] * 2, torch.float32)
    value(device, "norm 2", [200.0] * 3, [3**-0.5] * 3, torch.float16)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=name)
def test_complex_values(device, dtype):
    """B50: a gradient is the conjugate of what multiplies a tangent, and |z| of a tiny z is not 0."""
    value(device, "prod", [1 + 2j, 3 - 1j], [3 + 1j, 1 - 2j], dtype)
    for order in (1, 2, 3, inf):
        value(device, f"norm {order}", [3 + 4j], [0.6 + 0.8j], dtype)
        value(device, f"norm {order}", [0j], [0], dtype)
        value(device, f"norm {order}", [-1e-23 + 0j], [-1], dtype, second=False)
    value(device, "sumsq", [1 + 2j, 3j], [2 + 4j, 6j], dtype)
    value(device, "std 0", [1 + 1j, 1 + 1j], [0, 0], dtype)


def test_ties_and_nan(device):
    """amax, amin, max, min and aminmax share equally, max.dim goes by its index; a NaN is the extreme."""
    for rule in ("amax", "max"):
        value(device, rule, [1.0, 2, 2, 0], [0, 0.5, 0.5, 0])
        value(device, rule, [1.0, nan, 2], [0, 1, 0])
        value(device, rule, [-inf, -inf], [0.5, 0.5])
    for rule in ("amin", "min"):
        value(device, rule, [1.0, 0, 0, 2], [0, 0.5, 0.5, 0])
        value(device, rule, [inf, inf], [0.5, 0.5])
    value(device, "max.dim", [1.0, 2, 2, 0], [0, 1, 0, 0])
    value(device, "max.dim", [1.0, nan, 2], [0, 1, 0])
    value(device, "min.dim", [1.0, 0, 0, 2], [0, 1, 0, 0])
    value(device, "aminmax", [1.0, 1, 1], [2 / 3] * 3)
    value(device, "aminmax", [1.0, 2, 2], [1, 0.5, 0.5])
    for rule, want in (("nansum", [1, 0, 1]), ("nanmean", [0.5, 0, 0.5])):
        value(device, rule, [1.0, nan, 2], want)
        value(device, rule, [nan, nan], [0, 0])


def test_variance_of_one_element_and_of_equal_ones(device):
    """As torch: 0 / 0 with one element more than there is freedom, 0 where the deviation is 0."""
    value(device, "var", [3.0], [nan])
    value(device, "std", [3.0], [nan])
    value(device, "var 0", [3.0], [0])
    for rule in ("var 0", "var", "std 0", "std"):
        value(device, rule, [3.0, 3, 3], [0, 0, 0])
    value(device, "var_mean 0", [1.0, 3], [-0.5, 1.5])
    value(device, "var", [1000.0, 1001, 1002], [-1, 0, 1], torch.float16)  # the sum of squares would overflow
    value(device, "std", [1e19, 3e19], [-(0.5**0.5), 0.5**0.5], torch.float32, second=False)  # 1 / variance vanishes


def test_counts_are_integers(device):
    """65,536 elements and more: as a half that is inf, and a gradient divided by it 0."""
    ones = torch.ones(100_000, dtype=torch.float16, device=device)
    for rule in ("mean", "nanmean", "amax", "min", "norm inf"):
        got = gradient(BY_NAME[rule].ours, ones, dim=None)
        assert_same_bits(got, torch.full_like(ones, 1e-5), rule)


def test_results_do_not_alias(device):
    """B05: where there is nothing to reduce, a result is still not its input, and may be written to."""
    x = leaf((3, 1), device=device)
    for rule in RULES:
        dim = None if rule.dims == "whole" else 1
        with torch.no_grad():
            for result in results_of(rule.ours, x, dim, False):
                before = x.detach().clone()
                result.add_(1)
                assert torch.equal(x, before), rule.name
