"""gpureduce::sum.out: what torch.sum does with out=, but for overlapping memory, where torch gives wrong sums."""

import re
import warnings

import pytest
import torch

import torch_reduce
from tests import common
from tests.common import DTYPES, LAYOUTS, assert_same_bits, name, op
from tests.test_memory_cpu import allocated_bytes
from tests.test_script import script

CALLS = [{}, {"dim": 0}, {"dim": 1}, {"dim": -1, "keepdim": True}, {"dim": [0, 1]}, {"dim": [], "keepdim": True}]
CALLS += [{"dim": 1, "accumulate": "compensated"}, {"dim": 0, "accumulate": "double"}]


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_the_bits_of_the_call_without_out(device, dtype, call):
    for layout in ("contiguous", "transposed", "gapped", "expanded"):
        x = LAYOUTS[layout](common.random_data(30 * 50, dtype, device=device), 30, 50)
        want = op(x, **call)
        out = torch.empty_like(want)
        address = out.data_ptr()
        assert op(x, **call, out=out) is out
        assert_same_bits(out, want, layout)
        assert out.data_ptr() == address
        assert op.out(x, **call, out=out.zero_()) is out
        assert_same_bits(out, want, layout)
        assert torch_reduce.sum(x, **call, out=out.zero_()) is out
        assert_same_bits(out, want, layout)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.bool], ids=name)
@pytest.mark.parametrize("out", [t for t in DTYPES if not t.is_complex], ids=name)
def test_out_says_the_dtype(device, dtype, out):
    """Without dtype, the elements are summed as dtype=out.dtype would have them; values that fit any type."""
    x = (common.exact_data(60, torch.float32, device).view(4, 15) % 3).to(dtype)
    got, want = torch.empty(4, dtype=out, device=device), torch.empty(4, dtype=out, device=device)
    assert_same_bits(op(x, 1, out=got), torch.sum(x, 1, out=want))
    assert_same_bits(got, op(x, 1, dtype=out))
    assert_same_bits(op(x, 1, dtype=out, out=got.zero_()), want)


@pytest.mark.parametrize("asked, has", [(torch.float64, torch.float32), (torch.int64, torch.int32)], ids=name)
def test_another_dtype_than_asked_for(device, asked, has):
    for where in (device, "meta"):
        x, out = torch.ones(3, 4, device=where), torch.ones(3, dtype=has, device=where)
        for function in (torch.sum, op, torch_reduce.sum):
            with pytest.raises(RuntimeError, match=r"(?i)out.* dtype") as error:
                function(x, 1, dtype=asked, out=out)
        assert "gpureduce::sum" in str(error.value)
        if where != "meta":
            assert (out == 1).all()


def test_resized(device, capfd):
    x = common.random_data((3, 4, 5), torch.float32, device=device)
    for call in ({}, {"dim": 1}, {"dim": [0, 2], "keepdim": True}):
        want = op(x, **call)
        assert_same_bits(op(x, **call, out=torch.empty(0, device=device)), want)
        out = torch.empty_like(want)
        op(x, **call, out=out)
        assert "was resized" not in capfd.readouterr().err
        for shape in ((7,), (2, 2), (5, 5, 5), (1, 1)):
            assert_same_bits(op(x, **call, out=torch.empty(shape, device=device)), want)
            assert "An output with one or more elements was resized" in capfd.readouterr().err
    meta = torch.empty(0, device="meta")
    assert op(x.to("meta"), 1, True, out=meta) is meta and meta.shape == (3, 1, 5)


def outs(shape, dtype, device):
    """Tensors of the shape with any strides, each with the whole memory that it is a view of."""
    dims = len(shape)
    base = torch.full((*shape[:-1], 3 * shape[-1]), 77, dtype=dtype, device=device)
    yield base[..., ::3], base
    base = torch.full((*shape[:-1], shape[-1] + 5), 77, dtype=dtype, device=device)
    yield base[..., 2 : shape[-1] + 2], base
    base = torch.full(shape[::-1], 77, dtype=dtype, device=device)
    yield base.permute(*range(dims - 1, -1, -1)), base
    base = torch.full((torch.Size(shape).numel() + 1,), 77, dtype=dtype, device=device)
    yield base[1:].view(shape), base


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.complex64], ids=name)
def test_any_strides_of_out(device, dtype):
    x = common.random_data((6, 40, 7), dtype, device=device)
    for view, dim in ((x, 0), (x, 1), (x, 2), (x.permute(2, 0, 1), 0), (x.permute(1, 2, 0), -1)):
        want = op(view, dim)
        for out, base in outs(tuple(want.shape), want.dtype, device):
            strides = out.stride()
            assert op(view, dim, out=out) is out and out.stride() == strides
            assert_same_bits(out, want, f"dim {dim} strides {strides}")
            assert (base == 77).sum() >= base.numel() - out.numel(), "wrote outside of out"


def test_memory_within_out(device):
    x = torch.ones(3, 4, device=device)
    out = torch.zeros(1, device=device).expand(3)
    with pytest.raises(
        RuntimeError, match=re.escape("more than one element of out refers to a single memory location")
    ):
        op(x, 1, out=out)
    assert (out == 0).all()
    assert op(x, 0, out=out[:1].expand(2).new_empty(0)).tolist() == [3, 3, 3, 3]


def test_memory_of_out_and_self(device):
    base = torch.arange(24.0, device=device)
    before = base.clone()
    x = base[:12].view(3, 4)
    for out in (base[10:13], base[:3], base[9:12], base[:12].view(3, 4), base[2:3]):
        with pytest.raises(RuntimeError, match=r"gpureduce::sum: .*out and self share memory"):
            op(x, 1, out=out)
        assert torch.equal(base, before)
    for out in (base[12:15], base[21:24]):  # the same storage, apart
        assert op(x, 1, out=out).tolist() == [6, 22, 38]


def test_interleaved_memory(device):
    """Where torch cannot tell whether the memory overlaps, the sum is right all the same."""
    for out_of in (lambda b: b[0, :4], lambda b: b[:, 0], lambda b: b[:, 1], lambda b: b.view(-1)[3:7]):
        base = common.exact_data(24, torch.float32, device).view(4, 6)
        x = base[:, ::2]
        want = op(x, 1).clone()
        assert_same_bits(op(x, 1, out=out_of(base)), want)


def test_converted_elements_and_overlap(device):
    base = torch.ones(8, device=device)
    with pytest.raises(RuntimeError, match="out and self share memory"):
        op(base, 0, out=base[:1].view(torch.int32))
    assert op(base.double(), dtype=torch.float32, out=torch.empty((), device=device)).item() == 8


def test_wrong_devices(device):
    x, elsewhere = torch.ones(3, 4, device=device), torch.empty(3, device="meta")
    for self, out in ((x, elsewhere), (x.to("meta"), torch.zeros(3, device=device))):
        with pytest.raises(RuntimeError, match=r"gpureduce::sum: out is on .*, but self is on "):
            op(self, 1, out=out)


@pytest.mark.cuda
def test_cpu_and_cuda():
    x = torch.ones(3, 4)
    for self, out in ((x, torch.zeros(3, device="cuda")), (x.cuda(), torch.zeros(3))):
        with pytest.raises(RuntimeError, match=r"gpureduce::sum: out is on .*, but self is on "):
            op(self, 1, out=out)
        assert (out == 0).all()


def test_bad_arguments_leave_out_alone(device):
    x, out = torch.ones(3, 4, device=device), torch.zeros(7, device=device)
    for error, call in (
        (IndexError, {"dim": 2}),
        (RuntimeError, {"dim": [0, 0]}),
        (ValueError, {"dim": 0, "accumulate": "kahan"}),
    ):
        with pytest.raises(error, match="gpureduce::sum"):
            op(x, **call, out=out)
    for dtype in (torch.uint16, torch.float8_e5m2):
        with pytest.raises(NotImplementedError, match="gpureduce::sum"):
            op(x, out=torch.empty((), dtype=dtype, device=device))
    assert out.tolist() == [0] * 7


def test_nothing_is_differentiated(device):
    import torch.autograd.forward_ad as forward

    x = torch.ones(3, 4, device=device)
    for self, out in (
        (x.clone().requires_grad_(), torch.zeros(3, device=device)),
        (x, torch.zeros(3, device=device, requires_grad=True)),
    ):
        for function in (torch.sum, op, torch_reduce.sum):
            with pytest.raises(
                RuntimeError,
                match=re.escape("functions with out=... arguments don't support automatic differentiation, but one of"),
            ):
                function(self, 1, out=out)
        assert (out == 0).all()
        with torch.no_grad():
            assert op(self, 1, out=out).tolist() == [4, 4, 4]
    with forward.dual_level():
        for function in (torch.sum, op):
            with pytest.raises(NotImplementedError, match="out="):
                function(forward.make_dual(x, x), 1, out=torch.zeros(3, device=device))


def test_autograd_notices_the_write(device):
    weight = torch.ones(3, device=device, requires_grad=True)
    out = torch.ones(3, device=device)
    for shape in ((3,), (0,)):
        fresh = torch.empty(shape, device=device)
        version = fresh._version
        op(torch.ones(3, 4, device=device), 1, out=fresh)
        assert fresh._version == version + 1
    y = (weight * out).sum()
    op(torch.ones(3, 4, device=device), 1, out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_inference_mode(device):
    x = torch.ones(3, 4, device=device)
    with torch.inference_mode():
        out = torch.empty(3, device=device)
        assert op(x, 1, out=out).tolist() == [4, 4, 4]
    for function in (torch.sum, op):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            function(x, 1, out=out)


def test_conjugate_and_negative_views(device):
    x = common.exact_data(70, torch.complex64, device).view(7, 10)
    want = torch.sum(x.conj(), 1)
    assert torch.equal(op(x.conj(), 1, out=torch.empty(7, dtype=torch.complex64, device=device)), want)
    out = torch.zeros(7, dtype=torch.complex64, device=device).conj()
    assert torch.equal(op(x, 1, out=out), torch.sum(x, 1)) and out.is_conj()


def test_autocast_is_torchs(device):
    x = common.exact_data(40, torch.bfloat16, device).view(5, 8)
    with torch.autocast(device, dtype=torch.bfloat16):
        for dtype in (torch.bfloat16, torch.float32):
            ours, theirs = (torch.empty(5, dtype=dtype, device=device) for _ in range(2))
            assert_same_bits(op(x, 1, out=ours), torch.sum(x, 1, out=theirs))


def test_vmap_refuses(device):
    x, out = torch.ones(3, 4, device=device), torch.empty(3, device=device)
    for function in (torch.sum, op):
        with pytest.raises(RuntimeError, match="out="):
            torch.vmap(lambda a, b, f=function: f(a, 0, out=b))(x, out)


def test_empty(device):
    for shape, dim in (((0, 3), 0), ((0, 3), 1), ((3, 0), 1), ((0,), None)):
        x = torch.zeros(shape, device=device)
        want = op(x, dim)
        assert_same_bits(op(x, dim, out=torch.full_like(want, 5)), want)


def test_nothing_is_allocated():
    x = torch.ones(300, 700)
    for dim in (None, 0, 1):
        out = op(x, dim)
        assert allocated_bytes(lambda dim=dim, out=out: op(x, dim, out=out)) == 0


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_opcheck(device, call):
    x = common.exact_data(24, torch.float32, device).view(4, 6)
    for view in (x, x.t(), x[:, ::2]):
        out = op(view, **call)
        for target in (out, torch.empty(*out.shape, 2, device=device)[..., 0]):
            torch.library.opcheck(op.out, (view,), {**call, "out": target})


def step(x, out):
    """Writes to a tensor from outside, to one of its own, and reads both."""
    op(x * 2, 1, out=out)
    own = torch_reduce.sum(x, 0, accumulate="compensated", out=x.new_empty(x.shape[1]))
    return out + 1, own * 2, torch_reduce.sum(x), torch_reduce.sum(x, -1, True, dtype=torch.float64)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("strided", [False, True])
def test_compiled(device, backend, strided):
    """Dynamo itself breaks the graph at an out= that is not contiguous, whatever the operator."""
    torch._dynamo.reset()
    for dynamic in (False, True):
        compiled = torch.compile(step, fullgraph=not strided, backend=backend, dynamic=dynamic)
        for rows in (5, 9):
            x = common.exact_data(rows * 7, torch.float32, device).view(rows, 7)
            got_out, want_out = (torch.zeros(rows, 3 if strided else 1, device=device)[:, 0] for _ in range(2))
            for got, want in zip(compiled(x, got_out), step(x, want_out), strict=True):
                assert_same_bits(got, want)
            assert_same_bits(got_out, want_out)
    torch._dynamo.reset()


class Model(torch.nn.Module):
    def forward(self, x, out):
        return step(x, out)


def test_exported(device):
    x = common.exact_data(35, torch.float32, device).view(5, 7)
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(
        Model(), (x, torch.zeros(5, device=device)), dynamic_shapes={"x": {0: rows}, "out": {0: rows}}
    )
    functional = program.run_decompositions()
    targets = [node.target for node in functional.graph.nodes if node.op == "call_function"]
    assert op.default in targets and op.out not in targets
    for module in (program.module(), functional.module()):
        x = common.exact_data(63, torch.float32, device).view(9, 7)
        got_out, want_out = torch.zeros(9, device=device), torch.zeros(9, device=device)
        for got, want in zip(module(x, got_out), step(x, want_out), strict=True):
            assert_same_bits(got, want)
        assert_same_bits(got_out, want_out)


def test_functionalized(device):
    x = common.exact_data(35, torch.float32, device).view(5, 7)
    got_out, want_out = torch.zeros(5, device=device), torch.zeros(5, device=device)
    for got, want in zip(torch.func.functionalize(step)(x, got_out), step(x, want_out), strict=True):
        assert_same_bits(got, want)
    assert_same_bits(got_out, want_out)
    with pytest.raises(RuntimeError, match="gpureduce::sum: out is not functional"):
        torch.func.functionalize(lambda t: op(t, 1, out=got_out))(x)


def scripted_sum(x: torch.Tensor, out: torch.Tensor):
    torch.ops.gpureduce.sum(x, 1, out=out)
    return out + torch.ops.gpureduce.sum(x, [1], dtype=None, accumulate="double", out=torch.empty_like(out))


def test_scripted(device):
    x = common.random_data((5, 70), torch.float32, device=device)
    scripted = script(scripted_sum)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(scripted_sum, (x, torch.zeros(5, device=device)))
    for function in (scripted, traced):
        for _ in range(3):
            got_out, want_out = torch.zeros(5, device=device), torch.zeros(5, device=device)
            assert_same_bits(function(x, got_out), scripted_sum(x, want_out))
            assert_same_bits(got_out, want_out)


@pytest.mark.cuda
def test_captured():
    x, out = torch.ones(1 << 20, device="cuda"), torch.zeros((), device="cuda")
    columns, wide = x.view(-1, 16), torch.zeros(16, 2, device="cuda")[:, 1]
    op(x, out=out), op(columns, 0, out=wide)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op(x, out=out), op(columns, 0, out=wide)
    for value in (2, 3):
        x.fill_(value)
        graph.replay()
        assert out.item() == value << 20 and wide.tolist() == [float(value << 16)] * 16
