"""The reference tree against a plain recursion over indices, element by element: two writings of one description."""

import numpy as np
import pytest
import torch

from tests import common, reference_tree


def two_sum(a, b):
    value = a[0] + b[0]
    b_part = value - a[0]
    return value, ((a[0] - (value - b_part)) + (b[0] - b_part)) + (a[1] + b[1])


def plain(a, b):
    return (a[0] + b[0],)


def fold(items, add):
    """The perfect binary tree over items by index; None is a missing item."""
    if len(items) == 1:
        return items[0]
    half = 1 << ((len(items) - 1).bit_length() - 1)
    left, right = fold(items[:half], add), fold(items[half:], add)
    return left if right is None else right if left is None else add(left, right)


def in_order(items, add):
    total = None
    for item in items:
        if item is not None:
            total = item if total is None else add(total, item)
    return total


def recursive_sum(values, element_bytes, column, add):
    c = 16 // element_bytes
    leaf = 8 if column else 128 * c
    get = lambda i: values[i] if i < len(values) else None  # noqa: E731
    leaves = []
    for start in range(0, len(values), leaf):
        if column:
            leaves.append(in_order([get(start + r) for r in range(8)], add))
            continue
        lanes = []
        for lane in range(32):
            parts = [in_order([get(start + lane * c + k * 32 * c + j) for k in range(4)], add) for j in range(c)]
            lanes.append(fold(parts, add))
        leaves.append(fold(lanes, add))
    return fold(leaves, add)


@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("column", [False, True])
@pytest.mark.parametrize("compensated", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_reference_is_the_recursion(element_bytes, column, compensated, kind):
    random = np.random.default_rng(element_bytes)
    leaf = 128 * 16 // element_bytes
    for n in (1, 2, 7, 8, 9, 31, 33, 129, leaf - 1, leaf, leaf + 1, 3 * leaf + 5, 6 * leaf + 1):
        x = (random.standard_normal(n) * 2.0 ** random.integers(-9, 9, n)).astype(kind)
        items = [(v, kind(0)) if compensated else (v,) for v in x]
        want = recursive_sum(items, element_bytes, column, two_sum if compensated else plain)
        acc = (x[None], np.zeros_like(x)[None]) if compensated else (x[None],)
        got = reference_tree.column_tree(acc) if column else reference_tree.row_tree(acc, element_bytes)
        for g, w in zip(got, want, strict=True):
            assert g[0].tobytes() == kind(w).tobytes(), (n, g, w)


def test_order_matters_to_this_data():
    """The data of the bit tests tells trees apart: a chain and the trees of three element sizes all differ."""
    x = common.random_data((32, 4099), torch.float32).numpy()
    chain = np.zeros(32, np.float32)
    for column in x.T:
        chain += column
    trees = [reference_tree.row_tree((x,), size)[0] for size in (2, 4, 8)]
    trees += [chain, reference_tree.column_tree((x,))[0]]
    assert len({tree.tobytes() for tree in trees}) == len(trees)


def test_family():
    x = torch.zeros(4, 5)
    assert not reference_tree.is_column(x, {1})
    assert reference_tree.is_column(x, {0})
    assert not reference_tree.is_column(x.t(), {0})
    assert not reference_tree.is_column(torch.zeros(4, 1), {0})
    assert not reference_tree.is_column(torch.zeros(1).expand(4, 5), {0})
    assert not reference_tree.is_column(torch.zeros(9).as_strided((3, 3), (1, 1)), {0})


def test_bfloat16_rounding_is_torch_rounding():
    every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    finite = every[every.isfinite()]
    between = (finite.double()[:-1] + finite.double()[1:]) / 2
    for values in (finite.float(), between.float(), torch.nextafter(between.float(), torch.tensor(0.0))):
        got = reference_tree.round_to(values.numpy(), torch.bfloat16)
        assert torch.equal(got.view(torch.int16), values.bfloat16().view(torch.int16))
