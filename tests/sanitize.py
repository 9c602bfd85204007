"""Every path, loader and dtype once on CUDA at small sizes, for compute-sanitizer:

    compute-sanitizer --tool memcheck  --error-exitcode 1 python -m tests.sanitize
    compute-sanitizer --tool racecheck --error-exitcode 1 python -m tests.sanitize

Arguments choose parts, of sums, lists, dots, family, ladder. Results are compared with the CPU's, and the paths and
loaders that sums saw are printed: it fails if one was not reached.
"""

import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import torch

import torch_reduce
from tests import common, read_checker
from tests.common import (
    BLOCK_ROW,
    COLUMN,
    SHORT_ROW,
    STAGED_COLUMN,
    STAGED_ROW,
    THREAD_COLUMN,
    TRANSPOSED_ROW,
    WARP_ROW,
)
from tests.family import FAMILY, results

ROW_PATHS = {"short_row", "warp_row", "block_row", "staged_row", "tiny_row", "thread_row", "transposed_row"}
PATHS = ROW_PATHS | {"column", "narrow_column", "thread_column", "batch_column", "staged_column"}
LOADERS = {"vector", "unaligned", "gather", "nested", "strided"}
seen_paths, seen_loaders, calls = set(), set(), 0


def force(path=0, threads=0, chunk_leaves=0, threads_across=0, rows_per_group=0):
    torch.ops.gpureduce._force_geometry(path, threads, chunk_leaves, threads_across, rows_per_group)


def check(x, dim, view=lambda t: t, **options):
    """One call on CUDA against the CPU; view makes the layout on each side."""
    global calls
    there, here = view(x.cuda()), view(x)
    plan = common.description(there, dim, **options)
    got, want = common.op(there, dim, **options), common.op(here, dim, **options)
    common.assert_same_bits(got.cpu(), want, f"{plan}")
    seen_paths.add(plan["path"])
    seen_loaders.add(plan["loader"])
    calls += 1


def rows(dtype):
    leaf = common.leaf_elements(dtype)
    for n, offset in itertools.product((1, 33, leaf - 1, 3 * leaf + 5), (0, 1)):
        x = common.random_data(2 * n + offset, dtype, seed=n)
        for path, threads, chunk in ((SHORT_ROW, 128, 0), (WARP_ROW, 64, 0), (BLOCK_ROW, 64, 1), (BLOCK_ROW, 128, 2)):
            force(path=path, threads=threads, chunk_leaves=chunk)
            check(x, 1, lambda t, n=n, offset=offset: t[offset:].view(2, n))


def staged_rows(dtype):
    """Odd rows, whose copies begin and end between 16-byte boundaries; the last one ends with the tensor."""
    for n, count, gap, offset in ((3, 70, 0, 1), (33, 70, 1, 0), (65, 33, 0, 1)):
        x = common.random_data(offset + count * (n + gap) - gap, dtype, seed=n)
        force()
        check(x, 1, lambda t, n=n, count=count, gap=gap, offset=offset: t.as_strided((count, n), (n + gap, 1), offset))


def rows_of_a_leaf(dtype):
    """One to four loads a lane, of whole packs and not; the last row ends with the tensor."""
    load, vector = common.leaf_elements(dtype) // 4, common.components(dtype)
    whole, odd = (
        ((2 * load, 0, 0), (4 * load - vector, 0, 0)),
        ((load + 1, 1, STAGED_ROW), (4 * load - 1, 0, STAGED_ROW)),
    )
    for n, offset, path in whole + odd:
        for count, gap in ((3, 0), (35, vector)):
            x = common.random_data(offset + count * (n + gap) - gap, dtype, seed=n)
            force(path=path)
            check(x, 1, lambda t, s=(count, n), p=n + gap, o=offset: t.as_strided(s, (p, 1), o))


def one_row(dtype):
    leaf, vector = common.leaf_elements(dtype), common.components(dtype)
    force()
    for n in (vector, leaf, leaf + vector, 4 * leaf, 5 * leaf - vector, 16 * leaf):
        check(common.random_data(n, dtype, seed=n), None)


def columns(dtype):
    for height, width in ((3, 5), (9, 32), (70, 7)):
        x = common.random_data((2, height, width), dtype, seed=height)
        for threads, across, chunk in ((64, 4, 1), (128, 32, 2)):
            force(path=COLUMN, threads=threads, threads_across=across, chunk_leaves=chunk)
            check(x, 1)
    for width in (5, 16):  # chunks that join level by level, and rounds
        x = common.random_data((2, 4203, width), dtype, seed=width)
        for chunk in (1, 256):
            force(path=COLUMN, threads=32, threads_across=4, chunk_leaves=chunk)
            check(x, 1)
            check(x, [0, 1], lambda t: t[:, 1:])


def thread_columns(dtype):
    """Vectors and single columns of 2 to 4 rows and of leaves; the last ones end with the tensor."""
    force(path=THREAD_COLUMN, threads=32)
    for rows, width, offset in itertools.product((3, 4, 8, 21, 128), (5, 48), (0, 1)):
        x = common.random_data(offset + 7 * rows * width, dtype, seed=rows)
        check(x, 1, lambda t, s=(7, rows, width), o=offset: t[o:].view(s))


def thread_rows(dtype):
    """Rows of two and three elements; the last thread has fewer of them, and the tensor ends with the last one."""
    force()
    for n, count in itertools.product((2, 3), (5, 256 * common.components(dtype) + 1)):
        check(common.random_data((count, n), dtype, seed=n), 1)


def batch_columns(dtype):
    """Three columns of one leaf, of some, and of as many as a block takes; the last batch ends with the tensor."""
    force()
    for rows, batches in ((16, 1000), (80, 7), (2032, 2)):
        check(common.random_data((batches, rows, 3), dtype, seed=rows), 1)


def narrow_columns(dtype):
    for width in (1 + 16 // dtype.itemsize, max(1, 32 // dtype.itemsize)):
        x = common.random_data((5003, width), dtype, seed=width)
        for chunk in (0, 128):
            force(chunk_leaves=chunk)
            check(x, 0)


def odd_columns(dtype):
    """Leaves that begin at any place of a pack, along one axis and two; the last one ends with the tensor."""
    width = 132 // dtype.itemsize + 1
    x = common.random_data((3, 2, 264, width), dtype, seed=width)
    for chunk in (0, 8):
        force(path=STAGED_COLUMN, chunk_leaves=chunk)
        check(x, 2, lambda t: t[:, :, 3:])
        check(x, (0, 2))


def long_batches(dtype):
    """Three columns of so many rows that every SM has a block; rounds that end within a leaf, and within a pack."""
    for rows, chunk in ((270_403, 0), (270_403, 1024)):
        force(chunk_leaves=chunk)
        check(common.random_data((rows, 3), dtype, seed=rows), 0)


def layouts(dtype):
    force()
    x = common.random_data(24 * 70, dtype, seed=2)
    for layout, dim in itertools.product(("gapped", "middle", "overlapping", "expanded"), (None, 0)):
        check(x, dim, lambda t, layout=layout: common.LAYOUTS[layout](t, 24, 70))


def walks(dtype):
    """Long rows of two axes and of one with gaps: inner runs of whole vectors, and of 49 elements."""
    for inner in (4 * common.components(dtype), 49):
        x = common.random_data((2 + common.leaf_elements(dtype) // inner, 3, inner), dtype, seed=inner)
        for path, chunk in ((WARP_ROW, 0), (BLOCK_ROW, 1)):
            force(path=path, threads=64, chunk_leaves=chunk)
            check(x, [0, 2])
            check(x.view(-1), None, lambda t: t[::2])
    x = common.random_data((12, 2, 5, 2, 40), dtype, seed=3)  # three axes that do not collapse
    for path, chunk in ((WARP_ROW, 0), (BLOCK_ROW, 1)):
        force(path=path, threads=64, chunk_leaves=chunk)
        check(x, [0, 2, 4])


def transposed_rows(dtype):
    """Tiles of whole columns, of leaves side by side, of parts of long columns; the last ends with the tensor."""
    if dtype in common.INTEGER:  # whose axes are sorted
        return
    leaf, cell = common.leaf_elements(dtype), max(1, 4 // dtype.itemsize)
    for rows, columns, across in (
        (49, 12, 0),
        (leaf, 12, 8),
        (leaf + 3, 12, 0),
        (7200, 2 * common.components(dtype), 0),
    ):
        x = common.random_data((rows, columns), dtype, seed=rows)
        for threads in (64, 0):
            force(path=TRANSPOSED_ROW, threads=threads, threads_across=across)
            check(x, None, lambda t: t.t())
            check(x, None, lambda t, c=cell: t[:, c:].t())
    if dtype == torch.float32:  # launches that share a mailbox
        force(path=TRANSPOSED_ROW, chunk_leaves=1024)
        check(common.random_data((leaf, 1100), dtype, seed=leaf), None, lambda t: t.t())


def lists(dtype):
    """Norms and clips of lists: whole leaves, ragged and misaligned ones, chunks that join, tables of both sizes."""
    global calls
    leaf, vector = common.leaf_elements(dtype), common.components(dtype)
    flat = common.random_data(30 * leaf, dtype, seed=4)
    sizes = [1, 0, vector, leaf, leaf + 1, 3 * leaf - vector, 33, 2 * leaf]
    for count, chunk in ((1, 0), (1, 1), (1, 4), (33, 2)):
        force(threads=64, chunk_leaves=chunk)
        for order in (1, 2, float("inf")):
            here = [flat[i % 3 :][: sizes[i % len(sizes)]].clone() for i in range(count * len(sizes))]
            here += [flat[1 : 2 * leaf + 2].clone()[1:], flat[:64].clone().view(8, 8)[:, ::2]]
            there = [torch.empty(0, device="cuda").to(dtype), *(t.cuda() for t in here)]
            there[-2] = flat[1 : 2 * leaf + 2].cuda()[1:]
            common.assert_same_bits(
                torch.ops.gpureduce.total_norm(there, order).cpu(), torch.ops.gpureduce.total_norm(here, order)
            )
            norms = [torch.ops.gpureduce.clip_grads_(tensors, 1.0, order) for tensors in (there, here)]
            common.assert_same_bits(norms[0].cpu(), norms[1])
            for a, b in zip(there[1:], here, strict=True):
                common.assert_same_bits(a.cpu(), b)
            calls += 2


def dots(dtype):
    """Rows by lanes, warps and blocks, with vectors and without; columns of both; broadcast inputs."""

    def compare(op, x, y, view=lambda t: t, **options):
        global calls
        got = op(view(x.cuda()), view(y.cuda()), **options)
        common.assert_same_bits(got.cpu(), op(view(x), view(y), **options), f"{tuple(x.shape)} {options}")
        calls += 1

    leaf = common.leaf_elements(dtype)
    if dtype == torch.bool:
        return
    if dtype not in common.FLOATING:
        for n, chunk in ((17, 0), (leaf + 5, 1), (5 * leaf, 2)):
            force(chunk_leaves=chunk, threads=64)
            x = common.random_data((2, n), dtype, seed=n)
            compare(torch.ops.gpureduce.dot, x[0], x[1])
        return
    vecdot = torch.ops.gpureduce.vecdot
    paths = ((SHORT_ROW, 0), (WARP_ROW, 0), (BLOCK_ROW, 1), (BLOCK_ROW, 2))
    for n, (path, chunk) in itertools.product((5, 32, leaf // 2, leaf + 1, 3 * leaf + 4), paths):
        force(path=path, threads=64, chunk_leaves=chunk)
        x = common.random_data((3, n), dtype, seed=n)
        compare(vecdot, x, x[0].flip(0))
        compare(vecdot, x, x, lambda t: t[..., 1:])
        compare(vecdot, x, x.flip(1), lambda t: t[..., ::2])
    for rows, columns, chunk in ((5, 3, 0), (70, 48, 1), (403, 5, 2), (999, 16, 8)):
        force(threads=64, threads_across=4, chunk_leaves=chunk)
        x = common.random_data((rows, columns), dtype, seed=rows)
        compare(vecdot, x, x.flip(0), dim=0)
        compare(vecdot, x, x[:, :1].contiguous(), dim=0)
    force()
    for mode in ("compensated", "double"):
        x = common.random_data((40, 130), dtype)
        compare(vecdot, x, x.flip(0), accumulate=mode)
        compare(vecdot, x, x.flip(0), dim=0, accumulate=mode)


def family(dtype):
    """Every operator but sum: rows by lanes, warps and blocks, chunks that join, columns, gaps, few rows."""
    rows = [
        ((3, n), 1, path, 64, chunk)
        for n, path, chunk in ((33, SHORT_ROW, 0), (199, WARP_ROW, 0), (4201, BLOCK_ROW, 1), (4201, BLOCK_ROW, 2))
    ]
    columns = [((h, w), 0, COLUMN, 64, chunk) for h, w, chunk in ((9, 33, 1), (999, 5, 1), (999, 16, 8))]
    planned = [((5, 7), 1, 0, 0, 0), ((300, 24), 0, 0, 0, 0), ((4, 3000), 0, 0, 0, 0), ((2, 9000), 1, 0, 0, 0)]
    for member in FAMILY[1:]:
        if dtype not in member.dtypes:
            continue
        for shape, dim, path, threads, chunk in rows + columns + planned:
            force(path=path, threads=threads, chunk_leaves=chunk)
            x = member.data(shape, dtype, seed=shape[1])
            compare_family(member, x, dim)
            if dtype in (torch.float32, torch.bfloat16):
                compare_family(member, x, dim, lambda t: t[:, 1:])
                compare_family(member, x, dim, lambda t: t[::2, ::2])
        if member.dims != "one":
            force(path=TRANSPOSED_ROW)
            both = (0, 1) if member.dims == "any" else None
            compare_family(member, member.data((300, 96), dtype, seed=3), both, lambda t: t.t())
    force()


def compare_family(member, x, dim, view=lambda t: t):
    global calls
    dim = None if member.dims == "whole" else dim
    pairs = zip(
        results(member.ours(view(x.cuda()), dim, False)), results(member.ours(view(x), dim, False)), strict=True
    )
    for got, want in pairs:
        if x.dtype not in member.composed:
            common.assert_same_bits(got.cpu(), want, f"{member} {tuple(x.shape)} {x.dtype} dim {dim}")
    calls += 1


def ladder(dtype):
    """Every rung with every parameter: sizes around the edges of its blocks, and more blocks than one."""
    global calls
    run = torch_reduce.ladder.run
    force()
    for kind, name in ((rung.kind, name) for rung in torch_reduce.ladder.rungs() for name in rung.calls):
        if kind == "sum":
            for n in (1, 31, 1025, 20_003):
                wrong = read_checker.faults(lambda x, name=name: run(x, name), n, offsets=(0, 3), device="cuda")
                assert not wrong, f"{name}: {wrong}"
        elif kind == "pipeline":
            x = read_checker.weights((2 << 20) + 5)
            assert run(x, name).item() == run(x.pin_memory(), name).item() == read_checker.exact_sum(x), name
        else:
            operands, want = strategy_case(kind, dtype)
            common.assert_same_bits(run(operands[0].cuda(), name, *(y.cuda() for y in operands[1:])).cpu(), want, name)
        calls += 1


def strategy_case(kind, dtype):
    """The tensors that a rung of a kind takes, integers, and its result."""
    x, y = (read_checker.weights(40 * 70, seed).to(dtype).view(40, 70) for seed in (1, 2))
    if kind == "map":
        return (x, y), x + y
    if kind == "columns":
        tall = read_checker.weights(3000 * 33).to(dtype).view(3000, 33)
        return (tall,), tall.double().sum(0).to(dtype)
    if kind == "tile":
        return (x, y.t().contiguous()), (x.double() @ y.t().double()).to(dtype)
    values, offsets = read_checker.weights(20_000).to(dtype), torch.tensor([0, 5, 5, 9000, 9031, 20_000])
    return (values, offsets), torch.stack([row.double().sum() for row in values.tensor_split(offsets[1:-1])]).to(dtype)


def sums(dtype):
    rows(dtype)
    staged_rows(dtype)
    rows_of_a_leaf(dtype)
    one_row(dtype)
    columns(dtype)
    thread_columns(dtype)
    thread_rows(dtype)
    batch_columns(dtype)
    narrow_columns(dtype)
    transposed_rows(dtype)
    odd_columns(dtype)
    long_batches(dtype)
    layouts(dtype)
    walks(dtype)
    if dtype in common.FLOATING:
        for accumulate, dim in itertools.product(("compensated", "double"), (None, 0, 1)):
            check(common.random_data((40, 130), dtype), dim, accumulate=accumulate)


def check_paths():
    force()
    check(common.random_data(300_001, torch.float32), None)  # many blocks, as the planner wants them
    check(common.random_data((20_000, 4), torch.float32), 0)
    check(torch.zeros(3, 0), 1)
    if PATHS - seen_paths or LOADERS - seen_loaders:
        sys.exit(f"sanitize: not reached: {sorted((PATHS - seen_paths) | (LOADERS - seen_loaders))}")


PARTS = {
    "sums": (sums, common.DTYPES),
    "lists": (lists, common.REAL),
    "dots": (dots, common.DTYPES),
    "family": (
        family,
        (torch.float32, torch.bfloat16, torch.float64, torch.complex64, torch.int32, torch.int8, torch.bool),
    ),
    "ladder": (ladder, (torch.float32,)),
}


def main():
    missing = common.why_no_cuda()
    if missing:
        sys.exit(f"sanitize: {missing}")
    chosen = sys.argv[1:] or list(PARTS)
    for part in chosen:
        run, dtypes = PARTS[part]
        for dtype in dtypes:
            run(dtype)
    if "sums" in chosen:
        check_paths()
    torch.cuda.synchronize()
    print(f"sanitize: {', '.join(chosen)}: {calls} calls, paths {sorted(seen_paths)}, loaders {sorted(seen_loaders)}")


if __name__ == "__main__":
    main()
