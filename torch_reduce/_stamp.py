"""Where the library and its stamp are, what the library was built for, and how to build it. Needs no torch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent
LIBRARY = PACKAGE / "_C.so"
STAMP = PACKAGE / "_build.json"
SOURCE_TREE = PACKAGE.parent if (PACKAGE.parent / "setup.py").exists() else None


def rebuild_command(**environment: str) -> str:
    """What to type to build the library for the running torch, with these variables set."""
    settings = "".join(f'{name}="{value}" ' for name, value in environment.items())
    if SOURCE_TREE:
        return f"cd {SOURCE_TREE} && {settings}{sys.executable} setup.py build_ext --inplace"
    install = f"{settings}{sys.executable} -m pip install --no-build-isolation --no-deps --force-reinstall"
    return f"{install} .  (in gpureduce's source folder)"


def minor_version(version: str) -> tuple[str, ...]:
    """("2", "14") of "2.14.1+cu130": the library is good for all torch releases that share it."""
    return tuple(version.split(".")[:2])


def read_stamp() -> dict[str, Any] | None:
    """What the library was built for, or None where it is not built, or not to the end."""
    if not (LIBRARY.exists() and STAMP.exists()):
        return None
    try:
        stamp: dict[str, Any] = json.loads(STAMP.read_text())
    except ValueError:
        return None
    return stamp
