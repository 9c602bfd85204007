"""python -m torch_reduce doctor: what is wrong with the environment, and what to type against it.

It runs where the package itself cannot be imported, which is when it is needed most: ``torch_reduce/__init__.py`` then
calls :func:`on_failed_import`. So no module that this one imports may need torch.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict

from ._checks_building import (
    check_arch_list,
    check_headers,
    check_nvcc,
    check_several_toolkits,
    check_stale,
    check_toolkit,
)
from ._checks_running import check_driver, check_gpus, check_library, check_memory, check_torch, check_wsl
from ._facts import Facts, gather, in_words
from ._finding import Finding
from ._screen import print_table
from ._self_test import self_test
from ._stamp import LIBRARY, rebuild_command

CHECKS: tuple[Callable[[Facts], Finding], ...] = (
    check_torch,
    check_library,
    check_stale,
    check_driver,
    check_gpus,
    check_nvcc,
    check_toolkit,
    check_several_toolkits,
    check_headers,
    check_arch_list,
    check_wsl,
    check_memory,
)


def examine(facts: Facts) -> list[Finding]:
    """What every check finds, without the self-test."""
    return [check(facts) for check in CHECKS]


def report(facts: Facts, findings: Sequence[Finding]) -> None:
    """A table of the findings; below it the fixes, each on a line of its own, to be copied."""
    print(in_words(facts))
    print_table(["check", "verdict", "finding"], [[each.name, each.verdict, each.finding] for each in findings])
    for each in findings:
        if each.fix and each.verdict in ("warning", "broken"):
            print(f"{each.verdict}: {each.name}\n    {each.fix}")
    broken = sum(each.verdict == "broken" for each in findings)
    warnings = sum(each.verdict == "warning" for each in findings)
    print(f"{broken} broken, {warnings} warnings" if broken or warnings else "all is well")


def main(arguments: Sequence[str], import_error: Exception | None = None) -> int:
    """Runs all checks and prints what they find: 1 if something is broken, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m torch_reduce doctor",
        description="Examines the environment: each check with its finding, its verdict and the fix. "
        "Exit code 1 if something is broken.",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    options = parser.parse_args(arguments)
    facts = gather(str(import_error or ""))
    findings = [*examine(facts), *self_test(facts)]
    if options.json:
        print(json.dumps([asdict(each) for each in findings], indent=4))
    else:
        report(facts, findings)
    return int(any(each.verdict == "broken" for each in findings))


def on_failed_import(error: Exception) -> None:
    """What comes of a failed import of the package: where this process is to run the doctor, it does, and exits.

    Elsewhere nothing, but for an operator that is missing in the library: that error says how to build it.
    """
    missing = not isinstance(error, ImportError) and "gpureduce" in str(error)
    why = f"torch_reduce: {LIBRARY} is older than the package: {error}\nRebuild it with:\n    {rebuild_command()}"
    told = ImportError(why) if missing else error
    if asked_for(sys.argv, sys.orig_argv):
        sys.exit(main(sys.argv[2:], told))
    if missing:
        raise told from error


def asked_for(argv: Sequence[str], original: Sequence[str]) -> bool:
    """Whether a process of these arguments imports the package in order to run its doctor.

    While Python looks for the module of -m, it sets argv[0] to "-m"; the module's own name is in the original
    arguments alone, before those that are passed on.
    """
    if argv[:2] != ["-m", "doctor"]:
        return False
    module = original[len(original) - len(argv)]
    return module.removeprefix("-m") in ("torch_reduce", "torch_reduce.__main__")
