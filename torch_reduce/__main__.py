"""python -m torch_reduce ladder | doctor | profile: see --help of each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from . import doctor, ladder_command, profile

COMMANDS: dict[str, tuple[Callable[[Sequence[str]], int], str]] = {
    "ladder": (ladder_command.main, "a sum from its first kernel to the production one: what each step brings"),
    "doctor": (doctor.main, "examine the environment, and say what to type against what is wrong"),
    "profile": (profile.main, "what bounds the kernel of an operator and a shape, by Nsight Compute"),
}


def usage() -> str:
    lines = [f"  {name:8} {what}" for name, (_, what) in COMMANDS.items()]
    return "\n".join(["usage: python -m torch_reduce COMMAND [--help]", "", *lines])


def main(arguments: Sequence[str]) -> int:
    """Runs a command; its exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage())
        return 0 if arguments else 2
    if arguments[0] not in COMMANDS:
        print(f"torch_reduce: no command {arguments[0]!r}\n{usage()}", file=sys.stderr)
        return 2
    return COMMANDS[arguments[0]][0](arguments[1:])


def run() -> int:
    """The command of this process, whose reader (head, less) may go away before the end."""
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(run())
