"""Loads the shared libraries, after a check that they were built for the torch, and the Python, that is running."""

from __future__ import annotations

import importlib
from importlib.machinery import EXTENSION_SUFFIXES

import torch
from torch._ops import OpOverloadPacket

from ._stamp import LIBRARY, minor_version, read_stamp, rebuild_command

HINT = "python -m torch_reduce doctor says what else is wrong, if anything is."


def load_library() -> None:
    """Registers the operators with torch. Harmless when they are there already."""
    built = read_stamp()
    if built is None:
        raise ImportError(f"torch_reduce: {LIBRARY} is not built. Build it with:\n    {rebuild_command()}\n{HINT}")
    what = f"torch_reduce: {LIBRARY.name} was built for torch {built['torch']}, CUDA {built['cuda']}"
    running = f"torch {torch.__version__}, CUDA {torch.version.cuda} is running"
    if minor_version(built["torch"]) != minor_version(torch.__version__):
        raise ImportError(f"{what}, but {running}. Rebuild it with:\n    {rebuild_command()}\n{HINT}")
    try:
        torch.ops.load_library(str(LIBRARY))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ImportError(
            f"{what}, and cannot be loaded: {error}\n{running}. Rebuild it with:\n    {rebuild_command()}\n{HINT}"
        ) from error


def direct_class(packet: OpOverloadPacket) -> type[OpOverloadPacket]:
    """A class of packets whose calls go to the dispatcher directly, if that was built for this Python.

    For operators with sum's signature. Else one whose calls at least spare the packet's frame of Python, which serves
    operators that take TorchScript classes and does nothing for others.
    """
    if (read_stamp() or {}).get("python") == EXTENSION_SUFFIXES[0]:
        try:
            eager = importlib.import_module("._eager", __package__)
            direct: type[OpOverloadPacket] | None = eager.direct_class(OpOverloadPacket, packet.__name__)
            if direct is not None:
                return direct
        except ImportError:
            pass
    methods = {"__call__": packet._op, "__module__": OpOverloadPacket.__module__}
    return type(OpOverloadPacket.__name__, (OpOverloadPacket,), methods)


def call_directly(packet: OpOverloadPacket) -> None:
    """Makes calls of an operator by its name as fast as the dispatcher is. All else of the packet stays as it is."""
    if type(packet) is OpOverloadPacket and not packet._has_torchbind_op_overload:
        packet.__class__ = direct_class(packet)
