"""Builds CUDA sources for the CPU, by tests/cpp/cuda_on_cpu: what kernels compute can be tested without a GPU."""

import ctypes
import functools
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import torch

from tests import common

HERE = common.ROOT / "tests/cpp"
COMPILER = shlex.split(os.environ.get("CXX") or "c++")
LAUNCH = re.compile(r"([\w:]+(?:<[\w.:]+>)?)<<<(.*?)>>>\(", re.S)


def translated(text):
    """kernel<<<grid, block, shared, stream>>>(x) as C++."""
    return LAUNCH.sub(r"emulated::Launch(\2)(\1, ", text)


@functools.cache
def library():
    """The ladder's kernels and the faulty one; skips where there is no compiler."""
    if shutil.which(COMPILER[0]) is None:
        pytest.skip(f"no C++ compiler: {COMPILER[0]} is not found")
    with tempfile.TemporaryDirectory() as folder:
        for part in ("core", "ladder"):
            shutil.copytree(common.ROOT / "csrc" / part, Path(folder, part))
        shutil.copy(HERE / "faulty_serial.cu", folder)
        kernels = [path for path in Path(folder).rglob("*.cu") if path.name != "production.cu"]
        for path in kernels:
            path.write_text(translated(path.read_text()))
        flags = [
            "-std=c++20",
            "-O1",
            "-w",
            "-shared",
            "-fPIC",
            "-ffp-contract=off",
            f"-I{HERE}/cuda_on_cpu",
            f"-I{folder}",
        ]
        sources = [*kernels, Path(folder, "ladder/ladder.cpp"), HERE / "cuda_on_cpu/ladder.cpp"]
        command = [*COMPILER, *flags, "-x", "c++", *map(str, sources), "-o", f"{folder}/kernels.so"]
        compiled = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert compiled.returncode == 0, compiled.stderr
        return ctypes.CDLL(f"{folder}/kernels.so")


def run(rung, sizes, result_size, self, other=None):
    """A rung on contiguous CPU tensors; the result lies between guards, and is NaN where nothing was written."""
    out = torch.full((result_size + 2,), torch.nan)
    pointers = [ctypes.c_void_p(t.data_ptr() if t is not None else None) for t in (self, other)]
    code = library().run_rung(
        rung.encode(), *pointers, (ctypes.c_int64 * len(sizes))(*sizes), ctypes.c_void_p(out[1:].data_ptr())
    )
    assert code == 0, f"{rung}: error {code} (see tests/cpp/cuda_on_cpu/ladder.cpp)"
    assert out[0].isnan() and out[-1].isnan(), f"{rung} wrote beside its result"
    return out[1:-1]


def faulty_serial(x):
    """tests/cpp/faulty_serial.cu."""
    out = torch.empty(())
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, out)]
    assert library().faulty_serial(pointers[0], ctypes.c_int64(x.numel()), pointers[1], None) == 0
    return out
