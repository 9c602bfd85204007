"""exp and log of csrc/core/elementary.h: their errors, and the same bits with and without the instruction for fma."""

import ast
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

import pytest

from tests import common

SOURCE = common.ROOT / "tests/cpp/elementary.cpp"
COMPILER = shlex.split(os.environ.get("CXX") or "c++")

# The largest errors that the header states, in units in the last place; of brief_decay, in units of its bound.
BOUNDS = {
    "exponential float": 0.91,
    "exponential double": 0.90,
    "decay float": 0.91,
    "decay double": 0.90,
    "brief_decay float": 1,
    "logarithm float": 0.50,
    "logarithm double": 0.85,
}


def host_flags():
    """Those that setup.py builds the library with."""
    lists = re.findall(r"^HOST_FLAGS \+?= (\[.*?\])", (common.ROOT / "setup.py").read_text(), re.M)
    flags = [flag for found in lists for flag in ast.literal_eval(found)]
    assert "-ffp-contract=off" in flags and "-fno-trapping-math" in flags
    return flags


@functools.cache
def measured(*options, arguments=()):
    """What the program prints, built with the options: function -> points, error, at, steps, hash."""
    if shutil.which(COMPILER[0]) is None:
        pytest.skip(f"no C++ compiler: {COMPILER[0]} is not found")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "elementary")
        build = [*COMPILER, "-std=c++20", *host_flags(), *options, str(SOURCE), "-o", str(program)]
        compiled = subprocess.run(build, capture_output=True, text=True, timeout=120)
        assert compiled.returncode == 0, compiled.stderr
        run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=True)
        return json.loads(run.stdout)


@pytest.mark.parametrize("function", BOUNDS)
def test_errors(function):
    found = measured()[function]
    assert found["points"] >= 10**7
    assert found["error"] <= BOUNDS[function], found
    assert found["steps"] <= 1, found  # from the correctly rounded result


def test_every_function_has_a_bound():
    assert measured().keys() == BOUNDS.keys()


def test_the_instruction_for_fma_changes_no_bit():
    if not {"fma", "avx2"} <= set(pathlib.Path("/proc/cpuinfo").read_text().split()):
        pytest.skip("the processor has no fma of x86")
    without, with_it = measured(), measured("-mfma", "-mavx2", arguments=("hashes",))
    assert {name: one["hash"] for name, one in with_it.items()} == {name: one["hash"] for name, one in without.items()}
