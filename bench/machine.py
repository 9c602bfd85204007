"""What a measurement was made on; every row of every results file carries it."""

from __future__ import annotations

import datetime
import platform
import re
import subprocess
from pathlib import Path

import torch

ROOT = Path(__file__).parent.parent


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return found.group(1).strip() if found else platform.machine()


def commit() -> str:
    """The short hash of the checkout, with + behind it where files differ from it."""
    name = _output("git", "rev-parse", "--short", "HEAD") or "unknown"
    changed = _output("git", "status", "--porcelain", "-uno", "--", ".", ":!bench/results", ":!README.md")
    return name + ("+" if changed else "")


def record(device: str) -> dict[str, str]:
    """GPU or CPU, driver, torch, CUDA, Python, UTC date and commit."""
    on_gpu = device == "cuda"
    driver = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").splitlines() if on_gpu else []
    threads = f" ({torch.get_num_threads()} threads)"
    return {
        "machine": torch.cuda.get_device_name() if on_gpu else _cpu_name() + threads,
        "driver": driver[0] if driver else "",
        "torch": torch.__version__,
        "cuda": torch.version.cuda if on_gpu and torch.version.cuda else "",
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit(),
    }


def slug(machine: dict[str, str]) -> str:
    """The part of a results file's name that says where and on which day it was made."""
    name = re.sub(r"\(R\)|\(TM\)|CPU|@.*", "", machine["machine"])
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + "_" + machine["date"][:10]
