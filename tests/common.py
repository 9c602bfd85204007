"""The lists that every test file loops over: dtypes, devices, sizes, layouts, accumulate modes; and the test data."""

import functools
import json
import pathlib

import torch

import torch_reduce  # noqa: F401  (loads the library)

ROOT = pathlib.Path(__file__).resolve().parent.parent

op = torch.ops.gpureduce.sum

REAL = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
COMPLEX = [torch.complex64, torch.complex128]
INTEGER = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
FLOATING = REAL + COMPLEX
DTYPES = FLOATING + INTEGER
ACCUMULATE = [None, "compensated", "double"]

# The constants of the tree, written down a second time on purpose: a change to core/tree.h must fail here.
LANES, LOADS, VECTOR_BYTES, COLUMN_LEAF_ROWS = 32, 4, 16, 8

# What Geometry.path (core/plan.h) takes to force a path: one more than its place in Path.
SHORT_ROW, WARP_ROW, BLOCK_ROW, COLUMN, NARROW_COLUMN, STAGED_ROW, TINY_ROW = 2, 3, 4, 5, 6, 7, 8
THREAD_COLUMN, BATCH_COLUMN, THREAD_ROW, STAGED_COLUMN, TRANSPOSED_ROW = 9, 10, 11, 12, 13


def components(dtype):
    return VECTOR_BYTES // dtype.itemsize


def leaf_elements(dtype):
    return LOADS * LANES * components(dtype)


def sizes(dtype, largest_leaves=64):
    """Row lengths around every constant of the tree: component, lane, load, leaf, warp of leaves, chunks."""
    c, leaf = components(dtype), leaf_elements(dtype)
    edges = [
        1,
        2,
        c,
        8,
        LANES,
        LANES * c // 2,
        LANES * c,
        2 * LANES * c,
        leaf,
        2 * leaf,
        5 * leaf,
        32 * leaf,
        64 * leaf,
    ]
    around = {edge + step for edge in edges for step in (-1, 0, 1) if edge <= largest_leaves * leaf}
    return sorted(n for n in around if n >= 0)


COLUMN_ROWS = [1, 2, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 129, 1000]


def name(value):
    """A short id for parametrised tests."""
    return str(value).removeprefix("torch.")


def accumulator_bits(dtype):
    return 24 if dtype in (torch.float32, torch.float16, torch.bfloat16, torch.complex64) else 53


def exact_data(n, dtype, device="cpu"):
    """n values whose sum is exact in any order, each with a weight of its own as far as the type has room.

    Values are +-(1 + i % period); the period is the longest odd one with sum|x| <= 2^24 (2^53) the type can hold, so
    up to 5,000 elements every weight is unique, and beyond that equal weights stand an odd number of elements apart.
    """
    i = torch.arange(n, dtype=torch.int64)
    if dtype == torch.bool:
        return ((i * 7919 // 8) % 3 != 0).to(device)
    largest = {torch.int8: 127, torch.uint8: 255, torch.bfloat16: 256, torch.float16: 2048, torch.int16: 32767}
    room = 1 << accumulator_bits(dtype)
    period = max(1, min(n, 2 * room // max(n, 1) - 2, largest.get(dtype, 1 << 22))) | 1
    weight = 1 + i % min(period, largest.get(dtype, period))
    if dtype != torch.uint8:
        weight = torch.where(i % 3 == 1, -weight, weight)
    if dtype.is_complex:
        part = torch.float64 if dtype == torch.complex128 else torch.float32
        return torch.complex(weight.to(part), -weight.flip(0).to(part)).to(device)
    return weight.to(dtype).to(device)


def random_data(shape, dtype, seed=0, device="cpu"):
    """Values of both signs over 14 binades: every addition rounds, so a change of order changes the bits."""
    shape = (shape,) if isinstance(shape, int) else shape
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return (torch.rand(shape, generator=generator) < 0.7).to(device)
    if not dtype.is_floating_point and not dtype.is_complex:
        info = torch.iinfo(dtype)
        low, high = max(info.min, -(2**40)), min(info.max, 2**40)
        return torch.randint(low, high + 1, shape, generator=generator, dtype=torch.int64).to(dtype).to(device)
    if dtype.is_complex:
        part = torch.float64 if dtype == torch.complex128 else torch.float32
        return torch.complex(random_data(shape, part, seed), random_data(shape, part, seed + 1)).to(device)
    normal = torch.randn(shape, generator=generator, dtype=torch.float64)
    scale = torch.randint(-8, 7, shape, generator=generator)
    return (normal * torch.exp2(scale)).to(dtype).to(device)


def tensors_of(shapes, dtype, device="cpu", seed=0):
    return [random_data(shape, dtype, seed + i, device) for i, shape in enumerate(shapes)]


def bits(x):
    """The storage of a result as integers, so that -0.0 and NaN compare."""
    x = x.detach().contiguous().cpu()
    if x.is_complex():
        x = torch.view_as_real(x).contiguous()
    if x.dtype == torch.bool:
        return x.to(torch.uint8)
    return x.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])


def assert_same_bits(got, want, what=""):
    """DeepGEMM-style comparer: prints the first coordinates that differ, with both values."""
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, expected {want.dtype}"
    assert got.shape == want.shape, f"{what}: shape {tuple(got.shape)}, expected {tuple(want.shape)}"
    wrong = (bits(got) != bits(want)).reshape(-1)
    if wrong.any():
        first = wrong.nonzero()[:5, 0]
        if got.is_complex():
            first = (first // 2).unique()
        pairs = [(int(i), got.reshape(-1)[i].item(), want.reshape(-1)[i].item()) for i in first]
        raise AssertionError(f"{what}: {int(wrong.sum())} of {wrong.numel()} differ; (index, got, expected): {pairs}")


def description(x, dim=None, keepdim=False, *, dtype=None, accumulate=None, sms=132, op="sum"):
    """The plan and the tree of a call, as the dictionary behind torch_reduce.explain."""
    text = torch.ops.gpureduce._explain(x, dim, keepdim, dtype=dtype, accumulate=accumulate, sms=sms, op=op)
    return json.loads(text)


@functools.cache
def library_path():
    """The shared library that torch_reduce has loaded."""
    ours = [path for path in torch.ops.loaded_libraries if pathlib.Path(path).parent.name == "torch_reduce"]
    assert len(ours) == 1, f"expected one loaded gpureduce library, found {ours}"
    return ours[0]


def build_stamp():
    """What the library was built with: the keys version, torch, cuda (None for a CPU-only build), architectures."""
    return json.loads(pathlib.Path(library_path()).with_name("_build.json").read_text())


def why_no_cuda():
    """What is missing for the CUDA tests; an empty string if nothing is."""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is a build without CUDA"
    if not torch.cuda.is_available():
        return "no CUDA GPU (torch.cuda.is_available() is False)"
    if not build_stamp()["cuda"]:
        return "gpureduce was built without CUDA (no nvcc at build time): rebuild with GPUREDUCE_CUDA=1"
    return ""


# --- layouts: name -> function of rows * columns values and the two sizes that gives a view of them, 2 or more dims


def _gapped(flat, rows, columns):
    base = flat.new_zeros(rows * 2, columns * 3)
    view = base[::2, ::3]
    view.copy_(flat.view(rows, columns))
    return view


def _pitched(flat, rows, columns):
    base = flat.new_zeros(rows, columns + 3)
    view = base[:, 1 : columns + 1]
    view.copy_(flat.view(rows, columns))
    return view


def _offset(flat, rows, columns):
    base = flat.new_zeros(rows * columns + 1)
    base[1:].copy_(flat)
    return base[1:].view(rows, columns)


def _middle(flat, rows, columns):
    """(rows, 2, columns) with the reduced dim in the middle of memory."""
    return flat.view(rows, columns).t().contiguous().view(columns, 1, rows).permute(2, 1, 0)


LAYOUTS = {
    "contiguous": lambda flat, rows, columns: flat.view(rows, columns),
    "transposed": lambda flat, rows, columns: flat.view(rows, columns).t().contiguous().t(),
    "gapped": _gapped,
    "pitched": _pitched,
    "offset": _offset,
    "middle": _middle,
    "expanded": lambda flat, rows, columns: flat[:columns].view(1, columns).expand(rows, columns),
    "repeated": lambda flat, rows, columns: flat[:rows].view(rows, 1).expand(rows, columns),
    "overlapping": lambda flat, rows, columns: flat.as_strided((rows, min(columns, 5)), (1, 1)),
    "channels_last": lambda flat, rows, columns: flat.view(rows, columns, 1, 1).to(memory_format=torch.channels_last),
}
