"""CUB's DeviceReduce as a benchmark rival: compiled on first use with nvcc (about 20 s), called through ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import torch

HERE = Path(__file__).parent
RESULT_DTYPE = {torch.int8: torch.int64, torch.int32: torch.int64}
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.int32,
    torch.int64,
]  # in the order of cub_sum.cu


def build() -> Path:
    """Compile cub_sum.cu for the present GPU if that has not been done; returns the shared library."""
    from torch.utils.cpp_extension import CUDA_HOME  # looks for the toolkit, with a warning where there is no GPU

    if CUDA_HOME is None:
        raise RuntimeError("nvcc not found: set CUDA_HOME or leave the provider cub out")
    major, minor = torch.cuda.get_device_capability()
    source, library = HERE / "cub_sum.cu", HERE / "build" / f"cub_sum_{major}{minor}.so"
    if library.exists() and library.stat().st_mtime >= source.stat().st_mtime:
        return library
    library.parent.mkdir(exist_ok=True)
    print("compiling bench/cub/cub_sum.cu (about 20 s)", flush=True)
    # torch's own CUDA runtime, not a second one beside it
    command = [
        f"{CUDA_HOME}/bin/nvcc",
        "-O3",
        "-shared",
        "-cudart=shared",
        "-Xcompiler",
        "-fPIC",
        f"-arch=sm_{major}{minor}",
    ]
    subprocess.run([*command, "-o", str(library), str(source)], check=True)
    return library


def load() -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns sum(x) for a contiguous CUDA tensor; its temporary storage is allocated once per (dtype, size)."""
    function = ctypes.CDLL(str(build())).cub_sum
    size_pointer = ctypes.POINTER(ctypes.c_size_t)
    in_out = [ctypes.c_void_p, ctypes.c_void_p]
    function.argtypes = [ctypes.c_int, ctypes.c_void_p, size_pointer, *in_out, ctypes.c_int64, ctypes.c_void_p]
    function.restype = ctypes.c_int
    storage: dict[tuple[torch.dtype, int], torch.Tensor] = {}

    def call(x: torch.Tensor, temp: int | None, temp_bytes: ctypes.c_size_t, out: int | None) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        code = DTYPES.index(x.dtype)
        error = function(code, temp, ctypes.byref(temp_bytes), x.data_ptr(), out, x.numel(), stream)
        if error != 0:
            raise RuntimeError(f"cub_sum: CUDA error {error} for {x.numel()} elements of {x.dtype}")

    def cub_sum(x: torch.Tensor) -> torch.Tensor:
        key = (x.dtype, x.numel())
        if key not in storage:
            needed = ctypes.c_size_t(0)
            call(x, None, needed, None)
            storage[key] = torch.empty(needed.value, dtype=torch.uint8, device=x.device)
        out = torch.empty((), dtype=RESULT_DTYPE.get(x.dtype, x.dtype), device=x.device)
        temp = storage[key]
        call(x, temp.data_ptr(), ctypes.c_size_t(temp.numel()), out.data_ptr())
        return out

    return cub_sum
