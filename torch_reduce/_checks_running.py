"""The doctor's checks of what a call needs: torch, the library, the driver, the GPU, memory."""

from __future__ import annotations

from ._facts import LINUX_DRIVER, WSL_DEVICE, WSL_DRIVER, Facts
from ._finding import OLDEST_GPU, Finding, numbers, pip, rebuild, runs_on
from ._stamp import minor_version, rebuild_command

OLDEST_TORCH = (2, 11)
OLDEST_DRIVER = {12: "525", 13: "580"}  # by CUDA's major version: the release notes of its toolkit
GPU_BYTES, JOB_BYTES = 1 << 30, 2 << 30  # that a self-test needs; that a compiler of CUDA kernels takes
CUDA_WHEELS = "--force-reinstall torch --index-url https://download.pytorch.org/whl/cu130"


def check_torch(facts: Facts) -> Finding:
    if facts.torch_error:
        fix = "activate the environment that has torch, or: " + pip('"torch>=2.11"')
        return Finding("torch", "broken", f"cannot be imported: {facts.torch_error}", fix)
    if numbers(facts.torch) < OLDEST_TORCH:
        return Finding("torch", "broken", f"{facts.torch} is too old", pip('"torch>=2.11"'))
    return Finding(
        "torch",
        "ok",
        f"{facts.torch}, built " + (f"with CUDA {facts.torch_cuda}" if facts.torch_cuda else "without CUDA"),
    )


def check_library(facts: Facts) -> Finding:
    """Built, for this torch and this Python, and it can be loaded."""
    name, stamp = "library", facts.stamp
    if stamp is None:
        return Finding(name, "broken", "is not built", rebuild_command())
    kernels = f"CUDA {stamp['cuda']}, architectures {' '.join(stamp['architectures'])}" if stamp["cuda"] else "CPU only"
    built = f"version {stamp['version']} for torch {stamp['torch']}, {kernels}"
    if facts.torch and minor_version(stamp["torch"]) != minor_version(facts.torch):
        return Finding(name, "broken", f"{built}, but torch {facts.torch} is running", rebuild_command())
    if facts.torch_error:
        return Finding(name, "skipped", f"{built}; it cannot be loaded without torch")
    if facts.library_error:
        return Finding(name, "broken", facts.library_error.partition("\n")[0], rebuild_command())
    if stamp.get("python") not in (None, facts.python_suffix):
        why = f"its direct calls are for {stamp['python']}, not {facts.python_suffix}: calls take 1 us more"
        return Finding(name, "warning", f"{built}; {why}", rebuild_command())
    return Finding(name, "ok", built)


def check_driver(facts: Facts) -> Finding:
    """There, new enough for torch's CUDA, and torch can use it."""
    name, said = "driver", f"{facts.driver or 'NVIDIA driver'}, runs CUDA up to {facts.driver_cuda}"
    if not facts.driver_cuda:
        return Finding(name, "skipped", "no NVIDIA driver (libcuda.so.1): the CPU part alone can run")
    if not facts.torch_cuda:
        what = f"{said}, but torch {facts.torch or 'is missing'}" + (" is built without CUDA" if facts.torch else "")
        return Finding(name, "warning", what, pip(CUDA_WHEELS))
    needed = numbers(facts.torch_cuda)
    if numbers(facts.driver_cuda)[0] < needed[0]:
        oldest = OLDEST_DRIVER.get(needed[0], "that fits")
        fix = f"install a driver of release {oldest} or later: https://www.nvidia.com/drivers"
        return Finding(name, "broken", f"{said}; torch's CUDA {facts.torch_cuda} needs a newer one", fix)
    if facts.environment.get("CUDA_VISIBLE_DEVICES") == "" and not facts.gpus:
        return Finding(name, "warning", f"{said}; CUDA_VISIBLE_DEVICES hides every GPU", "unset CUDA_VISIBLE_DEVICES")
    if facts.cuda_error or not facts.gpus:
        what = facts.cuda_error.partition("\n")[0] or "no GPU is visible"
        fix = "nvidia-smi  (it must list the GPU; for a container: docker run --gpus all; else reboot)"
        return Finding(name, "broken", f"{said}; torch cannot use a GPU: {what}", fix)
    older = numbers(facts.driver_cuda) < needed
    note = f"; torch's CUDA {facts.torch_cuda} is newer, but of its major version: all but PTX runs" if older else ""
    return Finding(name, "ok", said + note)


def check_gpus(facts: Facts) -> Finding:
    """Each GPU's compute capability against the architectures in the library."""
    name = "GPU"
    if not facts.gpus:
        return Finding(name, "skipped", "none that torch can use")
    what = ", ".join("{} ({}.{})".format(gpu.name, *gpu.capability) for gpu in facts.gpus)
    old = [gpu.name for gpu in facts.gpus if gpu.capability < OLDEST_GPU]
    if old:
        fix = f"use a GPU of compute capability {OLDEST_GPU[0]}.{OLDEST_GPU[1]} or later, or the CPU"
        return Finding(name, "broken", f"{what}: CUDA 13 has no code for {', '.join(old)}", fix)
    if facts.stamp is None:
        return Finding(name, "broken", f"{what}; the library is not built", rebuild(facts))
    if not facts.has_cuda_kernels:
        wanted = facts.environment.get("GPUREDUCE_CUDA") == "0"
        what += "; the library is built without CUDA" + (", as GPUREDUCE_CUDA=0 demands" if wanted else "")
        return Finding(name, "warning" if wanted else "broken", what, rebuild(facts))
    listed = facts.stamp["architectures"]
    missing = [gpu.name for gpu in facts.gpus if not any(runs_on(each, gpu.capability) for each in listed)]
    if missing:
        what += f"; the library has code for {' '.join(listed)}, none for {', '.join(missing)}"
        return Finding(name, "broken", what, rebuild(facts))
    return Finding(name, "ok", f"{what}; the library has code for {' '.join(listed)}")


def check_wsl(facts: Facts) -> Finding:
    """In WSL2 the driver is Windows', under /usr/lib/wsl/lib; a Linux driver on top of it breaks CUDA."""
    name, kernel = "WSL2", facts.kernel
    if "microsoft" not in kernel.lower():
        return Finding(name, "skipped", "not under Windows")
    if "WSL2" not in kernel and "microsoft-standard" not in kernel:
        return Finding(name, "broken", f"{kernel} is WSL1, which has no GPU", "wsl.exe --set-version <distribution> 2")
    if not {WSL_DEVICE, WSL_DRIVER} <= facts.paths:
        what = f"{kernel}: {WSL_DEVICE} or {WSL_DRIVER} is missing, so no GPU"
        fix = "update Windows' NVIDIA driver, then: wsl.exe --update; wsl.exe --shutdown"
        return Finding(name, "warning", what, fix)
    if LINUX_DRIVER in facts.paths:
        what = f"{LINUX_DRIVER}, a Linux driver, hides Windows' own"
        return Finding(name, "broken", what, "sudo apt-get purge 'nvidia-driver-*' 'libnvidia-compute-*'")
    if facts.source_tree.startswith("/mnt/"):
        what = f"{facts.source_tree} is on a Windows drive, where builds take many times as long"
        return Finding(name, "warning", what, f"cp -r {facts.source_tree} ~/  (and build there)")
    return Finding(name, "ok", f"{kernel}, with Windows' driver")


def check_memory(facts: Facts) -> Finding:
    """Free on each GPU, and for the compilers of a build."""
    full = [gpu for gpu in facts.gpus if gpu.free_bytes < GPU_BYTES]
    what = "; ".join(f"{gpu.name}: {gib(gpu.free_bytes)} of {gib(gpu.total_bytes)} free" for gpu in facts.gpus)
    what = f"{what}; host: {gib(facts.memory_bytes)} available".removeprefix("; ")
    if full:
        return Finding("free memory", "warning", what, "nvidia-smi  (lists who has the GPU's memory)")
    jobs = int(facts.memory_bytes // JOB_BYTES)
    if facts.memory_bytes > 0 and jobs < facts.cores + 2 and not facts.works:
        what += f", too little for a build with {facts.cores + 2} compilers at once"
        return Finding("free memory", "warning", what, f"export MAX_JOBS={max(1, jobs)}")
    return Finding("free memory", "ok", what)


def gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
