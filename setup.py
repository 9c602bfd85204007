"""Builds the operators, torch_reduce/_C.so, against the installed torch; and _eager.so, which only makes calls faster.

CUDA kernels are built when torch has CUDA and nvcc is found; a GPU is not needed. Environment:
    GPUREDUCE_CUDA=0|1      leave the CUDA kernels out, or insist on them
    TORCH_CUDA_ARCH_LIST    architectures; by default the present GPU's own, else DEFAULT_ARCHITECTURES
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from setuptools import setup

try:
    import torch
    from torch.utils import cpp_extension
except ImportError as error:
    sys.exit(f"gpureduce is built against the torch that you use ({error}). Type: pip install --no-build-isolation .")

ROOT = Path(__file__).resolve().parent
DEFAULT_ARCHITECTURES = "7.5 8.0 8.6 8.9 9.0 10.0 12.0+PTX"

# Flags are numerics: no contraction to fma and no fast-math, so that every device computes the same bits.
# -fopenmp is for at::parallel_for; it is not passed to the linker, so that torch's own OpenMP runtime is the one used.
HOST_FLAGS = ["-O2", "-ffp-contract=off", "-fvisibility=hidden", "-fopenmp", "-g0", "-Wno-psabi"]
HOST_FLAGS += ["-fno-trapping-math", "-fno-math-errno"]  # lets conversions vectorise; changes no value
NVCC_FLAGS = ["-O3", "--fmad=false", "--threads=2", *(f"-Xcompiler={flag}" for flag in HOST_FLAGS)]


def find_toolkit() -> str | None:
    """Where the CUDA toolkit is: torch's guess, unless that is a folder with no more than a wrapper of nvcc in it."""
    homes = [home for home in (cpp_extension.CUDA_HOME, "/usr/local/cuda") if home and Path(home, "bin/nvcc").exists()]
    complete = [home for home in homes if Path(home, "include/cuda_runtime_api.h").exists()]
    return next(iter(complete + homes), None)


def use_cuda() -> bool:
    """Whether to build the CUDA kernels: GPUREDUCE_CUDA if set, else whether torch and the toolkit can."""
    wanted = os.environ.get("GPUREDUCE_CUDA", "")
    if wanted not in ("", "0", "1"):
        sys.exit(f"gpureduce: GPUREDUCE_CUDA must be 0 or 1, got {wanted!r}")
    if wanted == "1" and torch.version.cuda is None:
        sys.exit(f"gpureduce: GPUREDUCE_CUDA=1, but torch {torch.__version__} is built without CUDA")
    if wanted == "1" and find_toolkit() is None:
        sys.exit("gpureduce: GPUREDUCE_CUDA=1, but no nvcc is found; set CUDA_HOME to the CUDA toolkit")
    return wanted != "0" and torch.version.cuda is not None and find_toolkit() is not None


def architectures() -> str:
    """The architectures to build for, in the form of TORCH_CUDA_ARCH_LIST."""
    chosen = os.environ.get("TORCH_CUDA_ARCH_LIST")
    if chosen:
        return chosen
    present = {torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())}
    return " ".join(f"{major}.{minor}" for major, minor in sorted(present)) or DEFAULT_ARCHITECTURES


def merged(cuda: bool) -> list[Path]:
    """csrc/torch in five files that include its sources: torch's headers take longer to compile than what follows.

    What is CUDA's own, or in its place, is apart: its unnamed namespaces have the names that those of cpu.cpp have.
    """
    paths = sorted(ROOT.glob("csrc/torch/*.cpp"))
    device = [path for path in paths if path.stem.startswith("cuda" if cuda else "without_cuda")]
    common = [path for path in paths if not path.stem.startswith(("cuda", "without_cuda"))]
    folder = ROOT / "build" / "merged"
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for i, group in enumerate([device, *(common[i::4] for i in range(4))]):
        files.append(folder / f"torch_{i}.cpp")
        text = "".join(f'#include "{path}"\n' for path in group)
        if not files[-1].exists() or files[-1].read_text() != text:
            files[-1].write_text(text)
    return files


def sources(cuda: bool) -> list[str]:
    """Every source file of the build; without CUDA, one file that says so in place of the CUDA kernels."""
    found = [path for folder in ("core", "cpu", "ladder") for path in ROOT.glob(f"csrc/{folder}/*.cpp")]
    if cuda:
        found += [*ROOT.glob("csrc/cuda/*.cu"), *ROOT.glob("csrc/ladder/**/*.cu")]
    return sorted(str(path.relative_to(ROOT)) for path in [*found, *merged(cuda)])


class BuildExtension(cpp_extension.BuildExtension):
    """Leaves a stamp beside the libraries that says what they were built for."""

    def run(self) -> None:
        super().run()
        stamp = {
            "version": self.distribution.get_version(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda if CUDA else None,
            "architectures": os.environ["TORCH_CUDA_ARCH_LIST"].replace(";", " ").split() if CUDA else [],
            "python": EXTENSION_SUFFIXES[0] if EAGER else None,  # of _eager.so; _C.so is good for any
        }
        library = Path(self.get_ext_fullpath("torch_reduce._C"))
        library.with_name("_build.json").write_text(json.dumps(stamp, indent=4) + "\n")


def use_eager() -> bool:
    """Whether to build the direct way from Python: it needs Python's headers, and relies on its global lock."""
    headers = Path(sysconfig.get_path("include"), "Python.h").exists()
    return headers and not sysconfig.get_config_var("Py_GIL_DISABLED")


CUDA = use_cuda()
EAGER = use_eager()
if CUDA:
    cpp_extension.CUDA_HOME = find_toolkit()
    os.environ["TORCH_CUDA_ARCH_LIST"] = architectures()
print(f"gpureduce: building for torch {torch.__version__},", end=" ")
print(f"CUDA {torch.version.cuda}, architectures {os.environ['TORCH_CUDA_ARCH_LIST']}" if CUDA else "CPU only")

# Named, because some toolchains link libstdc++ statically by default: an exception that left a library would then be
# thrown by one copy of the runtime and caught by another, torch's, which crashes.
LINK_FLAGS = ["-l:libstdc++.so.6"]

make_extension = cpp_extension.CUDAExtension if CUDA else cpp_extension.CppExtension
extension = make_extension(
    "torch_reduce._C",
    sources(CUDA),
    depends=sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("csrc/**/*.*h")),
    extra_compile_args={"cxx": HOST_FLAGS, "nvcc": NVCC_FLAGS},
    extra_link_args=LINK_FLAGS,
    # The library is loaded by torch.ops.load_library and uses no Python symbols: this leaves libtorch_python out.
    py_limited_api=True,
)
eager = cpp_extension.CppExtension(
    "torch_reduce._eager",
    ["csrc/python/eager.cpp"],
    depends=["csrc/torch/operators.h", "csrc/torch/call.h", "csrc/torch/gradients.h"],
    extra_compile_args={"cxx": HOST_FLAGS},
    extra_link_args=LINK_FLAGS,
)

setup(
    ext_modules=[extension, eager] if EAGER else [extension],
    cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
