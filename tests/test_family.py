"""Every operator as torch's namesake: values, types, shapes, empty rows, errors, out=, and the systems around torch."""

import warnings

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import torch_reduce
from tests import common
from tests.family import FAMILY, ops, results
from tests.test_script import script

members = pytest.mark.parametrize("member", FAMILY, ids=str)
SHAPES = [(), (5,), (3, 4), (2, 3, 70), (2, 1, 3), (7, 3, 2, 2)]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # degrees of freedom
        yield


def data(shape, dtype, device="cpu", seed=0):
    """Small values of both signs, some of them zero, equal ones among them."""
    generator = torch.Generator().manual_seed(seed + len(shape))
    x = torch.randint(-6, 7, shape, generator=generator).double() / 4
    if dtype.is_complex:
        return torch.complex(x, -x.flip(0) if x.dim() else x).to(device, dtype)
    return (x * 4).to(torch.int64).abs().to(device, dtype) if not dtype.is_floating_point else x.to(device, dtype)


def tolerance(dtype):
    return {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 2e-5, torch.complex64: 2e-5}.get(dtype, 1e-9)


def same(got, want, what):
    for ours, theirs in zip(results(got), results(want), strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), f"{what}: {ours}\n{theirs}"
        assert ours.is_contiguous(), what
        rtol = tolerance(ours.dtype)
        assert torch.allclose(ours, theirs, rtol=rtol, atol=rtol, equal_nan=True), f"{what}: {ours}\n{theirs}"


@members
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(device, member, shape):
    for dtype in member.dtypes:
        x = data(shape, dtype, device)
        for dim, keepdim in member.calls(x):
            what = f"{member} of {dtype} {shape} dim={dim} keepdim={keepdim}"
            same(member.ours(x, dim, keepdim), member.theirs(x, dim, keepdim), what)


@members
def test_public_function(member):
    x = data((3, 4), torch.float32)
    for dim, keepdim in member.calls(x):
        for got, want in zip(
            results(member.public(x, dim, keepdim)), results(member.ours(x, dim, keepdim)), strict=True
        ):
            common.assert_same_bits(got, want)
    assert getattr(torch_reduce, member.function).__doc__
    assert member.function in torch_reduce.__all__


@members
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (3, 0, 4)], ids=str)
def test_no_elements(device, member, shape):
    """A result, or an error of the same type, as torch; and the same on meta."""
    x = torch.zeros(shape, device=device)
    for dim, keepdim in member.calls(x):
        what = f"{member} of {shape} dim={dim} keepdim={keepdim}"
        try:
            want = member.theirs(x, dim, keepdim)
        except (RuntimeError, IndexError) as error:
            assert not member.empty or member.name == "softmax_stats", what
            want = error
        if member.name == "softmax_stats":  # where torch's amax raises, -inf and 0
            assert results(member.ours(x, dim, keepdim))[0].shape == x.sum(dim, keepdim).shape
            continue
        if isinstance(want, Exception):
            for where in (x, x.to("meta")):
                with pytest.raises(type(want), match=rf"gpureduce::{member.function}: .*dim \d"):
                    member.ours(where, dim, keepdim)
        else:
            same(member.ours(x, dim, keepdim), want, what)


@members
def test_nan(device, member):
    x = data((4, 40), torch.float32, device)
    x[1, 3], x[2, 0], x[2, 39], x[3, 7] = float("nan"), float("inf"), float("nan"), float("-inf")
    for dim, keepdim in member.calls(x):
        same(member.ours(x, dim, keepdim), member.theirs(x, dim, keepdim), f"{member} dim={dim}")


@members
def test_bad_dims(device, member):
    if member.dims == "whole":
        pytest.skip("takes no dim")
    x = torch.ones(2, 3, device=device)
    for where in (x, x.to("meta")):
        with pytest.raises(
            IndexError,
            match=rf"gpureduce::{member.function}: dim 2 is out of range for a 2-d tensor \(expected -2..1\)",
        ):
            member.ours(where, 2, False)
        if member.dims == "any":
            with pytest.raises(RuntimeError, match=f"gpureduce::{member.function}: dim 1 appears more than once"):
                member.ours(where, [1, -1], False)


@members
def test_refused_types(device, member):
    for dtype in set(common.DTYPES) - set(member.dtypes):
        x = data((2, 3), dtype, device)
        dim = member.calls(x)[-1][0]
        for where in (x, x.to("meta")):
            with pytest.raises(RuntimeError, match=f"gpureduce::{member.function}: ") as ours:
                member.ours(where, dim, False)
        if member.name != "softmax_stats":
            with pytest.raises(RuntimeError) as theirs:
                member.theirs(x.cpu(), dim, False)
            assert ours.type is theirs.type, dtype


@members
def test_fake_results_are_the_real_ones(member):
    for shape in SHAPES:
        x = data(shape, torch.float32).transpose(0, -1) if shape else data(shape, torch.float32)
        with FakeTensorMode() as mode:
            fake = mode.from_tensor(x)
        for dim, keepdim in member.calls(x):
            want = results(member.ours(x, dim, keepdim))
            with mode:
                got = results(member.ours(fake, dim, keepdim))
            for one, other in zip(got, want, strict=True):
                assert (one.shape, one.stride(), one.dtype) == (other.shape, other.stride(), other.dtype)


def overload(member):
    name, _, rest = member.name.split(" ")[0].partition(".")
    return getattr(getattr(ops, name), rest or "default")


def out_overload(member):
    packet = getattr(ops, member.function)
    name = {"max": "unary_out", "min": "unary_out", "max.dim": "dim_max", "min.dim": "dim_min"}.get(member.name, "out")
    return getattr(packet, name)


def arguments(member, x, dim, keepdim):
    """What `ours` hands to the operator."""
    seen = {}

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is overload(member):
                seen["call"] = args, kwargs or {}
            return func(*args, **(kwargs or {}))

    with Watch():
        want = member.ours(x, dim, keepdim)
    return *seen["call"], results(want)


@members
def test_out(device, member):
    x = data((3, 4), torch.float64, device)
    for dim, keepdim in member.calls(x):
        args, kwargs, want = arguments(member, x, dim, keepdim)
        names = [argument.name for argument in out_overload(member)._schema.arguments if argument.is_out]
        assert len(names) == len(want)
        shapes = {"right": lambda y: y.new_empty(y.shape), "empty": lambda y: y.new_empty(0)}
        shapes["gaps"] = lambda y: y.new_empty((*y.shape, 2))[..., 0]
        for make in shapes.values():
            outs = [make(result) for result in want]
            got = out_overload(member)(*args, **kwargs, **dict(zip(names, outs, strict=True)))
            for out, result, expected in zip(outs, results(got), want, strict=True):
                assert result is out and out._version > 0
                common.assert_same_bits(out.contiguous(), expected)
        if member.differentiable:
            with pytest.raises(RuntimeError, match=r"requires grad|don't support automatic differentiation"):
                variable = x.clone().requires_grad_()
                outs = [result.new_empty(result.shape) for result in want]
                out_overload(member)(variable, *args[1:], **kwargs, **dict(zip(names, outs, strict=True)))


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda x: ops.amax(x, 1, out=x.new_empty(2, dtype=torch.float32)), RuntimeError),
        (lambda x: ops.argmax(x, 1, out=x.new_empty(2, dtype=torch.int32)), RuntimeError),
        (lambda x: ops.any(x, 1, out=x.new_empty(2)), RuntimeError),
        (lambda x: ops.norm(x, 2, 1, out=x.new_empty(2, dtype=torch.float32)), RuntimeError),
        (lambda x: ops.var(x, 1, out=x.new_empty(2, dtype=torch.int64)), RuntimeError),
        (lambda x: ops.mean(x.long(), 1, out=x.new_empty(2)), RuntimeError),
        (lambda x: ops.mean(x, 1, dtype=torch.int64), RuntimeError),
        (lambda x: ops.amax(x, 1, out=x.view(-1)[:2]), RuntimeError),
        (lambda x: ops.max(x, 1, values=x.new_empty(2), indices=x.new_empty(2)), RuntimeError),
        (lambda x: ops.norm(x, 1j), RuntimeError),
        (lambda x: ops.norm(x, 2, dtype=torch.float32), RuntimeError),
        (lambda x: ops.sumsq(x, 1, accumulate="kahan"), ValueError),
    ],
)
def test_errors(device, call, error):
    with pytest.raises(error, match="gpureduce::"):
        call(torch.ones(2, 3, dtype=torch.float64, device=device))


def test_an_empty_list_of_dims(device):
    """All dims, but for torch's any and all none."""
    x = data((2, 3), torch.float32, device)
    for name in ("mean", "nansum", "nanmean", "sumsq", "prod", "amax", "amin", "count_nonzero", "logsumexp"):
        assert getattr(ops, name)(x, []).shape == ()
    for name in ("any", "all"):
        assert torch.equal(getattr(ops, name)(x, []), getattr(torch, name)(x, dim=()))


@pytest.mark.parametrize("correction", [None, 0, 1, 0.5, 3, 70, -2])
def test_corrections(device, correction):
    x = data((3, 70), torch.float32, device)
    for name in ("var", "std", "var_mean", "std_mean"):
        for dim in (0, 1, None):
            got = getattr(ops, name)(x, dim, correction=correction)
            same(got, getattr(torch, name)(x, dim, correction=correction), f"{name} {correction} {dim}")


def test_dtypes_asked_for(device):
    x = data((3, 70), torch.int64, device)
    for dtype in (torch.float32, torch.float64, torch.complex64):
        same(ops.mean(x, 1, dtype=dtype), torch.mean(x, 1, dtype=dtype), f"mean {dtype}")
        same(ops.nansum(x, 1, dtype=dtype), torch.nansum(x, 1, dtype=dtype), f"nansum {dtype}")
    for dtype in (torch.bool, torch.uint8, torch.float32, torch.float64):
        same(ops.prod(x[:, :3], 1, dtype=dtype), torch.prod(x[:, :3], 1, dtype=dtype), f"prod {dtype}")
    x = torch.tensor([1.5, float("nan"), 2], device=device)
    assert ops.nansum(x, dtype=torch.int64).item() == 3
    assert ops.sumsq(torch.full((3,), 200, dtype=torch.uint8, device=device)).item() == 120000
    for order in (0, 1, 2, 3, float("inf")):
        same(ops.norm(x, order, dtype=torch.float64), torch.linalg.vector_norm(x, order, dtype=torch.float64), order)


def test_norms_do_not_overflow(device):
    for order in (2, 3, 0.5, -2):
        for dtype, scale in ((torch.float32, 1e30), (torch.float32, 1e-30), (torch.float64, 1e300)):
            x = torch.tensor([3.0, 4.0, 5.0], dtype=torch.float64, device=device)
            want = torch.linalg.vector_norm(x, order) * scale
            got = ops.norm((x * scale).to(dtype), order).double()
            assert torch.allclose(got, want, rtol=1e-6, atol=0), (order, dtype, scale)


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_autocast(kind):
    """torch's result types for the namesakes."""
    x = data((2, 3), torch.bfloat16, kind)
    names = {"norm": lambda x: torch.linalg.vector_norm(x), "logsumexp": lambda x: torch.logsumexp(x, 1)}
    with torch.autocast(kind, torch.bfloat16):
        for name in ("sum", "mean", "nansum", "prod", "amax", "var", "norm", "logsumexp"):
            ours = getattr(ops, name)(x, 1) if name == "logsumexp" else getattr(ops, name)(x)
            assert ours.dtype == names.get(name, getattr(torch, name, None))(x).dtype, name


@members
def test_opcheck(member):
    x = data((3, 4), torch.float64).requires_grad_(member.differentiable)
    dim, keepdim = member.calls(x)[-1]
    args, kwargs, _ = arguments(member, x.detach(), dim, keepdim)
    torch.library.opcheck(overload(member), (x, *args[1:]), kwargs)


@members
def test_compiled(member):
    torch._dynamo.reset()
    x = data((3, 5), torch.float32)
    dim, keepdim = member.calls(x)[-1]
    compiled = torch.compile(lambda y: member.ours(y * 2, dim, keepdim), fullgraph=True, backend="aot_eager")
    for got, want in zip(results(compiled(x)), results(member.ours(x * 2, dim, keepdim)), strict=True):
        common.assert_same_bits(got, want)


@members
@pytest.mark.parametrize("in_dim", [0, 1, -1])
def test_vmap(member, in_dim):
    batch = data((3, 4, 5), torch.float32)
    examples = batch.unbind(in_dim)
    for dim, keepdim in member.calls(examples[0]):
        got = torch.vmap(lambda x, d=dim, k=keepdim: member.ours(x, d, k), in_dim)(batch)
        want = [results(member.ours(x, dim, keepdim)) for x in examples]
        for i, result in enumerate(results(got)):
            # Not the bits: with the batch last in memory, the rows of an example are of another family in it.
            same(result.contiguous(), torch.stack([each[i] for each in want]), f"{member} dim={dim}")
    scalars = data((5,), torch.float32)
    for dim, keepdim in member.calls(scalars[0]):
        got = torch.vmap(lambda x, d=dim, k=keepdim: member.ours(x, d, k))(scalars)
        for i, result in enumerate(results(got)):
            common.assert_same_bits(result, torch.stack([results(member.ours(x, dim, keepdim))[i] for x in scalars]))


def scripted_family(x: torch.Tensor):
    a = torch.ops.gpureduce.mean(x, 1), torch.ops.gpureduce.prod(x, 1), torch.ops.gpureduce.amax(x, 1)
    b = torch.ops.gpureduce.any(x, 1), torch.ops.gpureduce.all(x), torch.ops.gpureduce.argmax(x, 1)
    c = torch.ops.gpureduce.max(x, 1), torch.ops.gpureduce.max(x), torch.ops.gpureduce.aminmax(x, dim=1)
    d = torch.ops.gpureduce.norm(x), torch.ops.gpureduce.norm(x, 1.0, 1), torch.ops.gpureduce.var(x, 1, correction=0)
    e = torch.ops.gpureduce.logsumexp(x, 1), torch.ops.gpureduce.softmax_stats(x), torch.ops.gpureduce.std_mean(x, [1])
    return a, b, c, d, e


def flattened(value):
    return [value] if isinstance(value, torch.Tensor) else [leaf for each in value for leaf in flattened(each)]


def test_scripted(device):
    x = data((3, 4), torch.float32, device)
    scripted = script(scripted_family)
    for _ in range(3):
        for got, want in zip(flattened(scripted(x)), flattened(scripted_family(x)), strict=True):
            common.assert_same_bits(got, want)


@members
def test_history(member):
    """What is not differentiable has none, and what is has one that works twice only where it is kept."""
    x = data((3, 4), torch.float64).requires_grad_()
    dim, keepdim = member.calls(x)[0]
    values = results(member.ours(x, dim, keepdim))
    for value in values:
        assert value.requires_grad == (member.differentiable and value.dtype.is_floating_point)
    if not member.differentiable or member.name == "norm 0":
        return
    values[0].sum().backward(retain_graph=True)
    first = x.grad.clone()
    values[0].sum().backward()
    assert torch.equal(x.grad, 2 * first)
    assert not results(member.ours(x.detach(), dim, keepdim))[0].requires_grad


@members
def test_compiled_autograd(member):
    if not member.differentiable or member.name == "norm 0":
        pytest.skip("has no gradient")
    x = data((3, 4), torch.float64).requires_grad_()
    dim, keepdim = member.calls(x)[0]

    def gradient():
        (grad,) = torch.autograd.grad(results(member.ours(x, dim, keepdim))[0].sum(), x)
        return grad

    want = gradient()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        got = gradient()
    assert torch.equal(got, want)
