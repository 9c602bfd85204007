"""What a check of the doctor gives, and what the checks share."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Literal

from ._facts import Facts
from ._stamp import rebuild_command

Verdict = Literal["ok", "warning", "broken", "skipped"]

OLDEST_GPU = (7, 5)  # that CUDA 13 compiles for
ARCHITECTURE = re.compile(r"(?P<version>\d+\.\d)(?P<only>[af]?)(?P<ptx>\+PTX)?")


@dataclass(frozen=True)
class Finding:
    """What a check found, whether that is a fault, and what to type against it."""

    name: str
    verdict: Verdict
    finding: str
    fix: str = ""


def pip(arguments: str) -> str:
    """What to type to install something for this Python."""
    return f"{sys.executable} -m pip install {arguments}"


def numbers(version: str) -> tuple[int, ...]:
    """(2, 14) of "2.14.1+cu130"."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def until_rebuilt(facts: Facts) -> Verdict:
    """The verdict on what only a build needs: a fault where there is no good build yet."""
    return "warning" if facts.works else "broken"


def rebuild(facts: Facts) -> str:
    """The command for a build with CUDA kernels for the GPUs at hand."""
    present = " ".join(sorted({"{}.{}".format(*gpu.capability) for gpu in facts.gpus}))
    return rebuild_command(GPUREDUCE_CUDA="1", **({"TORCH_CUDA_ARCH_LIST": present} if present else {}))


def runs_on(architecture: str, capability: tuple[int, int]) -> bool:
    """Whether code for "9.0", "9.0a" or "8.6+PTX" runs on a GPU: machine code on its own major version only."""
    found = ARCHITECTURE.fullmatch(architecture)
    if found is None:
        return False
    version = numbers(found["version"])
    if found["only"]:
        return capability == version
    return capability >= version and (bool(found["ptx"]) or capability[0] == version[0])
