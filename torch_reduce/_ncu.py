"""Nsight Compute from Python: finding ncu, running a command under it, and reading its table."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

STALLS = r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio"
ALL_STALLS = "regex:" + STALLS.replace(r"(\w+)", ".*")  # as a metric to ask for
SCALE = {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3}  # to us
SCALE |= {"byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1.0, "Gbyte": 1e3}  # to MB

HOW_TO_GET_IT = """ncu, Nsight Compute's command line, is not found on PATH or in a CUDA toolkit. It comes with the
whole toolkit, or alone:
    sudo apt-get install cuda-nsight-compute-13-0    (from https://developer.nvidia.com/cuda-downloads)
    https://developer.nvidia.com/nsight-compute      (installers)
then put the folder of ncu on PATH."""
NO_PERMISSION = """the driver lets only administrators read the GPU's counters (ERR_NVGPUCTRPERM). Run this as root, or:
    echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf
and reboot; in a container: docker run --cap-add=SYS_ADMIN; under WSL2: Windows' NVIDIA Control Panel, Developer,
Manage GPU Performance Counters. https://developer.nvidia.com/ERR_NVGPUCTRPERM"""

Row = Mapping[str, str]


class ProfilerError(RuntimeError):
    """ncu gave no table, and why."""


def find() -> str | None:
    """The path of ncu: on PATH, in a toolkit, or where its own package puts it, the newest first."""
    homes = [home for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    installed = sorted(Path("/opt/nvidia/nsight-compute").glob("*/ncu"), reverse=True)
    places = [*(Path(home, "bin/ncu") for home in (*homes, "/usr/local/cuda")), *installed]
    return shutil.which("ncu") or next((str(path) for path in places if path.exists()), None)


def measure(
    ncu: str, metrics: Sequence[str], command: Sequence[str], folder: Path | None = None
) -> tuple[Row, list[Row]]:
    """The units and a row a kernel, of the kernels between cudaProfilerStart and Stop of a command.

    Caches are emptied before each kernel, ncu's default; clocks are left as they are.
    """
    options = ["--csv", "--page", "raw", "--clock-control", "none", "--profile-from-start", "off"]
    full = [ncu, *options, "--metrics", ",".join(metrics), *command]
    environment = {**os.environ, "LC_ALL": "C"}  # its numbers have a locale
    done = subprocess.run(full, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    table = parse(done.stdout)
    if table is not None:
        return table
    said = f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    if "ERR_NVGPUCTRPERM" in said:
        raise ProfilerError(NO_PERMISSION)
    raise ProfilerError(f"ncu gave no table (exit code {done.returncode}):\n{said}")


def parse(text: str) -> tuple[Row, list[Row]] | None:
    """The units and the rows of what ncu prints, or None where it has no table with a kernel."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return None
    table: list[Row] = list(csv.DictReader(line for line in lines[start:] if not line.startswith("==")))
    return (table[0], table[1:]) if len(table) > 1 else None


def value(units: Row, row: Row, metric: str) -> float | None:
    """A metric in us, MB, percent or as a number; None where this GPU or this ncu does not have it."""
    text = row.get(metric, "").replace(",", "")
    try:
        return float(text) * SCALE.get(units.get(metric, ""), 1.0)
    except ValueError:  # n/a
        return None


def waits(row: Row) -> list[tuple[str, float]]:
    """What a warp waits for and how many cycles an instruction, the longest first."""
    found = [(m[1], float(row[key] or 0)) for key in row if (m := re.fullmatch(STALLS, key)) and row[key] != "n/a"]
    return sorted(found, key=lambda wait: -wait[1])


def kernel_name(full: str) -> str:
    """The name without arguments: that of ours, which end with _kernel, or else all before the brackets."""
    found = re.search(r"(\w+_kernel)", full) or re.match(r"(?:void\s+)?([\w:~]+)", full)
    return found[1] if found else full[:60]
