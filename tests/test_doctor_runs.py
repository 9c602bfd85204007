"""The doctor at work: the facts of this machine, the self-test, the output, and the import that fails."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from tests import common
from tests.test_doctor import HEALTHY, NO_LIBRARY, STAMP
from torch_reduce import _facts, _screen, _self_test, doctor
from torch_reduce._facts import Toolkit


def test_the_facts_of_this_machine():
    facts = _facts.gather()
    assert facts.torch == torch.__version__ and facts.stamp == common.build_stamp()
    assert facts.cores >= 1 and facts.memory_bytes > 0 and facts.kernel
    assert len(facts.gpus) == torch.cuda.device_count()
    assert bool(facts.gpus) != bool(facts.cuda_error) or not facts.torch_cuda


def test_toolkits_are_found_once_and_wrappers_come_last(tmp_path, monkeypatch):
    """Two toolkits, one of them by two names, and a folder with no more than a wrapper of nvcc."""
    for name, release in (("a", "13.0"), ("b", "12.8"), ("wrapper", "13.0")):
        (tmp_path / name / "bin").mkdir(parents=True)
        nvcc = tmp_path / name / "bin/nvcc"
        nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.1'\n")
        nvcc.chmod(0o755)
        if name != "wrapper":
            (tmp_path / name / "include").mkdir()
            (tmp_path / name / "include/cuda_runtime_api.h").touch()
    (tmp_path / "again").symlink_to(tmp_path / "a")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "b"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "a"))
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "again"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'wrapper/bin'}:{os.environ['PATH']}")
    ours = [kit for kit in _facts.toolkits() if kit.home.startswith(str(tmp_path))]
    a, b, wrapper = (str(tmp_path / name) for name in ("a", "b", "wrapper"))
    assert ours == [Toolkit(b, "12.8", True), Toolkit(a, "13.0", True), Toolkit(wrapper, "13.0", False)]


def test_sources_that_are_newer_than_the_library(tmp_path, monkeypatch):
    for i, name in enumerate(("csrc/core/tree.h", "csrc/cuda/row.cu", "csrc/DESIGN.md", "setup.py", "_C.so")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1000 + i, 1000 + i))
    monkeypatch.setattr(_facts, "SOURCE_TREE", tmp_path)
    monkeypatch.setattr(_facts, "LIBRARY", tmp_path / "_C.so")
    assert _facts.newer_sources(STAMP) == []
    for name, time in (("csrc/core/tree.h", 2000), ("csrc/cuda/row.cu", 3000), ("csrc/DESIGN.md", 4000)):
        os.utime(tmp_path / name, (time, time))
    assert _facts.newer_sources(STAMP) == ["csrc/cuda/row.cu", "csrc/core/tree.h"]
    assert _facts.newer_sources({**STAMP, "cuda": None}) == ["csrc/core/tree.h"]


def test_the_self_test(device):
    finding = _self_test.test_device(device)
    assert finding.verdict == "ok" and "sum right" in finding.finding and "GB/s" in finding.finding


def test_the_self_test_finds_wrong_sums(monkeypatch):
    results = iter(range(100))
    monkeypatch.setattr(_self_test, "total", lambda x: torch.tensor(float(next(results))))
    finding = _self_test.test_device("cpu")
    assert finding.verdict == "broken"
    for part in ("integers is 0, not", "the same sum twice: 1.0, then 2.0", "cpu gives 1.0, the CPU 3.0"):
        assert part in finding.finding


def test_the_self_test_survives_a_gpu_that_fails(monkeypatch):
    def fail(x):
        raise RuntimeError("CUDA error: no kernel image is available\nmore")

    monkeypatch.setattr(_self_test, "total", fail)
    finding = _self_test.test_device("cpu")
    assert finding.verdict == "broken" and finding.finding.endswith("no kernel image is available") and finding.fix
    assert [each.verdict for each in _self_test.self_test(NO_LIBRARY)] == ["skipped"]


# --- output -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rich", [True, False])
def test_the_report_has_every_finding_and_the_fix_on_a_line_of_its_own(capsys, monkeypatch, rich):
    if rich and not _screen.HAS_RICH:
        pytest.skip("rich is not installed")
    monkeypatch.setattr(_screen, "HAS_RICH", rich)
    facts = replace(HEALTHY, nvcc="", library_error="[bold]not markup[/bold]")
    findings = doctor.examine(facts)
    doctor.report(facts, findings)
    lines = capsys.readouterr().out.splitlines()
    for each in findings:
        assert any(each.name in line and each.verdict in line for line in lines), each
        assert not each.fix or f"    {each.fix}" in lines
    assert any("[bold]not markup[/bold]" in line for line in lines)
    assert lines[-1] == "1 broken, 1 warnings"


@pytest.mark.parametrize("facts, code", [(HEALTHY, 0), (replace(HEALTHY, nvcc=""), 0), (NO_LIBRARY, 1)])
def test_the_exit_code_and_json(capsys, monkeypatch, facts, code):
    """A warning is no failure."""
    monkeypatch.setattr(doctor, "gather", lambda error: facts)
    monkeypatch.setattr(doctor, "self_test", lambda facts: [])
    assert doctor.main(["--json"]) == code
    findings = json.loads(capsys.readouterr().out)
    assert [set(each) for each in findings] == [{"name", "verdict", "finding", "fix"}] * len(doctor.CHECKS)
    assert any(each["verdict"] == "broken" for each in findings) == bool(code)


@pytest.mark.parametrize(
    "argv, original, expected",
    [
        (["-m", "doctor"], ["python", "-m", "torch_reduce", "doctor"], True),
        (["-m", "doctor", "--json"], ["python", "-X", "dev", "-m", "torch_reduce", "doctor", "--json"], True),
        (["-m", "doctor"], ["python", "-mtorch_reduce", "doctor"], True),
        (["-m", "doctor"], ["python", "-m", "other", "doctor"], False),
        (["-m", "ladder"], ["python", "-m", "torch_reduce", "ladder"], False),
        (["/usr/bin/pytest", "doctor"], ["python", "/usr/bin/pytest", "doctor"], False),
        ([""], ["python"], False),
    ],
)
def test_when_an_import_that_fails_is_a_call_of_the_doctor(argv, original, expected):
    assert doctor.asked_for(argv, original) == expected


# --- the package that cannot be imported ------------------------------------------------------------------------------


def run_copy(folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "torch_reduce", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def copy(tmp_path):
    """The package without its library."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(common.ROOT / "torch_reduce", tmp_path / "torch_reduce", ignore=ignored)
    return tmp_path


def finding_of(done, name):
    assert done.returncode == 1, done.stdout + done.stderr
    (finding,) = [each for each in json.loads(done.stdout) if each["name"] == name]
    return finding


def test_a_library_that_is_missing_or_broken_is_a_finding(copy):
    finding = finding_of(run_copy(copy, "doctor", "--json"), "library")
    assert (finding["verdict"], finding["finding"]) == ("broken", "is not built") and "pip install" in finding["fix"]
    (copy / "torch_reduce/_C.so").write_text("not a library")
    finding = finding_of(run_copy(copy, "doctor", "--json"), "library")
    assert finding["verdict"] == "broken" and "cannot be loaded" in finding["finding"]


def test_another_torch_is_a_finding(copy):
    (copy / "torch_reduce/_C.so").touch()
    (copy / "torch_reduce/_build.json").write_text(json.dumps({**common.build_stamp(), "torch": "2.1.0"}))
    finding = finding_of(run_copy(copy, "doctor", "--json"), "library")
    assert finding["verdict"] == "broken" and "for torch 2.1.0" in finding["finding"]


def test_a_torch_that_cannot_be_imported_is_a_finding(copy):
    (copy / "torch.py").write_text("raise ImportError('libcudart.so.13: cannot open shared object file')\n")
    done = run_copy(copy, "doctor", "--json")
    finding = finding_of(done, "torch")
    assert finding["verdict"] == "broken" and "libcudart.so.13" in finding["finding"] and "pip" in finding["fix"]
    assert finding_of(done, "self-test")["verdict"] == "skipped"


def test_a_library_that_lacks_an_operator_is_a_finding(copy):
    """That is what a stale build is like after an update of the sources."""
    (copy / "torch_reduce/_C.so").symlink_to(common.library_path())
    (copy / "torch_reduce/_build.json").write_text(json.dumps(common.build_stamp()))
    with (copy / "torch_reduce/truth.py").open("a") as file:
        file.write("\n_new = _ops.from_tomorrow\n")
    finding = finding_of(run_copy(copy, "doctor", "--json"), "library")
    assert finding["verdict"] == "broken" and finding["fix"]
    assert "is older than the package" in finding["finding"] and "from_tomorrow" in finding["finding"]
    done = run_copy(copy, "ladder")
    assert done.returncode == 1 and "ImportError" in done.stderr and "is older than the package" in done.stderr


def test_other_commands_raise_the_import_error(copy):
    done = run_copy(copy, "ladder")
    assert done.returncode == 1 and "is not built" in done.stderr and not done.stdout
