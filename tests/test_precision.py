"""Precision faults that public projects had, each with a literal input and the right value."""

import pytest
import torch

from tests.common import op


def test_half_sums_accumulate_in_float32(device):
    big = torch.tensor([32000.0] * 4 + [-32000.0] * 4, dtype=torch.float16, device=device)
    assert op(big).item() == 0
    assert op(big.view(8, 1).expand(8, 40), 0).tolist() == [0] * 40
    assert op(torch.ones(390, dtype=torch.bfloat16, device=device)).item() == 390
    assert op(torch.ones(4096, dtype=torch.float16, device=device)).item() == 4096
    assert op(torch.ones(4096, 33, dtype=torch.float16, device=device), 0).tolist() == [4096] * 33
    split = torch.full((1 << 19, 3), 32000.0, dtype=torch.float16, device=device)  # enough rows for many blocks
    split[1::2] = -32000
    split[0, 1] = -31968
    assert op(split, 0).tolist() == [0, -63968, 0]


def test_half_overflows_only_when_the_result_does(device):
    assert op(torch.ones(100000, dtype=torch.float16, device=device)).item() == float("inf")
    x = torch.ones(65520, dtype=torch.float16, device=device)
    assert op(x[:65519]).item() == 65504
    assert op(x).item() == float("inf")


def test_no_long_float32_chain(device):
    assert abs(op(torch.full((250, 250), 1.23456, device=device)).item() - 77160.0) < 0.05
    ones = torch.ones(20_000_000, device=device)
    assert op(ones).item() == 20_000_000
    assert op(ones[:9_000_000].view(-1, 3), 0).tolist() == [3_000_000] * 3
    expanded = torch.ones(1, 3, device=device).expand(18_000_000, 3)
    assert op(expanded, 0).tolist() == [18_000_000] * 3
    tenths = op(torch.full((1_000_000, 3), 0.1, device=device), 0)
    assert all(abs(value - 100_000) < 0.1 for value in tenths.tolist())
    window = torch.full((1, 1), 1.01, device=device).expand(1000, 1000)
    want = torch.tensor(1.01).double().item() * 1e6
    assert abs(op(window).item() / want - 1) < 1e-6
    assert abs(op(window.contiguous()).item() / want - 1) < 1e-6


@pytest.mark.parametrize("accumulate", [None, "compensated", "double"])
def test_subnormals_are_kept(device, accumulate):
    tiny = torch.full((3,), 2.0**-149, device=device)
    assert op(tiny, accumulate=accumulate).item() == 3 * 2.0**-149
    assert op(tiny.expand(70, 3), 0, accumulate=accumulate).tolist() == [70 * 2.0**-149] * 3
    half = torch.full((1027,), 2.0**-24, dtype=torch.float16, device=device)
    assert op(half, accumulate=accumulate).item() == 1027 * 2.0**-24
    bfloat = torch.full((40,), 2.0**-133, dtype=torch.bfloat16, device=device)
    assert op(bfloat, accumulate=accumulate).item() == 40 * 2.0**-133
    double = torch.full((5,), 5e-324, dtype=torch.float64, device=device)
    assert op(double, accumulate=accumulate).item() == 25e-324


def test_double_accumulator_rounds_to_half_once(device):
    """1 + 2^-11 + 2^-40 lies above the tie, but float32 between would put it on the tie and round down."""
    x = torch.tensor([1.0, 2.0**-11, 2.0**-24], dtype=torch.float16, device=device)
    assert op(x, accumulate="double").item() == 1 + 2.0**-10
    y = torch.tensor([1.0, 2.0**-8, 2.0**-40], dtype=torch.bfloat16, device=device)
    assert op(y, accumulate="double").item() == 1 + 2.0**-7
    below = torch.tensor([1.0, 2.0**-8, -(2.0**-40)], dtype=torch.bfloat16, device=device)
    assert op(below, accumulate="double").item() == 1
