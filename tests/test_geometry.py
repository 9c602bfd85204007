"""Every launch geometry that can be forced gives the bits of the CPU, and plans of all devices stand on one tree."""

import itertools

import pytest
import torch

from tests import common
from tests.common import BLOCK_ROW, COLUMN, SHORT_ROW, WARP_ROW, assert_same_bits, name, op

TREE_KEYS = ("family", "n", "outputs", "leaf_elements", "leaves", "depth", "tree_version", "in", "out", "accumulate")


@pytest.mark.parametrize(
    "path, shape, dim, dtype",
    [
        ("SHORT_ROW", (100, 17), 1, torch.float32),
        ("WARP_ROW", (100, 3000), 1, torch.float32),
        ("BLOCK_ROW", (100, 3000), 1, torch.float32),
        ("COLUMN", (3, 5000), 0, torch.float32),
        ("STAGED_ROW", (1000, 301), 1, torch.float32),
        ("THREAD_COLUMN", (3, 5000), 0, torch.float32),
        ("STAGED_COLUMN", (300, 201), 0, torch.bfloat16),
        ("TRANSPOSED_ROW", (300, 96), None, torch.float32),
    ],
)
def test_numbers_of_paths(geometry, path, shape, dim, dtype):
    """Those that tests force."""
    x = torch.empty(shape, dtype=dtype, device="meta")
    geometry(path=getattr(common, path))
    assert common.description(x.t() if dim is None else x, dim)["path"] == path.lower()


def test_the_tree_is_the_same_for_every_device():
    shapes = [((1,), None), ((33, 65), 1), ((1000, 4096), 1), ((8, 4_000_000), 1), ((100_000_000,), None)]
    shapes += [((1_000_000, 128), 0), ((64, 1000, 6), 1), ((0, 3), 0)]
    for (shape, dim), dtype in itertools.product(shapes, (torch.float32, torch.int8)):
        x = torch.empty(shape, dtype=dtype)  # never touched, so it takes no memory
        want = None
        for sms in range(1, 265):
            plan = common.description(x, dim, sms=sms)
            tree = {key: plan[key] for key in TREE_KEYS}
            want = want or tree
            assert tree == want, f"{shape} on {sms} SMs"


def test_plans_use_the_device():
    """Else the test above would be vacuous: 1,000 rows of 6 leaves keep 1 SM busy with a warp each, but not 264."""
    x = torch.empty(1000, 3000)
    assert common.description(x, 1, sms=264)["path"] != common.description(x, 1, sms=1)["path"]


def matrices(total_bytes, element_bytes):
    """Shapes of about so many bytes, from one row to one column; widths that vectors fit, and others."""
    for exponent, factor in itertools.product(range(29), (1, 3, 5, 7)):
        rows = factor << exponent
        columns = total_bytes // element_bytes // rows
        for width in {columns, max(columns - columns % 16, 1), columns + 1} - {0}:
            yield rows, width


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=common.name)
@pytest.mark.parametrize("megabytes", [64, 200, 1024])
def test_large_sums_keep_memory_busy(dtype, megabytes):
    """Each thread has 128 bytes in flight, or a leaf of three columns; an H200's SM wants 48 KB of them; with fewer
    blocks bandwidth is lost."""
    for shape, dim in itertools.product(matrices(megabytes << 20, dtype.itemsize), (0, 1)):
        plan = common.description(torch.empty(shape, dtype=dtype, device="meta"), dim, sms=132)
        each = 8 * 3 * dtype.itemsize if plan["path"] == "batch_column" else 128
        in_flight = plan["grid_x"] * plan["grid_y"] * plan["threads"] * each / 132
        assert in_flight >= 0.8 * (48 << 10), (shape, dim, plan)


def test_depth_counts_the_additions():
    for n, depth in ((1, 0), (2, 1), (128, 7), (129, 8), (512, 10), (513, 11), (1024, 11), (1025, 12)):
        assert common.description(torch.empty(n))["depth"] == depth, n
    for n, depth in ((1, 0), (2, 1), (8, 7), (9, 8), (16, 8), (17, 9)):
        x = torch.empty(n, 4)
        assert common.description(x, 0)["depth"] == depth, n


def test_explanation_is_the_plan(device):
    import torch_reduce

    x = torch.empty(1000, 70, device=device)
    text, plan = torch_reduce.explain(x, 1), common.description(x, 1)
    assert plan["family"] in text and plan["path"] in text and str(plan["leaf_elements"]) in text


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
@pytest.mark.parametrize("offset", [0, 1])
def test_row_geometries(geometry, dtype, offset):
    leaf = common.leaf_elements(dtype)
    lengths = [1, 5, 32, 33, leaf - 1, leaf + 1, 7 * leaf + 3, 33 * leaf + 1]
    data = common.random_data(3 * lengths[-1] + offset, dtype, seed=30)
    on_gpu = data.cuda()[offset:]
    for n in lengths:
        for accumulate in (None, "compensated"):
            want = op(data[offset : offset + 3 * n].view(3, n), 1, accumulate=accumulate)
            x = on_gpu[: 3 * n].view(3, n)
            for path, threads, chunk, rows in geometries(n, leaf):
                geometry(path=path, threads=threads, chunk_leaves=chunk, rows_per_group=rows)
                got = op(x, 1, accumulate=accumulate).cpu()
                assert_same_bits(got, want, f"n={n} path {path} threads {threads} chunk {chunk} rows {rows}")


def geometries(n, leaf):
    """(path, threads, chunk_leaves, rows_per_group) that fit a row of n elements."""
    if n <= leaf:
        yield from itertools.product([SHORT_ROW], [128, 256], [0], [1, 2, 4, 8])
    if n <= 1024 * leaf:
        yield from itertools.product([WARP_ROW], [32, 128, 1024], [0], [0])
    yield from itertools.product([BLOCK_ROW], [32, 64, 256, 512, 1024], [0, 1, 2, 8, 64], [0])


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [dtype for dtype in common.DTYPES if dtype.itemsize < 16], ids=name)
@pytest.mark.parametrize("offset, gap", [(0, 0), (1, 0), (0, 1), (3, 1)])
def test_staged_row_geometries(geometry, dtype, offset, gap):
    """Short rows that vector loads cannot take, through shared memory and by lanes, around the edges of tiles."""
    most = common.LANES * common.components(dtype)
    for rows, n in itertools.product((2, 31, 33, 1000), (1, 3, 7, 8, 9, 33, 64, 65, 129, 255, most - 1, most)):
        pitch = n + gap
        if n > most or (offset == 0 and pitch * dtype.itemsize % common.VECTOR_BYTES == 0):
            continue
        data = common.random_data(offset + rows * pitch, dtype, seed=35)
        for accumulate in (None, "compensated"):
            x = data[offset:].view(rows, pitch)[:, :n]
            there = data.cuda()[offset:].view(rows, pitch)[:, :n]
            want = op(x, 1, accumulate=accumulate)
            geometry()
            by_threads = n == 3 and offset == gap == 0
            assert common.description(there, 1)["path"] == ("thread_row" if by_threads else "staged_row")
            for path, groups in ((0, 0), (0, 1), (0, 2), (0, 8), (SHORT_ROW, 0)):
                geometry(path=path, rows_per_group=groups)
                got = op(there, 1, accumulate=accumulate).cpu()
                assert_same_bits(got, want, f"({rows}, {n}) of {pitch} from {offset}, path {path} groups {groups}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
def test_column_geometries(geometry, dtype):
    for rows, columns in ((1, 9), (7, 3), (8, 40), (9, 41), (300, 5), (1025, 67), (1025, 80)):
        x = common.random_data((2, rows, columns), dtype, seed=31)
        want, on_gpu = op(x, 1), x.cuda()
        for threads, across, chunk in itertools.product((32, 128, 256, 512), (1, 4, 32), (0, 1, 2, 16)):
            path = COLUMN if rows <= 9 else 0
            geometry(path=path, threads=threads, threads_across=across, chunk_leaves=chunk)
            got = op(on_gpu, 1).cpu()
            assert_same_bits(got, want, f"({rows}, {columns}) threads {threads} across {across} chunk {chunk}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.complex128], ids=name)
@pytest.mark.parametrize("columns", [16, 13])
def test_columns_join_level_by_level(geometry, dtype, columns):
    """As many chunks as join in one group, in two, three and four levels of groups, one more and one less."""
    for chunks in (63, 64, 65, 511, 512, 513, 4097):
        x = common.random_data((chunks * 32 * 8 - 3, columns), dtype, seed=38)
        want, on_gpu = op(x, 0), x.cuda()
        for threads, across in ((32, 32), (32, 4), (256, 16)):
            geometry(path=COLUMN, threads=threads, threads_across=across, chunk_leaves=32)
            assert_same_bits(op(on_gpu, 0).cpu(), want, f"{chunks} chunks, threads {threads} across {across}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16, torch.float64], ids=name)
def test_column_rounds(geometry, dtype):
    """Runs longer than a counter in shared memory holds go in rounds."""
    for leaves, columns in ((64, 8), (65, 8), (300, 7), (1025, 16), (4100, 8)):
        x = common.random_data((8 * leaves + 1, columns), dtype, seed=39)
        want, on_gpu = op(x, 0), x.cuda()
        for threads, across, chunk in itertools.product((32, 64), (4, 32), (64, 256, 8192)):
            geometry(path=COLUMN, threads=threads, threads_across=across, chunk_leaves=chunk)
            assert_same_bits(
                op(on_gpu, 0).cpu(), want, f"{leaves} leaves threads {threads} across {across} chunk {chunk}"
            )


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
@pytest.mark.parametrize("columns", [7, 8, 16])
def test_columns_of_two_axes(geometry, dtype, columns):
    """Rows in runs with gaps between them: runs of whole leaves, of parts of leaves and of single rows."""
    for outer, run in ((3, 8), (5, 13), (40, 3), (2, 200)):
        x = common.random_data((outer, 2, run, columns), dtype, seed=40)[:, 1]
        there = common.random_data((outer, 2, run, columns), dtype, seed=40).cuda()[:, 1]
        for threads, chunk in ((0, 0), (32, 1), (128, 4)):
            geometry(threads=threads, chunk_leaves=chunk)
            assert_same_bits(op(there, [0, 1]).cpu(), op(x, [0, 1]), f"{outer} x {run} threads {threads} chunk {chunk}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
@pytest.mark.parametrize("offset, gap", [(0, 0), (1, 0), (0, 1), (3, 2)])
def test_narrow_column_geometries(geometry, dtype, offset, gap):
    """Few columns through shared memory and by threads of their own, around the edges of leaves, tiles and chunks."""
    for rows, columns in itertools.product((1024, 1027, 8191, 40_007), (2, 3, 7, 31)):
        pitch = columns + gap
        if pitch > 2 * columns or pitch * dtype.itemsize > 128:
            continue
        data = common.random_data(offset + rows * pitch, dtype, seed=34)
        x, on_gpu = (t[offset:].view(rows, pitch)[:, :columns] for t in (data, data.cuda()))
        want = op(x, 0)
        geometry()
        vectors = (
            columns * dtype.itemsize % 16 == 0 and pitch * dtype.itemsize % 16 == 0 and on_gpu.data_ptr() % 16 == 0
        )
        assert (common.description(on_gpu, 0)["path"] == "narrow_column") != vectors
        for path, chunk, tile in ((0, 0, 0), (0, 16, 1), (0, 256, 2), (0, 4096, 64), (COLUMN, 0, 0)):
            geometry(path=path, chunk_leaves=chunk, rows_per_group=tile)
            text = f"({rows}, {columns}) of {pitch} from {offset}, path {path} chunk {chunk} tile {tile}"
            assert_same_bits(op(on_gpu, 0).cpu(), want, text)


@pytest.mark.cuda
@pytest.mark.parametrize("layout", common.LAYOUTS)
def test_gather_geometries(geometry, layout):
    data = common.random_data(61 * 530, torch.float32, seed=32)
    x, on_gpu = common.LAYOUTS[layout](data, 61, 530), common.LAYOUTS[layout](data.cuda(), 61, 530)
    for dim in [None, *range(x.dim())]:
        want = op(x, dim)
        for path, threads, chunk in itertools.product((0, BLOCK_ROW), (64, 512), (1, 4)):
            geometry(path=path, threads=threads, chunk_leaves=chunk)
            assert_same_bits(op(on_gpu, dim).cpu(), want, f"dim {dim} path {path} threads {threads} chunk {chunk}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
def test_walk_geometries(geometry, dtype):
    """Rows of two axes, their inner runs whole vectors or not, and of one axis with gaps."""
    leaf, vector = common.leaf_elements(dtype), common.components(dtype)
    for inner, leaves in itertools.product((2 * vector, 7 * vector, 49, 0), (1, 2, 5, 40)):
        if inner:
            shape, gap, dim = (leaves * leaf // inner + 1, 3, inner), 1, [0, 2]
        else:
            shape, gap, dim = (3, 2 * leaves * leaf + 10), 2, [1]
        x = common.random_data(shape, dtype, seed=36)
        there, here = x.cuda()[..., ::gap], x[..., ::gap]
        for accumulate in (None, "compensated"):
            want = op(here, dim, accumulate=accumulate)
            geometry()
            loader = "nested" if inner and inner % vector == 0 else "strided"
            assert common.description(there, dim)["loader"] == loader
            for path, threads, chunk in itertools.product((WARP_ROW, BLOCK_ROW), (64, 256), (0, 2)):
                geometry(path=path, threads=threads, chunk_leaves=chunk)
                got = op(there, dim, accumulate=accumulate).cpu()
                assert_same_bits(got, want, f"{shape} every {gap} path {path} threads {threads} chunk {chunk}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.float64], ids=name)
def test_counts_around_the_chunk_edge(geometry, dtype):
    """Every element is one more than its neighbour's weight, so a chunk too few or too many shows."""
    leaf = common.leaf_elements(dtype)
    for chunk_leaves in (1, 2, 8):
        geometry(path=BLOCK_ROW, threads=64, chunk_leaves=chunk_leaves)
        chunk = chunk_leaves * leaf
        for count in (1, 2, 3, 31, 32, 33):
            for n in (count * chunk - 1, count * chunk, count * chunk + 1):
                x = common.exact_data(n, dtype)
                wide = torch.int64 if dtype == torch.uint8 else torch.float64
                want = x.to(wide).sum().to(torch.int64 if dtype == torch.uint8 else dtype)
                assert_same_bits(op(x.cuda()).cpu(), want, f"n={n} chunk {chunk}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", common.DTYPES, ids=name)
def test_rows_of_every_rest(geometry, dtype):
    """The last leaf of a row, with any number of loads, lanes and components in use, at even and odd addresses."""
    leaf, vector = common.leaf_elements(dtype), common.components(dtype)
    for n in range(leaf // 4 + 1, 2 * leaf + vector, leaf // 16 + 1):
        for offset, pitch in ((0, n), (1, n), (0, -(-n // vector) * vector)):
            data = common.random_data(offset + 3 * pitch, dtype, seed=38)
            there = data.cuda().as_strided((3, n), (pitch, 1), offset)
            want = op(data.as_strided((3, n), (pitch, 1), offset), 1)
            for path in (WARP_ROW, BLOCK_ROW):
                geometry(path=path)
                assert_same_bits(op(there, 1).cpu(), want, f"n={n} pitch {pitch} offset {offset} path {path}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.int8, torch.float32, torch.float64], ids=name)
def test_chunks_of_many_leaves(geometry, dtype):
    """Chunks that a block folds 1,024 leaves at a time."""
    for leaves in (1024, 1025, 2048, 3000, 5 * 1024):
        x = common.random_data(leaves * common.leaf_elements(dtype) - 1, dtype, seed=37)
        want, there = op(x), x.cuda()
        for threads, chunk in itertools.product((128, 512), (1024, 2048, 8192)):
            geometry(path=BLOCK_ROW, threads=threads, chunk_leaves=chunk)
            assert_same_bits(op(there).cpu(), want, f"{leaves} leaves, chunk {chunk}, threads {threads}")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.complex64], ids=name)
def test_replays_and_streams_do_not_change_bits(dtype):
    x = common.random_data((5, 1_000_003), dtype, seed=33, device="cuda")
    eager = [op(x), op(x, 1), op(x, 0)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = [op(x), op(x, 1), op(x, 0)]
    for replay in range(20):
        graph.replay()
        for got, want in zip(captured, eager, strict=True):
            assert_same_bits(got, want, f"replay {replay}")
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    results = []
    for _ in range(20):
        for stream in streams:
            with torch.cuda.stream(stream):
                results.append([op(x), op(x, 1), op(x, 0)])
    torch.cuda.synchronize()
    for result in results:
        for got, want in zip(result, eager, strict=True):
            assert_same_bits(got, want, "two streams")
