"""The doctor's checks of what a build needs: nvcc, the toolkit, headers, architectures, and whether one is due."""

from __future__ import annotations

import re

from ._facts import Facts, Toolkit
from ._finding import ARCHITECTURE, OLDEST_GPU, Finding, numbers, pip, runs_on, until_rebuilt
from ._stamp import rebuild_command

# torch.utils.cpp_extension replaces these names in TORCH_CUDA_ARCH_LIST.
NAMES = {"Turing": "7.5+PTX", "Ampere": "8.0 8.6+PTX", "Ada": "8.9+PTX", "Hopper": "9.0+PTX"}
NAMES |= {"Ampere+Tegra": "8.7", "Blackwell+Tegra": "11.0", "Blackwell": "10.0 10.3 12.0 12.1+PTX"}


def check_stale(facts: Facts) -> Finding:
    if not facts.source_tree or facts.stamp is None:
        return Finding("stale build", "skipped", "no source tree beside a build")
    if not facts.newer_sources:
        return Finding("stale build", "ok", "the library is newer than its sources")
    first, more = facts.newer_sources[0], len(facts.newer_sources) - 1
    what = f"{first} was changed after the build" + (f", and {more} more files" if more else "")
    return Finding("stale build", "warning", what, rebuild_command())


def check_nvcc(facts: Facts) -> Finding:
    """On PATH, and which; it is for builds only."""
    name, toolkit = "nvcc", facts.toolkit
    if toolkit is None:
        major, minor = (*numbers(facts.torch_cuda), 13, 0)[:2]
        fix = f"sudo apt-get install cuda-toolkit-{major}-{minor}  (from https://developer.nvidia.com/cuda-downloads)"
        if not facts.torch_cuda or not (facts.gpus or facts.driver_cuda):
            return Finding(name, "skipped", "none: the CPU part alone is built")
        if facts.works and not facts.source_tree:
            return Finding(name, "skipped", "none, and an installed library needs none")
        return Finding(name, until_rebuilt(facts), "none: no CUDA kernels can be built", fix)
    if not facts.nvcc:
        what = f"not on PATH; builds take {toolkit.home}/bin/nvcc {toolkit.version}"
        return Finding(name, "warning", what, f"export PATH={toolkit.home}/bin:$PATH")
    return Finding(name, "ok", f"{facts.nvcc} on PATH; builds take the toolkit in {toolkit.home}, {toolkit.version}")


def check_toolkit(facts: Facts) -> Finding:
    """The toolkit against torch's CUDA: torch refuses another major version."""
    name, toolkit = "toolkit", facts.toolkit
    if toolkit is None or not facts.torch_cuda or not toolkit.version:
        return Finding(name, "skipped", "nothing to compare with torch's CUDA")
    what = f"CUDA {toolkit.version} in {toolkit.home}, torch has {facts.torch_cuda}"
    wanted = numbers(facts.torch_cuda)
    if numbers(toolkit.version)[0] == wanted[0]:
        return Finding(name, "ok", what)
    fitting = next((kit for kit in facts.toolkits if numbers(kit.version)[:1] == wanted[:1]), None)
    fix = select(fitting) if fitting else f"sudo apt-get install cuda-toolkit-{wanted[0]}-{wanted[1]}"
    return Finding(name, until_rebuilt(facts), f"{what}: torch builds with the same major version only", fix)


def check_several_toolkits(facts: Facts) -> Finding:
    """Several are no fault while PATH and the build mean the same one."""
    name = "several toolkits"
    complete = [kit for kit in facts.toolkits if kit.complete]
    if len(complete) < 2:
        return Finding(name, "ok", "one" if complete else "none")
    listed = ", ".join(f"{kit.home} ({kit.version or 'unknown'})" for kit in complete)
    on_path = next((kit for kit in complete if facts.nvcc == f"{kit.home}/bin/nvcc"), None)
    if on_path in (None, complete[0]):
        return Finding(name, "ok", f"{listed}; builds take the first")
    fitting = [kit for kit in complete if numbers(kit.version)[:1] == numbers(facts.torch_cuda)[:1]]
    what = f"{listed}; builds take the first, PATH has {facts.nvcc}"
    return Finding(name, "warning", what, select((fitting or complete)[0]))


def select(toolkit: Toolkit) -> str:
    return f"export CUDA_HOME={toolkit.home} PATH={toolkit.home}/bin:$PATH"


def check_headers(facts: Facts) -> Finding:
    """What a build needs besides nvcc: torch's, CUDA's and Python's headers, a C++ compiler, ninja."""
    fixes = {}
    if facts.torch and not facts.has_torch_headers:
        fixes["torch's headers"] = pip("--force-reinstall torch")
    if facts.toolkit and not facts.toolkit.complete:
        fixes[f"cuda_runtime_api.h in {facts.toolkit.home}/include"] = "export CUDA_HOME=<a whole toolkit>"
    if not facts.compiler:
        fixes["a C++ compiler"] = "sudo apt-get install g++"
    verdict = until_rebuilt(facts) if fixes else "ok"
    if not facts.has_python_header:  # without it the direct calls alone are left out
        fixes[facts.python_header] = "sudo apt-get install python3-dev"
    if not facts.has_ninja:
        fixes["ninja (builds take much longer)"] = pip("ninja")
    if fixes:
        verdict = "warning" if verdict == "ok" else verdict
        return Finding("headers", verdict, "missing: " + ", ".join(fixes), "; ".join(fixes.values()))
    here = "Python's" + (", torch's" if facts.torch else "") + (", CUDA's" if facts.toolkit else "")
    return Finding("headers", "ok", f"{here}; {facts.compiler}, ninja")


def check_arch_list(facts: Facts) -> Finding:
    """TORCH_CUDA_ARCH_LIST decides what the next build makes, and torch's builds of other extensions."""
    name = "TORCH_CUDA_ARCH_LIST"
    chosen = facts.environment.get(name, "")
    if not chosen:
        return Finding(name, "ok", "not set: builds are for the GPUs at hand, or for all where there is none")
    parts = [each for part in re.split(r"[ ;]", chosen) for each in NAMES.get(part, part).split()]
    matches = {part: ARCHITECTURE.fullmatch(part) for part in parts}
    wrong = [part for part, match in matches.items() if not match or numbers(match["version"]) < OLDEST_GPU]
    fix = f"unset {name}"
    if wrong or not parts:
        what = f'"{chosen}": CUDA 13 cannot build for {", ".join(wrong)} (the form is "8.6 9.0+PTX")'
        return Finding(name, until_rebuilt(facts), what, fix)
    missing = [gpu for gpu in facts.gpus if not any(runs_on(part, gpu.capability) for part in parts)]
    if missing:
        what = "; ".join('"{}" leaves out {} ({}.{})'.format(chosen, gpu.name, *gpu.capability) for gpu in missing)
        return Finding(name, until_rebuilt(facts), what, fix)
    return Finding(name, "ok", f'"{chosen}"')
