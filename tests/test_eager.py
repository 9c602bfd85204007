"""Calls of the operator by its name: plain ones go to the dispatcher directly, all others through torch's binding."""

import copy
import pathlib
import shutil
import sys
import threading
import time

import numpy as np
import pytest
import torch
from torch._ops import OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests import common
from tests.common import assert_same_bits, op
from tests.test_build import run, succeeds

TORCHS = op._op  # torch's binding


@pytest.fixture
def through_torch(monkeypatch):
    """A list that grows with each call that goes through torch's binding."""
    if "torch_reduce._eager" not in sys.modules:
        pytest.skip("torch_reduce/_eager.so was not built for this Python")
    calls = []

    def counting(*args, **kwargs):
        calls.append((args, kwargs))
        return TORCHS(*args, **kwargs)

    monkeypatch.setattr(op, "_op", counting)
    return calls


def matrix(device="cpu", dtype=torch.float32):
    return common.random_data((7, 33), dtype, 5, device)


PLAIN = {
    "": ((), {}),
    "None": ((None,), {}),
    "0": ((0,), {}),
    "-1": ((-1,), {}),
    "[1]": (([1],), {}),
    "(0, 1)": (((0, 1),), {}),
    "[]": (([],), {}),
    "()": (((),), {}),
    "1, True": ((1, True), {}),
    "None, False": ((None, False), {}),
    "dim=1": ((), {"dim": 1}),
    "dim=None, keepdim=True": ((), {"dim": None, "keepdim": True}),
    "keepdim=True, dim=[0]": ((), {"keepdim": True, "dim": [0]}),
    "1, keepdim=True": ((1,), {"keepdim": True}),
    "dtype=float64": ((), {"dtype": torch.float64}),
    "dtype=None, accumulate=None": ((), {"dtype": None, "accumulate": None}),
    "0, True, dtype=float16, accumulate=compensated": (
        (0, True),
        {"dtype": torch.float16, "accumulate": "compensated"},
    ),
    "accumulate=double": ((), {"accumulate": "double"}),
}
plain_calls = pytest.mark.parametrize("args, kwargs", PLAIN.values(), ids=PLAIN)


@plain_calls
def test_plain_calls_are_direct(device, through_torch, args, kwargs):
    x = matrix(device)
    for self in (x, torch.nn.Parameter(x), x.clone().requires_grad_(), x.bfloat16(), x.t()):
        assert_same_bits(op(self, *args, **kwargs), op.default(self, *args, **kwargs))
        assert_same_bits(op(self=self, **kwargs), op.default(self, **kwargs))
    with torch.no_grad():
        assert not op(x.requires_grad_(), *args, **kwargs).requires_grad
    x = x.detach()
    with torch.inference_mode():
        assert op(x, *args, **kwargs).is_inference()
    with torch.autocast(device):
        assert op(x.half(), *args, **kwargs).dtype == op.default(x.half(), *args, **kwargs).dtype
    assert not through_torch


def test_gradients(device, through_torch):
    x = torch.nn.Parameter(matrix(device))
    y = op(x, [1], True)
    assert type(y) is torch.Tensor and type(y.grad_fn).__name__ == type(op.default(x, [1]).grad_fn).__name__
    y.square().sum().backward()
    assert_same_bits(x.grad, (2 * y.detach()).expand(7, 33).contiguous())
    torch.autograd.gradcheck(lambda t: op(t, 0), matrix(device, torch.float64).requires_grad_())
    assert not through_torch


class Subclass(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, args, kwargs


class PlainSubclass(torch.Tensor):
    pass


class Size(int):
    pass


OTHER = {
    "dims of numpy": ((np.int64(1),), {}),
    "a list of them": (([np.int64(1)],), {}),
    "an int of a subclass": ((Size(1),), {}),
    "a torch.Size": ((torch.Size([1]),), {}),
    "a bool in dims": (([True],), {}),
    "a bool as dim": ((True,), {}),
    "keepdim=1": ((1, 1), {}),
    "keepdim=None": ((1, None), {}),
    "a range": ((range(2),), {}),
    "a dtype of Python": ((), {"dtype": float}),
    "a name made at run time": ((), {"".join(["keep", "dim"]): True}),
    "out=": ((), {"out": torch.empty(())}),
}


@pytest.mark.parametrize("args, kwargs", OTHER.values(), ids=OTHER)
def test_other_arguments_are_torchs(through_torch, args, kwargs):
    def outcome(function):
        try:
            return function(matrix(), *args, **kwargs)
        except Exception as error:
            return type(error), str(error)

    got, want = outcome(op), outcome(TORCHS)
    assert len(through_torch) == 1
    if isinstance(want, torch.Tensor):
        assert_same_bits(got, want)
    else:
        assert got == want


WRONG = {
    "nothing": ((), {}),
    "no self": ((), {"dim": 1}),
    "not a tensor": (("x",), {}),
    "None": ((None,), {}),
    "float": ((matrix(), 1.5), {}),
    "str": ((matrix(), "1"), {}),
    "a str in dims": ((matrix(), ["1"]), {}),
    "an int that is too large": ((matrix(), 2**64), {}),
    "65 dims": ((matrix(), [0] * 65), {}),
    "four arguments": ((matrix(), 1, False, torch.float64), {}),
    "dim twice": ((matrix(), 1), {"dim": 1}),
    "self twice": ((matrix(),), {"self": matrix()}),
    "unknown keyword": ((matrix(),), {"axis": 1}),
    "accumulate=1": ((matrix(),), {"accumulate": 1}),
    "accumulate without UTF-8": ((matrix(),), {"accumulate": "\ud800"}),
    "dtype=str": ((matrix(),), {"dtype": "float64"}),
}
# Said by the operator itself.
WRONG_FOR_THE_OPERATOR = {
    "dim out of range": ((matrix(), 2), {}),
    "dim named twice": ((matrix(), (0, -2)), {}),
    "unknown accumulate": ((matrix(),), {"accumulate": "kahan\0"}),
    "unsupported dtype": ((matrix(),), {"dtype": torch.complex32}),
    "unsupported self": ((torch.empty(2, dtype=torch.uint16),), {}),
    "a layout without kernel": ((torch.ones(2, 2).to_sparse(),), {}),
}


@pytest.mark.parametrize("name", [*WRONG, *WRONG_FOR_THE_OPERATOR])
def test_errors_are_torchs(through_torch, name):
    args, kwargs = {**WRONG, **WRONG_FOR_THE_OPERATOR}[name]
    with pytest.raises(Exception) as ours:
        op(*args, **kwargs)
    assert len(through_torch) == (name in WRONG)
    with pytest.raises(Exception) as theirs:
        TORCHS(*args, **kwargs)
    assert type(ours.value) is type(theirs.value)
    assert str(ours.value).split("\nException raised from")[0] == str(theirs.value).split("\nException raised from")[0]
    assert op(torch.ones(3)).item() == 3


def test_subclasses(through_torch):
    x = matrix()
    function, args, kwargs = op(x.as_subclass(Subclass), [1], keepdim=True)
    assert function is op and type(args[0]) is Subclass and args[1:] == ([1],) and kwargs == {"keepdim": True}
    assert type(op(x.as_subclass(PlainSubclass), 1)) is PlainSubclass
    assert type(op(torch.nn.Buffer(x), 1)) is torch.Tensor
    assert len(through_torch) >= 2


def test_function_mode(through_torch):
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = matrix()
    with Mode():
        op(x, 1)
        with torch._C.DisableTorchFunction():
            op(x, 1)
    assert seen.count(op) == 1
    with torch.device("meta"):
        assert op(x, 1).device.type == "cpu"
    assert len(through_torch) == 2
    op(x, 1)
    assert len(through_torch) == 2


def test_dispatch_mode(through_torch):
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func, args[1:], kwargs))
            return func(*args, **(kwargs or {}))

    x = matrix()
    with Mode():
        got = op(x, 1)
    assert_same_bits(got, op(x, 1))
    assert seen == [(op.default, ([1],), {})]
    assert len(through_torch) == 1


def test_fake_tensors(through_torch):
    mode = FakeTensorMode()
    fake = mode.from_tensor(matrix())
    assert op(fake, 1).shape == (7,)
    with mode:
        assert type(op(torch.empty(3, 4), 1)) is type(fake)
    assert len(through_torch) == 2


@pytest.mark.parametrize("tracing_mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("pre_dispatch", [False, True])
def test_make_fx(tracing_mode, pre_dispatch):
    x = matrix()
    graph = make_fx(lambda t: op(t, [t.dim() - 1], True), tracing_mode=tracing_mode, pre_dispatch=pre_dispatch)(x)
    assert op.default in [node.target for node in graph.graph.nodes]
    assert_same_bits(graph(x), op(x, [1], True))


def test_symbolic_trace():
    graph = torch.fx.symbolic_trace(lambda t: op(t, 1))
    assert op in [node.target for node in graph.graph.nodes]
    assert_same_bits(graph(matrix()), op(matrix(), 1))
    assert_same_bits(copy.deepcopy(graph)(matrix()), op(matrix(), 1))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compile(backend):
    import torch_reduce

    torch._dynamo.reset()
    x = matrix().requires_grad_()
    function = lambda t: op(t, 1) + torch_reduce.sum(t, [1], dtype=torch.float32)  # noqa: E731
    got, want = torch.compile(function, fullgraph=True, backend=backend)(x), function(x)
    assert_same_bits(got, want)
    for g, w in zip(torch.autograd.grad(got.sum(), x), torch.autograd.grad(want.sum(), x), strict=True):
        assert_same_bits(g, w)


def test_functional_transforms(through_torch):
    x = matrix()
    assert_same_bits(torch.func.vmap(lambda row: op(row))(x), op(x, 1))
    assert torch.equal(torch.func.grad(lambda t: op(op(t, 1)))(x), torch.ones_like(x))
    assert torch.equal(torch.func.jacrev(op)(x), torch.ones_like(x))
    value, tangent = torch.func.jvp(lambda t: op(t, 0), (x,), (torch.ones_like(x),))
    assert torch.equal(tangent, torch.full((33,), 7.0)) and value.shape == (33,)
    assert_same_bits(torch.func.functionalize(lambda t: op(t, 1))(x), op(x, 1))
    assert len(through_torch) >= 5


def test_profiler_sees_the_operator(through_torch):
    with torch.profiler.profile(record_shapes=True) as profile:
        op(matrix(), 1)
    events = [event for event in profile.events() if event.name == "gpureduce::sum"]
    assert len(events) == 1 and events[0].input_shapes[0] == [7, 33]
    assert not through_torch


def test_the_packet_is_a_packet():
    assert isinstance(op, OpOverloadPacket)
    assert repr(op) == "<OpOverloadPacket(op='gpureduce.sum')>" and str(op) == "gpureduce.sum"
    assert type(op).__name__ == "OpOverloadPacket" and type(op).__module__ == OpOverloadPacket.__module__
    assert copy.deepcopy(op) is op and torch.ops.gpureduce.sum is op and callable(op)
    assert sorted(op.overloads()) == ["default", "out"]
    with pytest.raises(AttributeError):
        op.nothing  # noqa: B018


def test_references_are_given_back(through_torch):
    x, dims, word = matrix(), [1, 0], "".join(["dou", "ble"])
    counted = (x, dims, word, None, torch.float64, torch.float32)

    def call():
        op(x, dims, dtype=torch.float64, accumulate=word)
        for bad in ([5], ["1"], 2**70):
            with pytest.raises((IndexError, RuntimeError)):
                op(x, bad)
        through_torch.clear()

    call()
    before = [sys.getrefcount(each) for each in counted]
    for _ in range(200):
        call()
    after = [sys.getrefcount(each) for each in counted]
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) < 100


def test_threads(through_torch):
    x = matrix()
    want, wrong = op(x, 1), []

    def work():
        for _ in range(2000):
            if not torch.equal(op(x, [1]), want):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and not through_torch


def test_other_threads_run_meanwhile(through_torch):
    x, ticks, done = torch.ones(1).expand(1 << 28), [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    op(x)
    end = time.perf_counter()
    done.set()
    thread.join()
    assert [t for t in ticks if start < t < end - 0.001], f"none of {len(ticks)} in {end - start} s"
    assert not through_torch


@pytest.mark.parametrize("why", ["it is missing", "it is another Python's", "it cannot be loaded"])
def test_works_without_the_direct_way(tmp_path, why):
    package = pathlib.Path(common.library_path()).parent
    shutil.copytree(package, tmp_path / "torch_reduce", ignore=shutil.ignore_patterns("__pycache__"))
    eager, stamp = tmp_path / "torch_reduce" / "_eager.so", tmp_path / "torch_reduce" / "_build.json"
    if why == "it is missing":
        eager.unlink(missing_ok=True)
    elif why == "it is another Python's":
        stamp.write_text(stamp.read_text().replace(".cpython-", ".cpython-1"))
    else:
        eager.write_bytes(b"not a library")
    code = """
        import sys; sys.path.insert(0, sys.argv[1])
        import torch, torch_reduce
        assert torch_reduce.__file__.startswith(sys.argv[1]) and "torch_reduce._eager" not in sys.modules
        op = torch.ops.gpureduce.sum
        assert torch.equal(op(torch.ones(3, 4), [1], True), torch_reduce.sum(torch.ones(3, 4), 1, keepdim=True))
        print("works", op(torch.ones(5)).item())
    """
    succeeds(run(code, tmp_path), "works 5.0")
