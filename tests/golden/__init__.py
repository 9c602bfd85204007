"""The golden bits: results of fixed, integer-generated inputs. `python -m tests.golden` writes them anew."""

import json
import pathlib

import numpy as np
import torch

PATH = pathlib.Path(__file__).with_name("sum.json")
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
    if dtype == torch.int64:
        return torch.from_numpy(integers).view(shape)
    halvings = (z & np.uint64(7)).astype(np.int64)
    values = np.ldexp(integers.astype(np.float64), -halvings - width + 5)  # below 16: no overflow in half
    return torch.from_numpy(values).to(dtype).view(shape)


def cases():
    """(key, arguments of the op) of every golden result."""
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128):
        for accumulate in (None, "compensated", "double"):
            for shape, dim in SHAPES:
                key = f"{str(dtype)[6:]} {list(shape)} dim={dim} accumulate={accumulate}"
                yield key, shape, dim, dtype, {"accumulate": accumulate}
    for shape, dim in SHAPES:
        yield f"int64 {list(shape)} dim={dim} dtype=float64", shape, dim, torch.int64, {"dtype": torch.float64}


def hexadecimal(result):
    from tests import common

    values = common.bits(result)
    mask = (1 << (8 * values.element_size())) - 1
    return " ".join(f"{value & mask:x}" for value in values.reshape(-1).tolist())


def compute(device):
    """key -> the bits of each output, in hexadecimal."""
    from tests import common

    inputs = ((key, data(shape, dtype).to(device), dim, options) for key, shape, dim, dtype, options in cases())
    return {key: hexadecimal(common.op(x, dim, **options)) for key, x, dim, options in inputs}


def read():
    return json.loads(PATH.read_text())


def write():
    PATH.write_text(json.dumps(compute("cpu"), indent=0) + "\n")
    return PATH
