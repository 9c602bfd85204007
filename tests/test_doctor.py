"""The doctor's checks, each against simulated machines."""

import re
from dataclasses import replace

import pytest

from torch_reduce import _finding, doctor
from torch_reduce._facts import LINUX_DRIVER, WSL_DEVICE, WSL_DRIVER, Facts, Gpu, Toolkit

GIB = 1 << 30
H200 = Gpu("NVIDIA H200", (9, 0), 100 * GIB, 140 * GIB)
CUDA_13, CUDA_12 = Toolkit("/usr/local/cuda", "13.0", True), Toolkit("/usr/local/cuda-12.8", "12.8", True)
STAMP = {"version": "0.1.0", "torch": "2.14.1+cu130", "cuda": "13.0", "architectures": ["9.0"], "python": ".cpython.so"}
HEALTHY = Facts(
    environment={"PATH": "/usr/local/cuda/bin:/usr/bin"},
    python_suffix=".cpython.so",
    python_header="/usr/include/python3.12/Python.h",
    has_python_header=True,
    torch="2.14.1+cu130",
    torch_cuda="13.0",
    has_torch_headers=True,
    compiler="/usr/bin/c++",
    has_ninja=True,
    nvcc="/usr/local/cuda/bin/nvcc",
    toolkits=(CUDA_13,),
    driver="580.95.05",
    driver_cuda="13.0",
    gpus=(H200,),
    kernel="6.8.0-generic",
    source_tree="/home/me/gpureduce",
    stamp=STAMP,
    memory_bytes=64 * GIB,
    cores=16,
)
CPU_ONLY = replace(
    HEALTHY,
    nvcc="",
    toolkits=(),
    driver="",
    driver_cuda="",
    gpus=(),
    cuda_error="Found no NVIDIA driver",
    torch_cuda="",
)
WSL = replace(HEALTHY, kernel="6.6.87.2-microsoft-standard-WSL2", paths=frozenset({WSL_DEVICE, WSL_DRIVER}))
NO_LIBRARY = replace(HEALTHY, stamp=None, library_error="_C.so is not built")


def found(facts, name):
    """The finding of that name; every check must bear every machine."""
    (finding,) = [each for each in doctor.examine(facts) if each.name == name]
    assert finding.verdict in ("ok", "warning", "broken", "skipped")
    assert finding.finding and "\n" not in finding.finding
    assert bool(finding.fix) == (finding.verdict in ("warning", "broken"))
    return finding


def test_a_healthy_machine_has_no_fault():
    for finding in doctor.examine(HEALTHY):
        assert finding.verdict in ("ok", "skipped"), finding


def test_a_machine_without_a_gpu_has_no_fault():
    """What is missing there is skipped: the library works on the CPU."""
    facts = replace(CPU_ONLY, stamp={**STAMP, "cuda": None, "architectures": []})
    assert {each.verdict for each in doctor.examine(facts)} == {"ok", "skipped"}


# name of the check, what differs from a healthy machine, verdict, what the finding says, what the fix says
CASES = [
    ("torch", {"torch": "", "torch_error": "ModuleNotFoundError: no torch"}, "broken", "no torch", "pip install"),
    ("torch", {"torch": "2.10.0"}, "broken", "too old", "torch>=2.11"),
    ("library", {"stamp": None}, "broken", "not built", "build_ext --inplace|pip install --no-build-isolation"),
    ("library", {"torch": "2.15.0"}, "broken", "2.14.1.*2.15.0 is running", "build_ext|pip install"),
    ("library", {"library_error": "_C.so: undefined symbol: x\nmore"}, "broken", "undefined symbol", "build_ext|pip"),
    ("library", {"python_suffix": ".cpython-313.so"}, "warning", "direct calls", "build_ext|pip install"),
    ("stale build", {"newer_sources": ("csrc/a.h", "csrc/b.h")}, "warning", r"csrc/a\.h .* 1 more", "build_ext|pip"),
    ("driver", {"driver_cuda": "12.8", "driver": "570.1"}, "broken", "570.1.*12.8.*13.0", "release 580"),
    ("driver", {"torch_cuda": "", "gpus": ()}, "warning", "without CUDA", "pip install --force-reinstall torch"),
    ("driver", {"gpus": (), "cuda_error": "unknown error"}, "broken", "unknown error", "nvidia-smi"),
    ("driver", {"gpus": (), "environment": {"CUDA_VISIBLE_DEVICES": ""}}, "warning", "hides", "unset"),
    ("GPU", {"gpus": (replace(H200, name="V100", capability=(7, 0)),)}, "broken", "no code for V100", r"7\.5"),
    ("GPU", {"gpus": (H200, replace(H200, name="B200", capability=(10, 0)))}, "broken", "none for B200", '"10.0 9.0"'),
    ("GPU", {"stamp": {**STAMP, "cuda": None}}, "broken", "built without CUDA", 'GPUREDUCE_CUDA="1"'),
    ("GPU", {"stamp": None}, "broken", "not built", 'TORCH_CUDA_ARCH_LIST="9.0"'),
    ("nvcc", {"nvcc": ""}, "warning", "not on PATH", "export PATH=/usr/local/cuda/bin:"),
    ("nvcc", {"nvcc": "", "toolkits": ()}, "warning", "no CUDA kernels can be built", "cuda-toolkit-13-0"),
    ("toolkit", {"toolkits": (CUDA_12,)}, "warning", r"12\.8 .* 13\.0", "cuda-toolkit-13-0"),
    ("toolkit", {"toolkits": (CUDA_12, CUDA_13)}, "warning", "same major", "CUDA_HOME=/usr/local/cuda PATH="),
    (
        "several toolkits",
        {"toolkits": (CUDA_12, CUDA_13)},
        "warning",
        r"cuda-12\.8 \(12\.8\), /usr/local/cuda \(13\.0\).*PATH has",
        "CUDA_HOME=/usr/local/cuda ",
    ),
    ("headers", {"has_python_header": False}, "warning", r"Python\.h", "python3-dev"),
    ("headers", {"has_ninja": False}, "warning", "ninja", "pip install ninja"),
    ("headers", {"compiler": ""}, "warning", r"C\+\+ compiler", r"g\+\+"),
    ("headers", {"toolkits": (replace(CUDA_13, complete=False),)}, "warning", "cuda_runtime_api.h", "CUDA_HOME"),
    ("headers", {"has_torch_headers": False}, "warning", "torch's headers", "pip install"),
    (
        "TORCH_CUDA_ARCH_LIST",
        {"environment": {"TORCH_CUDA_ARCH_LIST": "8.6"}},
        "warning",
        "leaves out NVIDIA H",
        "unset",
    ),
    ("TORCH_CUDA_ARCH_LIST", {"environment": {"TORCH_CUDA_ARCH_LIST": "7.0;9.0"}}, "warning", "for 7.0 ", "unset"),
    ("TORCH_CUDA_ARCH_LIST", {"environment": {"TORCH_CUDA_ARCH_LIST": "sm_90"}}, "warning", "sm_90", "unset"),
    ("TORCH_CUDA_ARCH_LIST", {"environment": {"TORCH_CUDA_ARCH_LIST": "9.0,8.6"}}, "warning", "9.0,8.6", "unset"),
    ("WSL2", {"kernel": "4.4.0-19041-Microsoft"}, "broken", "WSL1", "--set-version"),
    ("free memory", {"gpus": (replace(H200, free_bytes=GIB // 2),)}, "warning", "0.5 GiB of 140", "nvidia-smi"),
]


@pytest.mark.parametrize("name, change, verdict, says, fix", CASES)
def test_each_fault_is_found(name, change, verdict, says, fix):
    finding = found(replace(HEALTHY, **change), name)
    assert finding.verdict == verdict
    assert re.search(says, finding.finding), finding
    assert re.search(fix, finding.fix), finding


def test_there_is_a_case_for_every_check():
    names = {each.name for each in doctor.examine(HEALTHY)}
    assert names == {case[0] for case in CASES} and len(names) == len(doctor.CHECKS)


@pytest.mark.parametrize("name", ["nvcc", "toolkit", "headers"])
def test_what_only_a_build_needs_is_broken_where_a_build_is_due(name):
    """A missing nvcc is a warning while the library works, and what is broken where there is none."""
    change = {"nvcc": "", "toolkits": () if name == "nvcc" else (CUDA_12,), "compiler": ""}
    assert found(replace(HEALTHY, **change), name).verdict == "warning"
    assert found(replace(NO_LIBRARY, **change), name).verdict == "broken"


def test_an_installed_library_that_works_needs_no_nvcc():
    installed = replace(HEALTHY, source_tree="", nvcc="", toolkits=())
    assert found(installed, "nvcc").verdict == "skipped"
    assert found(replace(installed, stamp=None), "nvcc").verdict == "broken"


def test_a_demanded_cpu_build_is_a_warning():
    facts = replace(HEALTHY, stamp={**STAMP, "cuda": None}, environment={"GPUREDUCE_CUDA": "0"})
    assert found(facts, "GPU").verdict == "warning"


def test_a_newer_toolkit_or_an_older_driver_of_the_same_major_version_is_fine():
    assert found(replace(HEALTHY, toolkits=(replace(CUDA_13, version="13.2"),)), "toolkit").verdict == "ok"
    finding = found(replace(HEALTHY, torch_cuda="13.2"), "driver")
    assert finding.verdict == "ok" and "13.2 is newer" in finding.finding


def test_several_toolkits_are_fine_while_path_and_build_agree():
    assert found(replace(HEALTHY, toolkits=(CUDA_13, CUDA_12)), "several toolkits").verdict == "ok"
    wrapped = replace(HEALTHY, nvcc="/usr/local/bin/nvcc", toolkits=(CUDA_13, Toolkit("/usr/local", "13.0", False)))
    assert found(wrapped, "several toolkits").verdict == "ok"


def test_wsl2():
    assert found(WSL, "WSL2").verdict == "ok"
    old_windows_driver = replace(WSL, paths=frozenset(), gpus=(), driver_cuda="")
    assert "wsl.exe --update" in found(old_windows_driver, "WSL2").fix
    shadowed = found(replace(WSL, paths=WSL.paths | {LINUX_DRIVER}), "WSL2")
    assert shadowed.verdict == "broken" and "purge" in shadowed.fix
    assert found(replace(WSL, source_tree="/mnt/c/gpureduce"), "WSL2").verdict == "warning"


def test_little_memory_limits_the_compilers_of_a_build_that_is_due():
    assert found(replace(HEALTHY, memory_bytes=8 * GIB), "free memory").verdict == "ok"
    assert found(replace(NO_LIBRARY, memory_bytes=8 * GIB), "free memory").fix == "export MAX_JOBS=4"


@pytest.mark.parametrize(
    "architecture, capability, runs",
    [
        ("9.0", (9, 0), True),
        ("8.0", (8, 9), True),
        ("8.9", (8, 0), False),
        ("8.0", (9, 0), False),
        ("8.0+PTX", (9, 0), True),
        ("9.0a", (9, 0), True),
        ("10.0a", (10, 3), False),
        ("12.0+PTX", (12, 1), True),
        ("nonsense", (9, 0), False),
    ],
)
def test_which_code_runs_where(architecture, capability, runs):
    assert _finding.runs_on(architecture, capability) == runs


@pytest.mark.parametrize("names", ["Hopper", "8.0 9.0+PTX", "8.0;9.0", "9.0a"])
def test_torchs_forms_of_the_list_are_known(names):
    facts = replace(HEALTHY, environment={"TORCH_CUDA_ARCH_LIST": names})
    assert found(facts, "TORCH_CUDA_ARCH_LIST").verdict == "ok"
