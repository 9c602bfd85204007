"""Bad input: torch's exception type, a message with the op, the argument and its value, and nothing lost."""

import re

import pytest
import torch

from tests import common
from tests.common import op


@pytest.mark.parametrize(
    "shape, dim, error, message",
    [
        ((2, 3), 2, IndexError, "gpureduce::sum: dim 2 is out of range for a 2-d tensor (expected -2..1)"),
        ((2, 3), 3, IndexError, "gpureduce::sum: dim 3 is out of range for a 2-d tensor (expected -2..1)"),
        ((2, 3), [0, -3], IndexError, "gpureduce::sum: dim -3 is out of range for a 2-d tensor (expected -2..1)"),
        ((), 1, IndexError, "gpureduce::sum: dim 1 is out of range for a 0-d tensor (expected -1..0)"),
        ((5,), 2**40, IndexError, f"gpureduce::sum: dim {2**40} is out of range for a 1-d tensor (expected -1..0)"),
        ((2, 3), [0, 0], RuntimeError, "gpureduce::sum: dim 0 appears more than once in dim="),
        ((2, 3), [0, -2], RuntimeError, "gpureduce::sum: dim 0 appears more than once in dim="),
        ((2, 3), [1, 0, -1], RuntimeError, "gpureduce::sum: dim 1 appears more than once in dim="),
        ((), [0, -1], RuntimeError, "gpureduce::sum: dim 0 appears more than once in dim="),
    ],
)
def test_bad_dims(device, shape, dim, error, message):
    x = torch.ones(shape, device=device)
    with pytest.raises(error) as ours:
        op(x, dim)
    assert message in str(ours.value)
    with pytest.raises(error):  # torch raises the same type
        torch.sum(x, dim)
    with pytest.raises(error) as fake:  # the Meta kernel says the same
        op(torch.ones(shape, device="meta"), dim)
    assert message in str(fake.value)
    assert torch.equal(x, torch.ones_like(x)) and op(x).item() == x.numel()


def test_bad_accumulate(device):
    for word in ("kahan", "", "Double", "float64"):
        for where in (torch.ones(3, device=device), torch.ones(3, device="meta"), torch.ones(3, dtype=torch.int32)):
            with pytest.raises(ValueError) as error:
                op(where, accumulate=word)
            text = str(error.value)
            assert "gpureduce::sum: accumulate" in text and word in text
            assert "compensated" in text and "double" in text


@pytest.mark.parametrize("dims", [65, 70])
def test_too_many_dims(device, dims):
    x = torch.ones([1] * dims, device=device)
    for where in (x, x.to("meta")):
        with pytest.raises(RuntimeError, match=rf"gpureduce::sum: .*{dims}.*64|gpureduce::sum: .*64.*{dims}"):
            op(where)


@pytest.mark.parametrize(
    "dtype",
    [torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32, torch.uint16, torch.uint32, torch.uint64],
    ids=common.name,
)
def test_unsupported_dtypes(device, dtype):
    x = torch.empty(4, dtype=dtype, device=device)
    word = {torch.float8_e4m3fn: "Float8_e4m3fn", torch.float8_e5m2: "Float8_e5m2", torch.complex32: "ComplexHalf"}
    word = word.get(dtype, str(dtype).removeprefix("torch.").replace("uint", "UInt"))
    for where in (x, x.to("meta")):
        with pytest.raises(RuntimeError, match="(?i)gpureduce::sum: .*" + re.escape(word)):
            op(where)
    with pytest.raises(RuntimeError, match="(?i)gpureduce::sum: .*" + re.escape(word)):
        op(torch.ones(4, device=device), dtype=dtype)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(3, 3).to_sparse(),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8),
    ],
    ids=["sparse", "nested", "quantized"],
)
def test_unsupported_kinds_of_tensor(make):
    try:
        x = make()
    except RuntimeError as error:
        pytest.skip(f"this torch cannot make the input: {error}")
    with pytest.raises(RuntimeError, match="gpureduce::sum"):
        op(x)


def test_wrong_arguments():
    x = torch.ones(2, 3)
    for call in (
        lambda: op("x"),
        lambda: op(x, 1.5),
        lambda: op(x, "1"),
        lambda: op(x, 1, False, torch.float64),  # dtype is keyword-only, as in torch
        lambda: op(x, axis=1),
        lambda: op(x, accumulate=1),
        lambda: op(),
    ):
        with pytest.raises((RuntimeError, TypeError), match="gpureduce::sum"):
            call()
    assert op(x).item() == 6


def test_python_function_raises_the_same():
    import torch_reduce

    x = torch.ones(2, 3)
    with pytest.raises(
        IndexError, match=re.escape("gpureduce::sum: dim 2 is out of range for a 2-d tensor (expected -2..1)")
    ):
        torch_reduce.sum(x, 2)
    with pytest.raises(ValueError, match="compensated"):
        torch_reduce.sum(x, accumulate="kahan")
    with pytest.raises(IndexError, match="dim 7"):
        torch_reduce.explain(x, 7)
    assert torch.equal(torch_reduce.sum(x, 1, keepdim=True), torch.sum(x, 1, keepdim=True))
    assert torch_reduce.sum(x, dtype=torch.float64, accumulate="double").dtype == torch.float64


def test_negative_and_conjugate_views(device):
    """Lazy conjugation and negation are resolved, not ignored."""
    x = common.exact_data(70, torch.complex64).view(7, 10).to(device)
    for view in (x.conj(), x.conj().t(), x.conj().imag):
        assert view.is_conj() or view.is_neg()
        for dim in (None, 0, 1):
            assert torch.equal(op(view, dim), torch.sum(view, dim))
