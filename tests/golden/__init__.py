"""The golden bits: results of fixed, integer-generated inputs. `python -m tests.golden` writes them anew."""

import functools
import json
import pathlib

import numpy as np
import torch

from tests import common
from tests.family import FAMILY, results

FOLDER = pathlib.Path(__file__).parent
FUNCTIONS = [*dict.fromkeys(member.function for member in FAMILY), "vecdot", "dot", "total_norm"]  # each has a file
DTYPES = [*common.REAL, torch.complex64, torch.int8, torch.bool]
SHAPES = [((1,), None), ((33,), None), ((1000,), None), ((4097,), None), ((100003,), None), ((3, 1025), 1)]
SHAPES += [((70, 5), 0), ((9, 3), 0), ((1000, 4), 0), ((2, 65, 3), 1), ((3, 7, 129), [0, 2])]
SIGNIFICANT = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}


def data(shape, dtype, salt=0):
    """splitmix64 of the index: a signed integer of the type's precision over 2^(0..7)."""
    if dtype.is_complex:
        part = torch.empty(0, dtype=dtype).real.dtype
        return torch.complex(data(shape, part, 1), data(shape, part, 2))
    z = (np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint64) + np.uint64(1 + (salt << 32))) * np.uint64(
        0x9E3779B97F4A7C15
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    width = SIGNIFICANT.get(dtype, 40)
    integers = (z >> np.uint64(64 - width)).astype(np.int64) - (1 << (width - 1))
    if dtype == torch.bool:
        return torch.from_numpy(integers % 4 != 0).view(shape)
    if not dtype.is_floating_point:
        return torch.from_numpy(integers).to(dtype).view(shape)
    halvings = (z & np.uint64(7)).astype(np.int64)
    values = np.ldexp(integers.astype(np.float64), -halvings - width + 5)  # below 16: no overflow in half
    return torch.from_numpy(values).to(dtype).view(shape)


def data_of(member, shape, dtype):
    """The data, and for some operators numbers that make more of a case of it."""
    x = data(shape, dtype)
    first = x.view(-1)[: x.numel() // 3]
    if member.function == "prod":  # near one, or odd
        return 1 + x / 1024 if dtype.is_floating_point or dtype.is_complex else x | True
    if member.function in ("nansum", "nanmean") and dtype.is_floating_point:
        first[::2] = float("nan")
    if member.name in ("any", "all", "count_nonzero", "norm 0"):
        first.zero_()
    return x


def dim_of(member, dim):
    """The dim itself, or what the operator takes in its place."""
    one = dim if isinstance(dim, int) else -1
    return {"any": dim, "maybe": None if dim is None else one, "one": one, "whole": None}[member.dims]


def key_of(member, dtype, shape, dim):
    return f"{member} {str(dtype)[6:]} {list(shape)} dim={dim}"


def sums():
    """(key, shape, dim, dtype, options) of every golden sum."""
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128):
        for accumulate in (None, "compensated", "double"):
            for shape, dim in SHAPES:
                key = f"{str(dtype)[6:]} {list(shape)} dim={dim} accumulate={accumulate}"
                yield key, shape, dim, dtype, {"accumulate": accumulate}
    for shape, dim in SHAPES:
        yield f"int64 {list(shape)} dim={dim} dtype=float64", shape, dim, torch.int64, {"dtype": torch.float64}


def dots():
    """(key, input, call of it): a tensor with itself turned round."""
    for dtype in (*common.REAL, torch.complex64, torch.complex128):
        for accumulate in (None, "compensated", "double"):
            for shape, dim in SHAPES:
                if dim is None or isinstance(dim, int):
                    key = f"{str(dtype)[6:]} {list(shape)} dim={dim} accumulate={accumulate}"
                    yield (
                        key,
                        data(shape, dtype),
                        functools.partial(dot, dim=-1 if dim is None else dim, mode=accumulate),
                    )


def dot(x, dim, mode):
    return torch.ops.gpureduce.vecdot(x, x.flip(dim), dim=dim, accumulate=mode)


def whole_dots():
    for dtype in (*common.REAL, torch.complex64, torch.int8, torch.int64):
        for shape, dim in SHAPES:
            if dim is None:
                key = f"{str(dtype)[6:]} {list(shape)}"
                yield key, data(shape, dtype), lambda x: torch.ops.gpureduce.dot(x, x.flip(0))


def norms():
    """Of a list: pieces of one to 777 elements."""
    for dtype in (*common.REAL, torch.complex64):
        for order in (1, 2, float("inf")) if dtype != torch.complex64 else (2,):
            for shape, dim in SHAPES:
                if dim is None:
                    key = f"{str(dtype)[6:]} {list(shape)} ord={order}"
                    yield key, data(shape, dtype), functools.partial(norm, order=order)


def norm(x, order):
    return torch.ops.gpureduce.total_norm([piece.clone() for piece in x.split(777)], order)


OTHERS = {"vecdot": dots, "dot": whole_dots, "total_norm": norms}


def calls(function):
    """(key, input, call of it) of every golden result."""
    if function in OTHERS:
        yield from OTHERS[function]()
        return
    if function == "sum":
        for key, shape, dim, dtype, options in sums():
            yield key, data(shape, dtype), functools.partial(common.op, dim=dim, **options)
        return
    for member in FAMILY:
        for dtype in DTYPES if member.function == function else []:
            if dtype not in member.dtypes or dtype in member.composed:
                continue
            for shape, dim in SHAPES:
                dim = dim_of(member, dim)
                call = functools.partial(member.ours, d=dim, k=False)
                yield key_of(member, dtype, shape, dim), data_of(member, shape, dtype), call


def hexadecimal(result):
    values = common.bits(result)
    mask = (1 << (8 * values.element_size())) - 1
    return " ".join(f"{value & mask:x}" for value in values.reshape(-1).tolist())


def joined(tensors):
    return " | ".join(hexadecimal(tensor) for tensor in tensors)


def compute(function, device):
    """key -> the bits of each output, in hexadecimal; of two results, with a | between them."""
    return {key: joined(results(call(x.to(device)))) for key, x, call in calls(function)}


def path(function):
    return FOLDER / f"{function}.json"


def read(function):
    return json.loads(path(function).read_text())


def write(function):
    """The number of results."""
    computed = compute(function, "cpu")
    path(function).write_text(json.dumps(computed, indent=0) + "\n")
    return len(computed)
