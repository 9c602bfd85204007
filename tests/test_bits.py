"""Bits: the CPU is the reference tree, CUDA is the CPU, and nothing but the elements of a row changes its sum."""

import pytest
import torch

from tests import common, golden
from tests.common import ACCUMULATE, COLUMN_ROWS, DTYPES, FLOATING, LAYOUTS, REAL, assert_same_bits, name, op
from tests.family import FAMILY, results
from tests.reference_operators import ORACLES, reference
from tests.reference_tree import reference_sum
from tests.test_reference import fold, plain

floating = pytest.mark.parametrize("dtype", FLOATING, ids=name)
accumulates = pytest.mark.parametrize("accumulate", ACCUMULATE)


@floating
@accumulates
def test_rows_are_the_reference_tree(dtype, accumulate):
    data = common.random_data(2 * common.sizes(dtype)[-1], dtype, seed=5)
    for n in common.sizes(dtype):
        x = data[: 2 * n].view(2, n)
        want = reference_sum(x, 1, accumulate=accumulate)
        assert_same_bits(op(x, 1, accumulate=accumulate), want, f"n={n}")
        assert_same_bits(op(x[0], accumulate=accumulate), want[0], f"n={n}, one row")


@floating
@accumulates
def test_columns_are_the_reference_tree(dtype, accumulate):
    data = common.random_data(COLUMN_ROWS[-1] * 67, dtype, seed=6)
    for n in COLUMN_ROWS:
        for columns in (2, 3, 16, 67):
            x = data[: n * columns].view(n, columns)
            assert_same_bits(
                op(x, 0, accumulate=accumulate), reference_sum(x, 0, accumulate=accumulate), f"({n}, {columns})"
            )


@floating
@accumulates
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_the_reference_tree(dtype, accumulate, layout):
    x = LAYOUTS[layout](common.random_data(23 * 130, dtype, seed=7), 23, 130)
    for dim in [None, *range(x.dim()), [0, x.dim() - 1]]:
        want = reference_sum(x, dim, accumulate=accumulate)
        assert_same_bits(op(x, dim, accumulate=accumulate), want, f"dim {dim}")


@pytest.mark.parametrize("out", [torch.float64, torch.float32, torch.complex64, torch.complex128], ids=name)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.int32], ids=name)
@accumulates
def test_wider_results_are_the_reference_tree(dtype, out, accumulate):
    x = common.random_data((9, 1300), dtype, seed=8)
    part = {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(out, out)
    for dim in (None, 0, 1):
        want = reference_sum(x, dim, dtype=part, accumulate=accumulate).to(out)
        got = op(x, dim, dtype=out, accumulate=accumulate)
        assert_same_bits(got, want, f"dim {dim}")


def test_long_rows_are_the_reference_tree():
    for dtype, n in ((torch.float32, 3_000_017), (torch.bfloat16, 5_000_003), (torch.float64, 1_000_001)):
        x = common.random_data(n, dtype, seed=9)
        assert_same_bits(op(x), reference_sum(x), f"{dtype} {n}")
    tall = common.random_data((200_003, 5), torch.float32, seed=9)
    assert_same_bits(op(tall, 0), reference_sum(tall, 0), "tall")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=name)
def test_a_row_does_not_see_its_batch(device, dtype):
    x = common.random_data((512, 4099), dtype, seed=10, device=device)
    full = op(x, 1)
    for batch in (1, 2, 7, 64, 512):
        for start in range(0, 512, max(batch, 32)):
            assert_same_bits(op(x[start : start + batch], 1), full[start : start + batch], f"B={batch} at {start}")
    assert_same_bits(torch.stack([op(row) for row in x[:40]]), full[:40], "row by row")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=name)
def test_a_column_does_not_see_its_neighbours(device, dtype):
    x = common.random_data((1029, 300), dtype, seed=11, device=device)
    full = op(x, 0)
    for width in (2, 3, 8, 33, 299, 300):  # one column alone is a row, with the tree of rows
        for start in (0, 1, 300 - width):
            assert_same_bits(op(x[:, start : start + width], 0), full[start : start + width], f"{width} at {start}")
    stacked = common.random_data((64, 129, 6), dtype, seed=12, device=device)
    together = op(stacked, 1)
    for batch in (1, 2, 7, 64):
        assert_same_bits(op(stacked[:batch], 1), together[:batch], f"B={batch}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.int8], ids=name)
def test_thread_counts(threads, dtype):
    wide = common.random_data((3, 700_001), dtype, seed=13)
    tall = common.random_data((150_001, 7), dtype, seed=14)
    many = common.random_data((70_001, 33), dtype, seed=15)
    calls = [(wide, 1), (wide, None), (tall, 0), (tall, None), (many, 1), (many, 0), (many[:, ::2], 0)]
    for accumulate in (None, "compensated"):
        results = []
        for count in (1, 2, 8):
            threads(count)
            results.append([op(x, dim, accumulate=accumulate) for x, dim in calls])
        for other in results[1:]:
            for got, want, (x, dim) in zip(other, results[0], calls, strict=True):
                assert_same_bits(got, want, f"{tuple(x.shape)} dim {dim}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=name)
def test_sums_of_aligned_pieces_fold_to_the_whole(device, dtype):
    leaf = common.leaf_elements(dtype)
    for leaves in (1, 2, 16):
        x = common.random_data(leaves * leaf * 5 + 77, dtype, seed=16, device=device)
        pieces = [(op(piece),) for piece in x.split(leaves * leaf)]
        assert_same_bits(fold(pieces, plain)[0], op(x), f"pieces of {leaves} leaves")
    for leaves in (1, 4):
        x = common.random_data((leaves * 8 * 5 + 3, 6), dtype, seed=17, device=device)
        pieces = [(op(piece, 0),) for piece in x.split(leaves * 8)]
        assert_same_bits(fold(pieces, plain)[0], op(x, 0), f"pieces of {leaves} column leaves")


@pytest.mark.parametrize("dtype", [*FLOATING, torch.int8, torch.bool], ids=name)
def test_a_misaligned_copy_has_the_same_bits(device, dtype):
    for n in (1, 3, 9, 33, 257, 1023, 4099, 70_001):
        x = common.random_data(n, dtype, seed=18, device=device)
        want = op(x)
        base = torch.empty(n + 18, dtype=dtype, device=device)
        for offset in range(18):
            base[offset : offset + n] = x
            assert_same_bits(op(base[offset : offset + n]), want, f"n={n} offset {offset}")


def test_repeated_runs(device):
    x = common.random_data((7, 300_001), torch.float32, seed=19, device=device)
    for dim in (None, 0, 1):
        first = op(x, dim)
        for run in range(20):
            assert_same_bits(op(x, dim), first, f"dim {dim} run {run}")


@pytest.mark.parametrize("function", golden.FUNCTIONS)
def test_golden_bits(device, function):
    want, got = golden.read(function), golden.compute(function, device)
    assert want.keys() == got.keys(), "run `make golden` and note the change under Numerics in the CHANGELOG"
    wrong = {key: (got[key], want[key]) for key in want if got[key] != want[key]}
    assert not wrong, f"{len(wrong)} of {len(want)} golden results differ (got, golden): {list(wrong.items())[:5]}"


def test_golden_bits_are_the_reference_tree():
    want = golden.read("sum")
    for key, shape, dim, dtype, options in golden.sums():
        got = golden.hexadecimal(reference_sum(golden.data(shape, dtype), dim, **options))
        assert got == want[key], key


@pytest.mark.parametrize("member", [member for member in FAMILY if member.name in ORACLES], ids=str)
def test_golden_bits_of_operators_are_the_references(member):
    want = golden.read(member.function)
    integers = [torch.int8, torch.bool] if member.name in ("logsumexp", "softmax_stats") else []
    for dtype in [*REAL, *integers]:
        for shape, dim in golden.SHAPES if dtype in member.dtypes else []:
            x, dim = golden.data_of(member, shape, dtype), golden.dim_of(member, dim)
            types = [result.dtype for result in results(member.ours(x, dim, False))]
            got = golden.joined(reference(member.name, x, dim, types))
            key = golden.key_of(member, dtype, shape, dim)
            assert got == want[key], key


def test_golden_data_tells_trees_apart():
    """Each float32 case of a leaf or more would change under torch's tree: the file is not vacuous."""
    kept = [key for key, shape, dim, dtype, _ in golden.sums() if dtype == torch.float32 and "None" in key[-4:]]
    x = golden.data((100003,), torch.float32)
    assert len(kept) == len(golden.SHAPES)
    assert len({op(x).item(), op(x.flip(0)).item(), op(x.roll(1)).item()}) > 1


WITH_TREE = ["mean", "nansum", "nanmean", "sumsq", "prod", "norm 2", "norm 1", "var", "std", "var_mean", "std_mean"]
WITH_TREE += ["softmax_stats"]  # of logsumexp's sum, too: a logarithm hides a last digit


@pytest.mark.parametrize("member", [member for member in FAMILY if member.name in WITH_TREE], ids=str)
def test_golden_data_of_operators_tells_trees_apart(member):
    apart = 0
    for n in (1000, 4097, 100003):
        x = golden.data_of(member, (n,), torch.float64)
        orders = (x, x.flip(0), x.roll(1))
        apart += len({golden.hexadecimal(results(member.ours(y, 0, False))[-1]) for y in orders}) > 1
    assert apart > 0


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@accumulates
def test_cuda_rows_are_the_cpu(dtype, accumulate):
    data = common.random_data(3 * common.sizes(dtype)[-1], dtype, seed=20)
    on_gpu = data.cuda()
    for n in common.sizes(dtype):
        want = op(data[: 3 * n].view(3, n), 1, accumulate=accumulate)
        got = op(on_gpu[: 3 * n].view(3, n), 1, accumulate=accumulate)
        assert_same_bits(got.cpu(), want, f"n={n}")
        assert_same_bits(op(on_gpu[:n], accumulate=accumulate).cpu(), want[0], f"n={n}, one row")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@accumulates
def test_cuda_columns_are_the_cpu(dtype, accumulate):
    data = common.random_data(COLUMN_ROWS[-1] * 131, dtype, seed=21)
    for n in COLUMN_ROWS:
        for columns in (2, 3, 16, 67, 131):
            x = data[: n * columns].view(n, columns)
            got = op(x.cuda(), 0, accumulate=accumulate).cpu()
            assert_same_bits(got, op(x, 0, accumulate=accumulate), f"({n}, {columns})")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cuda_layouts_are_the_cpu(dtype, layout):
    data = common.random_data(61 * 530, dtype, seed=22)
    x, on_gpu = LAYOUTS[layout](data, 61, 530), LAYOUTS[layout](data.cuda(), 61, 530)
    assert x.stride() == on_gpu.stride()
    for dim in [None, *range(x.dim()), [0, x.dim() - 1]]:
        for accumulate in ACCUMULATE:
            got = op(on_gpu, dim, accumulate=accumulate).cpu()
            assert_same_bits(got, op(x, dim, accumulate=accumulate), f"dim {dim} {accumulate}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [*REAL, torch.int8], ids=name)
def test_cuda_long_rows_are_the_cpu(dtype):
    for shape, dim in (((20_000_003,), None), ((5, 4_000_001), 1), ((3_000_001, 6), 0), ((300_001, 33), 1)):
        x = common.random_data(shape, dtype, seed=23)
        assert_same_bits(op(x.cuda(), dim).cpu(), op(x, dim), f"{shape}")
