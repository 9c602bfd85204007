"""torch.compile, torch.export, fake tensors and compiled autograd: the same bits, the same strides, few compiles."""

import pytest
import torch
from torch._dynamo.testing import CompileCounter, CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode

from tests import common
from tests.common import DTYPES, assert_same_bits, name, op


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def model(x, weight):
    y = op(x * weight, 1, keepdim=True) + x
    return op(y.relu(), [0, -1], accumulate="compensated") * 2 + op(x, dtype=torch.float64).float()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_bits_are_eager_bits(device, backend):
    def data(
        *shape,
    ):  # small integers for inductor, whose own pointwise code may contract a * b + c: every step is exact
        if backend == "inductor":
            return (
                common.exact_data(torch.Size(shape).numel(), torch.float32, device).view(shape) % 13 - 6
            ).requires_grad_()
        return common.random_data(shape, torch.float32, 1, device).requires_grad_()

    x, weight = data(33, 65), data(65)
    eager = model(x, weight)
    compiled = torch.compile(model, fullgraph=True, backend=backend)(x, weight)
    assert_same_bits(compiled, eager)
    for got, want in zip(
        torch.autograd.grad(compiled, (x, weight)), torch.autograd.grad(eager, (x, weight)), strict=True
    ):
        assert_same_bits(got.contiguous(), want.contiguous())


def test_inductor_runs_our_kernel(device):
    """Exactly representable neighbours, so that only the order of the sum decides the bits."""
    x = common.random_data((64, 4099), torch.float32, 3, device).requires_grad_()
    function = lambda t: (op(t * 2, 1), op(t * 2, 0), op(t.t() * 2))  # noqa: E731
    eager = function(x)
    compiled = torch.compile(function, fullgraph=True, backend="inductor")(x)
    for got, want in zip(compiled, eager, strict=True):
        assert_same_bits(got, want)
        assert got.stride() == want.stride()
    (got,) = torch.autograd.grad(compiled[0].sum(), x)
    assert_same_bits(got, torch.full_like(x, 2))


SIZES = [4, 5, 6, 7, 9, 33, 128, 1000]


@pytest.mark.parametrize("call", [{}, {"dim": 0}, {"dim": -1, "keepdim": True}, {"dim": [0, 1]}], ids=str)
def test_many_sizes_few_compiles(device, call):
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda t: op(t, **call) * 2, fullgraph=True, backend=counter)
    for n in SIZES:
        x = common.exact_data(n * (n + 3), torch.float32, device).view(n, n + 3)
        assert_same_bits(compiled(x), op(x, **call) * 2)
    assert counter.frame_count <= 2


def test_dynamic_with_backward(device):
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda t: op(t.sin(), 1).cos(), fullgraph=True, backend=counter, dynamic=True)
    for n in SIZES:
        x = common.random_data((n, n + 3), torch.float32, n, device).requires_grad_()
        got, want = compiled(x), op(x.sin(), 1).cos()
        assert_same_bits(got, want)
        (g,), (w,) = torch.autograd.grad(got.sum(), x), torch.autograd.grad(want.sum(), x)
        assert_same_bits(g, w)
    assert counter.frame_count <= 2


def test_unbacked_sizes(device):
    def function(x):
        rows = x.nonzero()  # (u0, 1)
        return op(rows), op(rows, 0), op(x[x > 0]), op(rows, 1, keepdim=True)

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        counter = CompileCounter()
        compiled = torch.compile(function, fullgraph=True, backend=counter)
        for n in (9, 9, 40):
            x = (torch.arange(n, device=device) % 3).float() - 1
            for got, want in zip(compiled(x), function(x), strict=True):
                assert_same_bits(got, want)
        for got, want in zip(compiled(x), function(x), strict=True):
            assert torch.equal(got, want)
        empty = torch.zeros(9, device=device)
        assert [t.shape for t in compiled(empty)] == [t.shape for t in function(empty)]
        assert counter.frame_count <= 2


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ops.gpureduce.sum(x, -1), torch.ops.gpureduce.sum(x, [0], True), torch.ops.gpureduce.sum(x)


def test_export_with_dynamic_sizes(device, tmp_path):
    rows, columns = torch.export.Dim("rows", min=2), torch.export.Dim("columns", min=2)
    x = common.exact_data(12, torch.float32, device).view(3, 4)
    program = torch.export.export(Model(), (x,), dynamic_shapes={"x": {0: rows, 1: columns}})
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert targets.count(torch.ops.gpureduce.sum.default) == 3
    torch.export.save(program, tmp_path / "sum.pt2")
    for module in (
        program.module(),
        torch.export.load(tmp_path / "sum.pt2").module(),
        program.run_decompositions().module(),
    ):
        for n in (2, 5, 300):
            x = common.exact_data(n * 7, torch.float32, device).view(n, 7)
            for got, want in zip(module(x), Model()(x), strict=True):
                assert_same_bits(got, want)


def test_compiled_autograd(device):
    x = common.random_data((7, 9), torch.float32, 4, device)

    def gradient(enable):
        leaf = x.clone().requires_grad_()
        loss = op((op(leaf * leaf, 1) * op(leaf, [0], True)[0, :7]).sin())
        if enable:
            compiler = torch.compile(backend="aot_eager", fullgraph=True)
            with torch._dynamo.compiled_autograd._enable(compiler):
                loss.backward()
        else:
            loss.backward()
        return leaf.grad

    assert_same_bits(gradient(True), gradient(False))


def test_compiled_autograd_keeps_gradients_apart():
    """The recorded sizes and dims are part of the cache key: a second graph must not reuse the first one's."""
    compiler = torch.compile(backend="eager", fullgraph=True)
    for shape, dim, keepdim in (
        ((3, 4), 0, False),
        ((3, 4), 1, False),
        ((5, 4), 1, False),
        ((3, 3), 0, True),
        ((3, 3), 1, True),
    ):
        x = torch.ones(shape, requires_grad=True)
        y = op(x, dim, keepdim)
        weights = common.exact_data(y.numel(), torch.float32).view(y.shape)
        with torch._dynamo.compiled_autograd._enable(compiler):
            y.backward(weights)
        want = (weights if keepdim else weights.unsqueeze(dim)).expand(shape)
        assert torch.equal(x.grad, want)


VIEWS = {
    "contiguous": lambda: torch.zeros(2, 3),
    "transposed": lambda: torch.zeros(2, 3).t(),
    "channels_last": lambda: torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "expanded": lambda: torch.zeros(1, 3).expand(4, 3),
    "row of one": lambda: torch.zeros(1, 5).t(),
    "sliced": lambda: torch.zeros(6, 8)[::2, 1::3],
    "scalar": lambda: torch.zeros(()),
    "empty": lambda: torch.zeros(2, 0, 3),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_fake_result_is_the_real_one(view, dtype):
    real = VIEWS[view]().to(dtype)
    fake_mode = FakeTensorMode()
    fake, meta = fake_mode.from_tensor(real), real.to("meta")
    dims = [None, [], *range(-real.dim(), real.dim()), list(range(real.dim()))]
    for dim in dims:
        for keepdim in (False, True):
            for out in (None, torch.float64, torch.int8):
                if dtype.is_complex and out is not None:
                    continue
                want = op(real, dim, keepdim, dtype=out)
                with fake_mode:
                    got = op(fake, dim, keepdim, dtype=out)
                for result in (got, op(meta, dim, keepdim, dtype=out)):
                    assert (result.shape, result.stride(), result.dtype) == (want.shape, want.stride(), want.dtype)
                assert got.device == real.device


def test_fake_tensors_on_cuda_need_no_gpu():
    with FakeTensorMode(allow_non_fake_inputs=True):
        x = torch.empty(3, 4, device="cuda", requires_grad=True)
        y = op(x, 1)
        assert y.device.type == "cuda" and y.shape == (3,)


def test_schema_says_what_torchs_does():
    ours = torch.ops.gpureduce.sum.default._schema
    theirs = torch.ops.aten.sum.dim_IntList._schema
    for name_ in ("self", "dim", "keepdim", "dtype"):
        argument = [next(a for a in schema.arguments if a.name == name_) for schema in (ours, theirs)]
        assert str(argument[0].type) == str(argument[1].type)
        assert argument[0].kwarg_only == argument[1].kwarg_only
    assert not ours.is_mutable and all(result.alias_info is None for result in ours.returns)
    assert torch.Tag.pt2_compliant_tag in torch.ops.gpureduce.sum.default.tags
