"""Profiling: the calls that run under ncu, its table, what bounds a kernel, and what is said where there is no ncu."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

import torch_reduce
from tests import common
from torch_reduce import _ncu, _profiled, _verdict, profile
from torch_reduce._profiled import Target
from torch_reduce._verdict import MORE, REQUIRED, Kernel, judge

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
NAMED = {
    "us": ("us", "61.95"),
    "dram_percent": ("%", "92.40"),
    "memory_percent": ("%", "92.40"),
    "sm_percent": ("%", "21.07"),
    "occupancy_percent": ("%", "48.31"),
    "read_mb": ("Mbyte", "268.51"),
    "written_mb": ("Kbyte", "4.1"),
    "bank_conflicts": ("", "1,024"),
    "shared_passes": ("", "65,536"),
    "bytes_per_sector": ("", "32"),
    "lanes_per_instruction": ("", "31.2"),
    "registers": ("register/thread", "40"),
    "blocks": ("", "1,024"),
    "threads": ("", "512"),
    "waves": ("", "1.94"),
}
STALLS = {"long_scoreboard": "59.7", "barrier": "3.0", "selected": "1.0", "wait": "n/a"}


def recorded(*changes, missing=()):
    """What ncu --csv --page raw prints: lines of its own, a header, units, and a row a kernel."""
    columns = ["ID", "Kernel Name", *(REQUIRED | MORE).values(), *(STALL.format(reason) for reason in STALLS)]
    units = ["", "", *(NAMED[name][0] for name in REQUIRED | MORE), *["inst"] * len(STALLS)]
    lines = ["==PROF== Connected to process 1 (/usr/bin/python3)", '==PROF== Profiling "row": 0%....100% - 9 passes']
    lines += [",".join(f'"{cell}"' for cell in row) for row in (columns, units)]
    for i, change in enumerate(changes):
        values = {name: "n/a" if name in missing else NAMED[name][1] for name in REQUIRED | MORE} | change
        name = values.pop(
            "name", "void gpureduce::(anonymous namespace)::block_row_kernel<gpureduce::Sum<float, int>>(x)"
        )
        row = [str(i), name, *(values[key] for key in REQUIRED | MORE), *STALLS.values()]
        lines.append(",".join(f'"{cell}"' for cell in row))
    return "\n".join([*lines, "==PROF== Disconnected from process 1"])


def kernels(*changes, missing=()):
    units, rows = _ncu.parse(recorded(*changes, missing=missing))
    return [Kernel.of(units, row) for row in rows]


def test_the_table_is_read_with_its_units():
    kernel, second = kernels({}, {"us": "1,250.5", "name": "walk_kernel(float const*, long)"})
    assert (kernel.name, second.name) == ("block_row_kernel", "walk_kernel")
    assert (kernel.get("us"), second.get("us")) == (61.95, 1250.5)
    assert (kernel.get("read_mb"), kernel.get("written_mb")) == (268.51, pytest.approx(0.0041))
    assert kernel.get("shared_passes") == 65536
    assert kernel.waits == (("long_scoreboard", 59.7), ("barrier", 3.0), ("selected", 1.0))


def test_counters_that_a_gpu_does_not_have_are_left_out():
    (kernel,) = kernels({}, missing=("bank_conflicts", "waves"))
    assert "waves" not in kernel.counters
    names = [name for name, _ in profile.lines_of(kernel)]
    assert "bank conflicts" not in names and "launch" not in names and "duration" in names


@pytest.mark.parametrize("text", ["", "==ERROR== nothing", '"ID","Kernel Name"\n"",""'])
def test_output_without_a_kernel_is_no_table(text):
    assert _ncu.parse(text) is None


@pytest.mark.parametrize(
    "full, name",
    [
        ("void a::(anonymous namespace)::slots_kernel<float>(const float *)", "slots_kernel"),
        ("void at::native::reduce_kernel<512, 1>(at::native::R)", "reduce_kernel"),
        ("void at::native::vectorized<4>(int)", "at::native::vectorized"),
        ("triton_red_fused_sum_0", "triton_red_fused_sum_0"),
    ],
)
def test_a_kernels_name(full, name):
    assert _ncu.kernel_name(full) == name


INPUT_BYTES = 268435456
LOW = {"dram_percent": 20.0, "memory_percent": 25.0, "sm_percent": 30.0, "waves": 4.0}


@pytest.mark.parametrize(
    "counters, waits_for, bound, says",
    [
        ({}, "long_scoreboard", "memory", "DRAM is full, so only fewer bytes help"),
        ({"dram_percent": 70, "memory_percent": 70}, "long_scoreboard", "memory", "16-byte loads.*occupancy 48 %"),
        ({"read_mb": 600.0, "bytes_per_sector": 8}, "", "memory", "2.2 times its input.*neighbouring"),
        ({"dram_percent": 30, "bank_conflicts": 40000}, "", "memory", "61% of the passes.*bank conflicts"),
        ({"dram_percent": 30, "bytes_per_sector": 4}, "", "memory", "4 of the 32 bytes of a sector"),
        ({"dram_percent": 30}, "", "memory", "caches or shared memory"),
        ({"sm_percent": 93.0}, "", "compute", "instructions are the limit"),
        ({"sm_percent": 93.0, "lanes_per_instruction": 8}, "", "compute", "8 of 32 lanes"),
        ({**LOW, "waves": 0.02, "blocks": 2}, "", "latency", "2 blocks fill 0.02 of the GPU"),
        ({**LOW, "lanes_per_instruction": 12}, "barrier", "latency", "12 of 32 lanes"),
        (LOW, "barrier", "latency", "fewer barriers"),
        (LOW, "short_scoreboard", "latency", "shared memory"),
        (LOW, "lg_throttle", "latency", "atomics queue"),
        (LOW, "long_scoreboard", "latency", "warps wait for memory; keep more loads in flight"),
    ],
)
def test_what_bounds_a_kernel(counters, waits_for, bound, says):
    (kernel,) = kernels({})
    kernel = replace(kernel, counters=kernel.counters | counters, waits=((waits_for, 9.0),) if waits_for else ())
    verdict = judge(kernel, INPUT_BYTES)
    assert verdict.bound == bound, verdict
    assert re.search(says, verdict.sentence), verdict
    assert verdict.sentence.startswith("block_row_kernel is bound by") and verdict.sentence.count(".\n") == 0


def test_a_kernel_with_the_required_counters_alone_is_judged():
    (kernel,) = kernels({}, missing=MORE)
    assert judge(replace(kernel, waits=()), INPUT_BYTES).bound == "memory"


# --- the call that runs under ncu -------------------------------------------------------------------------------------

SHAPES = {"dot": (64,), "total_norm": (8, 8)}
ARGUMENTS = {"norm": {"ord": 1}}


@pytest.mark.parametrize("op", _profiled.operators())
def test_every_operator_can_be_called(op, device):
    dims = () if op in SHAPES else (1,)
    target = Target(op, SHAPES.get(op, (8, 64)), dims, "float32", ARGUMENTS.get(op, {}))
    assert Target.decoded(target.encoded()) == target
    assert _profiled.call(target, device)() is not None
    assert target.bytes_in == 4 * (64 if op in ("dot", "total_norm") else 512) * (2 if op in ("dot", "vecdot") else 1)


@pytest.mark.parametrize("dtype", common.DTYPES, ids=common.name)
def test_inputs_of_every_dtype(dtype):
    x = _profiled.make_input(Target("sum", (3, 5), (), common.name(dtype)), "cpu")
    assert x.dtype == dtype and x.shape == (3, 5)


def test_operators_are_those_of_the_package():
    assert set(_profiled.operators()) < set(torch_reduce.__all__) and "sum" in _profiled.operators()


def test_arguments():
    target, as_json = profile.parse(
        ["norm", "--shape", "8,16", "--dim", "0,-1", "--dtype", "float64", "--with", "ord=3"]
    )
    assert target == Target("norm", (8, 16), (0, -1), "float64", {"ord": 3}) and not as_json
    assert str(target) == "norm of 8x16 float64 over 0,-1 ord=3"
    target, as_json = profile.parse(["sum", "--n", "100", "--json", "--with", "accumulate=double"])
    assert target == Target("sum", (100,), (), "float32", {"accumulate": "double"}) and as_json


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["total"], "no operator 'total'; there are all, amax"),
        (["sum"], "--shape or --n"),
        (["sum", "--n", "3", "--shape", "3"], "--shape or --n"),
        (["sum", "--n", "3", "--dtype", "float31"], "no dtype 'float31'"),
        (["sum", "--shape", "a,b"], "--shape"),
    ],
)
def test_wrong_arguments_are_named(arguments, says, capsys):
    with pytest.raises(SystemExit) as exit:
        profile.parse(arguments)
    assert exit.value.code == 2 and says in capsys.readouterr().err


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """A stand-in for ncu on PATH that prints what it is given, and a torch that has a GPU."""

    def install(text, code=0):
        (tmp_path / "says").write_text(text)
        path = tmp_path / "ncu"
        path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\ncat {tmp_path}/says\nexit {code}\n')
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        return tmp_path / "asked"

    return install


def test_the_report(ncu, capsys):
    asked = ncu(recorded({"us": "3.0", "name": "fold_kernel(x)"}, {}))
    assert profile.main(["sum", "--shape", "8192,8192", "--dim", "1"]) == 0
    out = capsys.readouterr().out
    for part in (
        "block_row_kernel",
        "61.95 us",
        "92.4 % of peak",
        "1,024 in 65,536",
        "268.510 MB",
        "2 kernels, 64.95 us",
    ):
        assert part in out
    assert out.splitlines()[-1].startswith("block_row_kernel is bound by memory")
    command = asked.read_text()
    assert "--profile-from-start off" in command and "torch_reduce._profiled" in command and "8192, 8192" in command


def test_json(ncu, capsys):
    ncu(recorded({}))
    assert profile.main(["sum", "--n", "67108864", "--dtype", "float32", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["op"], found["shape"], found["bound"]) == ("sum", [67108864], "memory")
    assert found["kernels"][0]["dram_percent"] == 92.4 and found["sentence"]


@pytest.mark.parametrize(
    "text, says",
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("==ERROR== something else", "something else"),
    ],
)
def test_a_profiler_that_fails_says_why(ncu, capsys, text, says):
    ncu(text, 1)
    assert profile.main(["sum", "--n", "10"]) == 1
    assert says in capsys.readouterr().err


def test_an_ncu_that_does_not_know_a_metric_is_asked_for_fewer(ncu, capsys):
    asked = ncu("==ERROR== Failed to find metric smsp__no_such", 1)
    assert profile.main(["sum", "--n", "10"]) == 1
    first, second = asked.read_text().splitlines()
    assert MORE["waves"] in first and MORE["waves"] not in second and REQUIRED["us"] in second


def test_without_ncu_it_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(_ncu, "find", lambda: None)
    assert profile.main(["sum", "--n", "10"]) == 1
    assert "cuda-nsight-compute" in capsys.readouterr().err


@pytest.mark.cuda
@pytest.mark.slow
def test_a_real_profile():
    if _ncu.find() is None:
        pytest.skip("ncu (Nsight Compute) is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "torch_reduce", "profile", "sum", "--n", str(1 << 26), "--json"],
        cwd=common.ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if "ERR_NVGPUCTRPERM" in done.stderr or "LibraryNotLoaded" in done.stderr:
        pytest.skip("the GPU's counters cannot be read here")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (kernel,) = found["kernels"]
    assert found["bound"] == "memory" and kernel["name"].endswith("_kernel")
    assert 0.9 < kernel["read_mb"] * 1e6 / (4 << 26) < 1.1
    assert set(REQUIRED | MORE) <= set(kernel), "a metric that this ncu does not know"


def test_the_metrics_are_named_once():
    assert not set(REQUIRED) & set(MORE) and len({*REQUIRED.values(), *MORE.values()}) == len(REQUIRED) + len(MORE)
    assert set(NAMED) == set(_verdict.REQUIRED | _verdict.MORE)
