"""What the doctor knows of a machine, as one value: its checks look at nothing else. Needs no torch to be imported."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from ._stamp import LIBRARY, SOURCE_TREE, read_stamp


@dataclass(frozen=True)
class Toolkit:
    """A folder with bin/nvcc in it."""

    home: str
    version: str  # "13.0", or "" where its nvcc does not say
    complete: bool  # whether it has CUDA's headers; a folder with a wrapper of nvcc has none


@dataclass(frozen=True)
class Gpu:
    name: str
    capability: tuple[int, int]
    free_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Facts:
    """All strings are empty where there is no such thing."""

    environment: Mapping[str, str] = field(default_factory=dict)
    python_suffix: str = ""  # of extension modules
    python_header: str = ""  # where Python.h should be
    has_python_header: bool = False
    torch: str = ""  # its version
    torch_error: str = ""  # why it cannot be imported
    torch_cuda: str = ""  # the version of CUDA it was built with
    has_torch_headers: bool = False
    compiler: str = ""  # the path of the C++ compiler
    has_ninja: bool = False
    nvcc: str = ""  # the path of the first on PATH
    toolkits: tuple[Toolkit, ...] = ()  # the one that a build takes first
    driver: str = ""
    driver_cuda: str = ""  # the newest CUDA it can run
    cuda_error: str = ""  # why torch cannot use a GPU
    gpus: tuple[Gpu, ...] = ()
    kernel: str = ""  # Linux's release
    paths: frozenset[str] = frozenset()  # those of WATCHED that exist
    source_tree: str = ""
    stamp: Mapping[str, Any] | None = None
    library_error: str = ""  # why it cannot be loaded
    newer_sources: tuple[str, ...] = ()  # than the library, the newest first
    memory_bytes: int = 0  # available to programs
    cores: int = 1

    @property
    def toolkit(self) -> Toolkit | None:
        """The one that a build takes."""
        return self.toolkits[0] if self.toolkits else None

    @property
    def has_cuda_kernels(self) -> bool:
        return bool(self.stamp and self.stamp.get("cuda"))

    @property
    def works(self) -> bool:
        """Whether the present build can do its work here, so that what only the next one needs is no fault yet."""
        return not self.library_error and self.stamp is not None and (self.has_cuda_kernels or not self.gpus)


WSL_DRIVER, WSL_DEVICE = "/usr/lib/wsl/lib/libcuda.so.1", "/dev/dxg"
LINUX_DRIVER = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
WATCHED = (WSL_DRIVER, WSL_DEVICE, LINUX_DRIVER)


def gather(library_error: str = "") -> Facts:
    """The facts of the machine and the process that this runs in."""
    stamp = read_stamp()
    header = Path(sysconfig.get_path("include"), "Python.h")
    return Facts(
        environment=dict(os.environ),
        python_suffix=EXTENSION_SUFFIXES[0],
        python_header=str(header),
        has_python_header=header.exists(),
        compiler=shutil.which(os.environ.get("CXX", "c++")) or "",
        has_ninja=shutil.which("ninja") is not None or importlib.util.find_spec("ninja") is not None,
        nvcc=shutil.which("nvcc") or "",
        toolkits=tuple(toolkits()),
        driver=driver_version(),
        driver_cuda=driver_cuda(),
        kernel=platform.release(),
        paths=frozenset(path for path in WATCHED if Path(path).exists()),
        source_tree=str(SOURCE_TREE or ""),
        stamp=stamp,
        library_error=library_error,
        newer_sources=tuple(newer_sources(stamp)),
        memory_bytes=available_memory(),
        cores=len(os.sched_getaffinity(0)),
        **torch_facts(),
    )


def torch_facts() -> dict[str, Any]:
    """The fields that torch has to be asked for."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return {"torch_error": f"{type(error).__name__}: {error}"}
    headers = Path(torch.__file__).parent / "include/torch/library.h"
    found = {"torch": torch.__version__, "torch_cuda": torch.version.cuda or "", "has_torch_headers": headers.exists()}
    if torch.version.cuda is None:
        return found
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        gpus = tuple(gpu(i) for i in range(torch.cuda.device_count()))
    except (RuntimeError, AssertionError) as error:
        return {**found, "cuda_error": str(error)}
    return {**found, "gpus": gpus}


def gpu(index: int) -> Gpu:
    import torch

    properties = torch.cuda.get_device_properties(index)
    try:
        free, total = torch.cuda.mem_get_info(index)
    except RuntimeError:  # not enough is free to ask
        free, total = 0, properties.total_memory
    return Gpu(properties.name, (properties.major, properties.minor), free, total)


def output(*command: str) -> str:
    """What a command prints, or nothing where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def toolkits() -> Iterator[Toolkit]:
    """Every CUDA toolkit here, once, in the order in which setup.py and torch look for one; wrappers last."""
    nvcc = shutil.which("nvcc")
    named = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), str(Path(nvcc).parent.parent) if nvcc else None]
    others = [*sorted(map(str, Path("/usr/local").glob("cuda-*"))), "/opt/cuda", os.environ.get("CONDA_PREFIX")]
    found: dict[str, Toolkit] = {}
    for home in (*named, "/usr/local/cuda", *others):
        compiler = Path(home or "/nowhere", "bin/nvcc")
        if not compiler.exists() or str(compiler.resolve()) in found:
            continue
        complete = Path(str(home), "include/cuda_runtime_api.h").exists()
        release = re.search(r"release (\d+\.\d+)", output(str(compiler), "--version"))
        found[str(compiler.resolve())] = Toolkit(str(home), release[1] if release else "", complete)
    yield from sorted(found.values(), key=lambda toolkit: not toolkit.complete)


def driver_version() -> str:
    """ "580.159.04": nvidia-smi's word, or else the kernel module's."""
    said = output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").splitlines()
    if said:
        return said[0].strip()
    module = Path("/proc/driver/nvidia/version")
    version = re.search(r"Kernel Module\D*([\d.]+)", module.read_text()) if module.exists() else None
    return version[1] if version else ""


def driver_cuda() -> str:
    """The newest version of CUDA that the driver's library can run."""
    version = ctypes.c_int(0)
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return ""
    return f"{version.value // 1000}.{version.value % 1000 // 10}" if version.value else ""


def newer_sources(stamp: Mapping[str, Any] | None) -> list[str]:
    """The sources of the build that were changed after it, the newest first."""
    if SOURCE_TREE is None or stamp is None:
        return []
    built = LIBRARY.stat().st_mtime
    sources = [path for path in SOURCE_TREE.glob("csrc/**/*.*") if path.suffix in (".h", ".cuh", ".cpp", ".cu")]
    if not stamp.get("cuda"):
        sources = [path for path in sources if path.suffix not in (".cu", ".cuh") and path.parent.name != "cuda"]
    newer = [path for path in (*sources, SOURCE_TREE / "setup.py") if path.stat().st_mtime > built]
    newer.sort(key=lambda path: -path.stat().st_mtime)
    return [str(path.relative_to(SOURCE_TREE)) for path in newer]


def available_memory() -> int:
    """Bytes of main memory that programs can have."""
    info = Path("/proc/meminfo")
    found = re.search(r"MemAvailable:\s*(\d+) kB", info.read_text()) if info.exists() else None
    return int(found[1]) * 1024 if found else 0


def in_words(facts: Facts) -> str:
    """The machine in one line."""
    gpus = ", ".join(gpu.name for gpu in facts.gpus) or "no usable GPU"
    return f"Python {platform.python_version()} ({sys.executable}), torch {facts.torch or 'missing'}, {gpus}"
