"""The bits of every operator: the same on CPU and CUDA, for every number of threads, launch geometry and batch."""

import pytest
import torch

from tests import common
from tests.common import LAYOUTS, assert_same_bits, name
from tests.family import FAMILY, results

MEMBERS = [member for member in FAMILY if torch.float32 not in member.composed]
DTYPES = [*common.REAL, torch.int32, torch.int8, torch.bool, torch.complex64]
SHAPES = [(3, 1), (5, 33), (300, 7), (70, 257), (9, 1030), (2100, 12), (2, 5000)]

members = pytest.mark.parametrize("member", MEMBERS, ids=str)


def calls(member):
    """Reduced dims of a matrix: both, each."""
    return {"one": [0, 1], "maybe": [None, 0, 1], "whole": [None]}.get(member.dims, [None, [0], [1]])


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@members
def test_cuda_has_the_cpus_bits(member, dtype):
    if dtype not in member.dtypes or dtype in member.composed:
        pytest.skip(f"{member} has no kernel for {dtype}")
    for i, (rows, columns) in enumerate(SHAPES):
        flat = member.data((rows * columns,), dtype, seed=i)
        for layout in ("contiguous", "transposed", "gapped", "offset", "middle"):
            x = LAYOUTS[layout](flat, rows, columns)
            on_gpu = LAYOUTS[layout](flat.cuda(), rows, columns)
            for dim in calls(member):
                pairs = zip(results(member.ours(on_gpu, dim, False)), results(member.ours(x, dim, False)), strict=True)
                for got, want in pairs:
                    assert_same_bits(got.cpu(), want, f"{member} {dtype} {rows} x {columns} {layout} dim {dim}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=name)
@members
def test_any_launch_geometry(member, dtype, geometry):
    for shape, dim in (((7, 6000), 1), ((6000, 24), 0), ((3000, 5), 0)):
        if member.dims == "whole":
            dim = None
        x = member.data(shape, dtype)
        want = [result.clone() for result in results(member.ours(x, dim, False))]
        for path, threads, chunk in ((0, 0, 0), (3, 64, 0), (4, 64, 1), (4, 256, 4), (5, 64, 16), (5, 256, 64)):
            geometry(path=path, threads=threads, chunk_leaves=chunk)
            for got, expected in zip(results(member.ours(x.cuda(), dim, False)), want, strict=True):
                assert_same_bits(got.cpu(), expected, f"{member} {dtype} {shape} path {path} chunk {chunk}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=name)
@members
def test_threads_and_repeats(member, dtype, threads):
    x = member.data((40, 9000), dtype)
    for dim in calls(member):
        threads(1)
        want = [result.clone() for result in results(member.ours(x, dim, False))]
        for count in (2, 8, 8):
            threads(count)
            for got, expected in zip(results(member.ours(x, dim, False)), want, strict=True):
                assert_same_bits(got, expected, f"{member} {dtype} dim {dim} {count} threads")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=name)
@members
def test_a_row_of_a_batch_is_the_row_alone(member, dtype, device):
    if member.dims == "whole":
        pytest.skip("it reduces whole tensors")
    x = member.data((37, 1234), dtype).to(device)
    batch = results(member.ours(x, 1, False))
    for row in (0, 17, 36):
        for got, want in zip(batch, results(member.ours(x[row : row + 1], 1, False)), strict=True):
            assert_same_bits(got[row : row + 1], want, f"{member} {dtype} row {row}")
