"""PyTorch's own samples: what torch.testing._internal holds to test an operator with, for the namesake of each of ours.

Sample inputs, error inputs and reference functions, over every dtype that both have. Results are compared with those
of torch on the CPU by torch.testing.assert_close with its tolerances for the dtype. DIFFERENCES is the list of all
cases in which another result is meant; one that turns out to be none fails.
"""

import functools
import importlib
import importlib.util
import sys
import types
import unittest
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch

from tests import common
from tests.common import name

# Ours, and the name in op_db; with what follows the point where torch has several signatures.
NAMESAKES = [
    ("sum", "sum"),
    ("nansum", "nansum"),
    ("mean", "mean"),
    ("nanmean", "nanmean"),
    ("prod", "prod"),
    ("amax", "amax"),
    ("amin", "amin"),
    ("aminmax", "aminmax"),
    ("max", "max.reduction_with_dim"),
    ("max", "max.reduction_no_dim"),
    ("min", "min.reduction_with_dim"),
    ("min", "min.reduction_no_dim"),
    ("argmax", "argmax"),
    ("argmin", "argmin"),
    ("any", "any"),
    ("all", "all"),
    ("count_nonzero", "count_nonzero"),
    ("norm", "linalg.vector_norm"),
    ("var", "var"),
    ("var", "var.unbiased"),
    ("std", "std"),
    ("std", "std.unbiased"),
    ("var_mean", "var_mean"),
    ("var_mean", "var_mean.unbiased"),
    ("std_mean", "std_mean"),
    ("std_mean", "std_mean.unbiased"),
    ("logsumexp", "logsumexp"),
    ("vecdot", "linalg.vecdot"),
]
namesakes = pytest.mark.parametrize("ours, theirs", NAMESAKES, ids=[theirs for _, theirs in NAMESAKES])


@dataclass(frozen=True)
class Call:
    """One call of the namesake; the tensors are on the CPU."""

    theirs: str
    input: torch.Tensor
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)

    @property
    def dtype(self):
        return self.input.dtype

    def __str__(self):
        shape, strides = tuple(self.input.shape), self.input.stride()
        return f"{self.theirs} of {name(self.dtype)} {shape} strides {strides} {self.args} {self.kwargs}"


@dataclass(frozen=True)
class Difference:
    """Where ours may give another result, or error, than torch; which it then has to, at least once."""

    theirs: str
    when: Callable  # (call, torch's results or its error)
    reason: str
    older: bool = False  # of some versions of torch only: need not occur


def rounds_sums(call, want):
    """Whether torch's own result is not that of float32, by more than torch.testing allows for rounding it."""
    if call.dtype not in (torch.float16, torch.bfloat16) or isinstance(want, Exception):
        return False
    wide = getattr(torch, call.theirs)(call.input.float(), *call.args, **call.kwargs).to(call.dtype)
    try:
        torch.testing.assert_close(want[0], wide, equal_nan=True)
    except AssertionError:
        return True
    return False


def rounds_products(call, want):
    """Whether torch's result is not that of float32: it rounds the products of 16-bit floats to their type."""
    if call.dtype not in (torch.float16, torch.bfloat16):
        return False
    wide = [value.float() if isinstance(value, torch.Tensor) else value for value in call.args]
    want = torch.linalg.vecdot(call.input.float(), *wide, **call.kwargs).to(call.dtype)
    try:
        torch.testing.assert_close(torch.linalg.vecdot(call.input, *call.args, **call.kwargs), want, equal_nan=True)
    except AssertionError:
        return True
    return False


def has_empty_dim_named_twice(call, want):
    dim = call.kwargs.get("dim")
    wrapped = [d % call.input.dim() for d in dim] if isinstance(dim, list) and call.input.dim() else []
    return len(set(wrapped)) < len(wrapped) and any(call.input.shape[d] == 0 for d in wrapped)


def is_infinite_complex(call, want):
    return call.dtype.is_complex and isinstance(want, list) and not all(value.isfinite().all() for value in want)


DIFFERENCES = [
    Difference("mean", is_infinite_complex, "torch divides as by a complex number: (inf + 1j) / 2 is inf + nanj to it"),
    Difference(
        "prod", is_infinite_complex, "which parts of a complex product are inf and which NaN is up to the order"
    ),
    Difference(
        "prod",
        lambda call, want: call.dtype == torch.bfloat16 and call.input.numel() >= 60 and "dim" not in call.kwargs,
        "torch's CPU rounds to bfloat16 after each multiplication, ours at the end",
    ),
    Difference(
        "linalg.vecdot", lambda call, want: call.dtype == torch.float16, "torch's CPU rounds each product to float16"
    ),
    Difference("amax", has_empty_dim_named_twice, "of two errors torch names the empty dim, ours the repeated one"),
    Difference("amin", has_empty_dim_named_twice, "of two errors torch names the empty dim, ours the repeated one"),
    Difference(
        "prod",
        lambda call, want: isinstance(want, RuntimeError) and "dimensions by name" in str(want),
        "torch.prod of no dim with keepdim came with 2.12",
        older=True,
    ),
    Difference("nansum", rounds_sums, "torch's CPU adds in bfloat16 between dims, ours at the end", older=True),
    Difference("nanmean", rounds_sums, "torch's CPU adds in bfloat16 between dims, ours at the end", older=True),
    Difference("linalg.vecdot", rounds_products, "products of 16-bit floats are exact here"),
]


@functools.cache
def opinfos():
    """op_db by name. Importing it patches TorchScript and locks the backends' flags for the whole process: undone."""
    if (
        importlib.util.find_spec("expecttest") is None
    ):  # torch needs a base class of it, for tests that are not used here
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase = unittest.TestCase
    scripted = {kind: kind.__call__ for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod)}
    flags = "__allow_nonbracketed_mutation_flag"
    before = getattr(torch.backends, flags, None)
    try:
        database = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db
    except ImportError as error:
        pytest.skip(f"torch.testing._internal cannot be imported: {error}")
    finally:
        for kind, call in scripted.items():
            kind.__call__ = call
        if before is not None:
            setattr(torch.backends, flags, before)
    return {info.full_name: info for info in database}


def our_operator(ours):
    return getattr(torch.ops.gpureduce, ours)


def translated(call):
    """The arguments in the operators' signatures, which take less than torch's functions in Python."""
    args, kwargs = list(call.args), dict(call.kwargs)
    if call.theirs.endswith(".unbiased") and args:
        kwargs["unbiased"] = args.pop(0)
    if "unbiased" in kwargs:  # kept for old programs: a correction of 0 or 1
        kwargs["correction"] = int(kwargs.pop("unbiased"))
    if isinstance(kwargs.get("correction"), torch.Tensor):
        kwargs["correction"] = kwargs["correction"].item()
    if "dim" in kwargs and kwargs["dim"] is None:  # the default
        del kwargs["dim"]
    return args, kwargs


def outcome(function, *args, **kwargs):
    """The results as a list, or the exception."""
    try:
        results = function(*args, **kwargs)
    except Exception as error:
        return error
    return list(results) if isinstance(results, (tuple, list)) else [results]


def compare(got, want, what="results", **options):
    """Raises AssertionError where two outcomes differ: values, dtypes and shapes, or types of errors."""
    if isinstance(got, Exception) or isinstance(want, Exception):
        assert isinstance(want, Exception), f"{what}: {got!r}\ninstead of {want}"
        assert isinstance(got, type(want)), f"{what}: {got!r}\ninstead of {want!r}"
        return
    assert len(got) == len(want), f"{len(got)} {what} instead of {len(want)}"
    for ours, theirs in zip(got, want, strict=True):
        assert (ours is None) == (theirs is None), f"{what}: {ours}\ninstead of {theirs}"
        if ours is not None:
            compare_tensors(ours.detach().cpu(), theirs.detach(), equal_nan=True, **options)


def compare_tensors(ours, theirs, **options):
    if ours.is_complex() and ours.shape == theirs.shape and ours.dtype == theirs.dtype:
        # By parts where one is inf or NaN: inf + 1j and inf + 1.0000001j are close, but their difference is NaN.
        finite = ours.isfinite() & theirs.isfinite()
        parts = [torch.view_as_real(value.resolve_conj()[~finite]) for value in (ours, theirs)]
        torch.testing.assert_close(*parts, **options)
        ours, theirs = (torch.where(finite, value, 0) for value in (ours, theirs))
    torch.testing.assert_close(ours, theirs, **options)


FOUND = set()  # Differences that were some
RAN = set()  # (test, namesake)


class Tally:
    """Compares the outcomes of calls, and keeps what is wrong with them."""

    def __init__(self, ours, theirs, device):
        self.info, self.function = opinfos()[theirs], our_operator(ours)
        self.theirs, self.device = theirs, device
        self.wrong, self.calls = [], 0

    def run(self, call):
        args, kwargs = translated(call)
        args = [value.to(self.device) if isinstance(value, torch.Tensor) else value for value in args]
        return outcome(self.function, call.input.to(self.device), *args, **kwargs)

    def run_theirs(self, call):
        return outcome(self.info.op, call.input, *call.args, **call.kwargs)

    def check(self, call, got, want, **options):
        self.calls += 1
        meant = [d for d in DIFFERENCES if d.theirs == self.theirs and d.when(call, want)]
        try:
            compare(got, want, **options)
        except AssertionError as error:
            FOUND.update(meant)
            if not meant:
                self.wrong.append(f"{call}:\n{error}")

    def finish(self):
        assert self.calls, "torch has no such samples"
        some = "\n\n".join(self.wrong[:8])
        assert not self.wrong, f"{len(self.wrong)} of {self.calls} calls:\n{some}"


@pytest.fixture
def tally(device, request):
    RAN.add((request.function.__name__, request.node.callspec.params["theirs"]))
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # of torch, about degrees of freedom and imaginary parts
        torch.manual_seed(0)
        yield functools.partial(Tally, device=device)


def dtypes_of(info, *only):
    return [d for d in only or common.DTYPES if d in info.supported_dtypes("cpu")]


def samples(info, dtype, requires_grad=False):
    for sample in info.reference_inputs("cpu", dtype, requires_grad=requires_grad):
        yield Call(info.full_name, sample.input, sample.args, sample.kwargs)


@namesakes
def test_samples(tally, ours, theirs):
    results = tally(ours, theirs)
    for dtype in dtypes_of(results.info):
        for call in samples(results.info, dtype):
            results.check(call, results.run(call), results.run_theirs(call))
    results.finish()


def gradients(call, function):
    """Of the call's tensors, from every result that has one."""
    values = function(call)
    if isinstance(values, Exception):
        return values
    inputs = [value for value in (call.input, *call.args) if isinstance(value, torch.Tensor)]
    values = [value for value in values if value.requires_grad]
    weights = [torch.linspace(1, 2, value.numel(), dtype=value.dtype).view(value.shape) for value in values]
    weights = [weight.to(value.device) for weight, value in zip(weights, values, strict=True)]
    return outcome(torch.autograd.grad, values, inputs, weights, allow_unused=True)


@namesakes
def test_gradients_of_samples(tally, ours, theirs):
    results = tally(ours, theirs)
    if not results.info.supports_autograd:
        pytest.skip("has no gradient")
    for dtype in dtypes_of(results.info, torch.float64, torch.float32, torch.complex128):
        for call in samples(results.info, dtype, requires_grad=True):
            got, want = gradients(call, results.run), gradients(call, results.run_theirs)
            results.check(call, got, want, what="gradients")
    results.finish()


@namesakes
def test_error_inputs(tally, ours, theirs):
    results = tally(ours, theirs)
    if results.info.error_inputs_func is None:
        pytest.skip("torch has no error inputs for it")
    for error in results.info.error_inputs("cpu"):
        sample = error.sample_input
        call = Call(theirs, sample.input, sample.args, sample.kwargs)
        results.check(call, results.run(call), error.error_type(error.error_regex))
    results.finish()


@namesakes
def test_reference_functions(tally, ours, theirs):
    """NumPy's results of the samples."""
    results = tally(ours, theirs)
    if results.info.ref is None:
        pytest.skip("torch has no reference function for it")
    for dtype in dtypes_of(results.info, torch.float64, torch.float32, torch.complex128, torch.int64, torch.bool):
        for call in samples(results.info, dtype):
            if theirs in ("var", "std") and not call.kwargs.keys() & {"unbiased", "correction"}:
                continue  # NumPy's default is another
            args = [value.numpy() if isinstance(value, torch.Tensor) else value for value in call.args]
            want = outcome(results.info.ref, call.input.numpy(), *args, **call.kwargs)
            if not isinstance(want, Exception):  # NumPy's have other types
                want = [torch.as_tensor(value) for value in want]
                results.check(call, results.run(call), want, check_dtype=False)
    results.finish()


def inputs_of_reductions(dtype):
    """What a reduction can get wrong: extreme values, equal values, layouts, nothing to reduce, nothing to return."""
    make = functools.partial(torch.testing.make_tensor, device="cpu", dtype=dtype, low=-4, high=5)
    plain = make((3, 4, 5))
    yield from (plain, make(()), make((1,)), make((7,)), plain.new_zeros((2, 3)), plain.new_ones((3, 2)))
    yield from (plain.transpose(0, 2), plain[:, ::2, 1:], plain[:1].expand(4, 4, 5), plain.flip(1))
    yield from (make((0,)), make((0, 3)), make((2, 0)), make((3, 0, 4)))
    if dtype.is_floating_point or dtype.is_complex:
        for value in (float("nan"), float("inf"), float("-inf")):
            yield torch.full((2, 2), value, dtype=dtype)
            yield torch.where(torch.arange(60).view(3, 4, 5) % 7 == 2, torch.tensor(value, dtype=dtype), plain)


DIMS = [0, 1, -1, 2, -3, 4, [0], [0, 1], [-1, 0], [0, 0], [1, -1], [0, 5], [], None]


def reductions(info, dtype):
    """Calls as those of TestReductions in PyTorch's test_reductions.py."""
    for x in inputs_of_reductions(dtype):
        for named in ({}, *({"dim": dim, "keepdim": keepdim} for dim in DIMS for keepdim in (False, True))):
            try:
                generated = list(info.generate_args_kwargs(x, **named))
            except (IndexError, TypeError):  # a wrong dim: torch's generator would count its elements
                generated = [((), {})]
            for args, kwargs in generated:
                yield Call(info.full_name, x, args, {**named, **kwargs})


@namesakes
def test_reductions(tally, ours, theirs):
    """As ReductionOpInfo asks of every reduction: dims, keepdim, empty slices, NaN and infinities, layouts, dtypes."""
    results = tally(ours, theirs)
    if not hasattr(results.info, "generate_args_kwargs") or theirs.endswith(".unbiased"):
        pytest.skip("has no ReductionOpInfo of its own")
    kinds = (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64)
    for dtype in dtypes_of(results.info, *kinds):
        for call in reductions(results.info, dtype):
            want = results.run_theirs(call)
            if not isinstance(want, TypeError):  # torch.ops has other signatures to match, and RuntimeErrors for it
                results.check(call, results.run(call), want)
    results.finish()


def test_differences_are_some():
    """The last of this file, so that it knows what the others have found."""
    assert {difference.theirs for difference in DIFFERENCES} <= {theirs for _, theirs in NAMESAKES}
    for difference in DIFFERENCES:
        if (
            not difference.older
            and {("test_samples", difference.theirs), ("test_reductions", difference.theirs)} <= RAN
        ):
            assert difference in FOUND, f"{difference.theirs} is listed as different, but is not: {difference.reason}"
