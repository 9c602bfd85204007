"""python -m torch_reduce: the commands, the ladder's table, file and plot, with a GPU and without."""

import csv
import dataclasses
import re
import subprocess
import sys
import types

import pytest
import torch

from tests import common
from torch_reduce import __main__ as command_line
from torch_reduce import _ladder_rows, _ladder_timing, _screen, ladder, ladder_command, profile
from torch_reduce._ladder_rows import Speed

CONDITIONS = {"read_limit_gb_s": 4690.0, "machine": "NVIDIA H200", "driver": "580.1", "torch": "2.11.0"}
CONDITIONS |= {"cuda": "13.0", "date": "2026-11-30T08:50:55Z"}
US = {"naive": 240.0, "sequential": 120.0, "serial:1": 130.0, "serial:4": 60.0, "float4": 50.0, "production": 20.0}
SPEEDS = [Speed(rung, 1 << 24, us, **CONDITIONS) for rung, us in US.items()]


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "torch_reduce", *arguments], cwd=common.ROOT, capture_output=True, text=True, timeout=300
    )


def rung(name, kind="sum", parameters=()):
    calls = [f"{name}:{n}" for n in parameters] or [name]
    texts = {what: f"the {what} of {name}" for what in ("idea", "cost", "limits")}
    return types.SimpleNamespace(name=name, kind=kind, parameters=parameters, calls=calls, **texts)


@pytest.fixture
def fake_ladder(monkeypatch):
    """Fewer rungs than the real one has."""
    described = [rung("naive"), rung("sequential"), rung("serial", parameters=(1, 4)), rung("float4")]
    described += [rung("production"), rung("map", "map", (2,)), rung("tile", "tile")]
    monkeypatch.setattr(ladder, "rungs", lambda: described)
    return ladder


# --- the commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, code, says", [((), 2, "usage"), (("--help",), 0, "doctor"), (("fly",), 2, "'fly'")]
)
def test_usage(arguments, code, says, capsys):
    assert command_line.main(arguments) == code
    assert says in "".join(capsys.readouterr())


@pytest.mark.parametrize("command", command_line.COMMANDS)
def test_every_command_has_a_help(command, capsys):
    with pytest.raises(SystemExit) as exit:
        command_line.main([command, "--help"])
    assert exit.value.code == 0 and f"python -m torch_reduce {command}" in capsys.readouterr().out


def test_as_a_process():
    done = run("doctor")
    assert "self-test on cpu" in done.stdout and done.returncode in (0, 1), done.stderr
    assert run("nothing").returncode == 2


# --- the rows of the ladder -------------------------------------------------------------------------------------------


def test_a_rung_is_compared_with_the_best_before_it():
    """At the best of its parameters; a rung that is slower than one before it is a detour."""
    assert _ladder_rows.factors(SPEEDS) == [None, 2.0, 120 / 130, 2.0, 60 / 50, 50 / 20]
    detour = dataclasses.replace(SPEEDS[0], rung="atomic_per_element", us=9000.0)
    assert _ladder_rows.factors([*SPEEDS[:2], detour, *SPEEDS[2:]]) == [None, 2.0, 120 / 9000, 120 / 130, 2, 1.2, 2.5]


def test_sizes_are_not_compared_with_each_other():
    smaller = [dataclasses.replace(speed, n=1000, us=speed.us / 8) for speed in SPEEDS]
    assert _ladder_rows.factors([*smaller, *SPEEDS]) == _ladder_rows.factors(SPEEDS) * 2
    assert _ladder_rows.of_size([*smaller, *SPEEDS], 2000) == smaller
    assert _ladder_rows.of_size([*smaller, *SPEEDS], 1 << 20) == SPEEDS


def test_speed_and_share():
    speed = SPEEDS[-1]
    assert speed.gb_s == pytest.approx(3355.4, abs=0.1) and speed.percent == pytest.approx(71.5, abs=0.1)
    assert "NVIDIA H200, 2026-11-30" in speed.conditions and "read limit 4,690 GB/s" in speed.conditions


@pytest.mark.parametrize("percent, bar", [(0, ""), (50, "█" * 12), (100, "█" * 24), (250, "█" * 24), (1.04, "▎")])
def test_bars(percent, bar):
    assert _ladder_rows.bar(percent) == bar


def test_a_file_has_the_rows_and_what_follows_from_them(tmp_path):
    path = tmp_path / "ladder.csv"
    assert _ladder_rows.read(path) == []
    path.write_text(_ladder_rows.csv_text(SPEEDS))
    assert _ladder_rows.read(path) == SPEEDS
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["x_before"] for row in rows] == ["", "2.000", "0.923", "2.000", "1.200", "2.500"]
    assert rows[0]["gb_s"] == "279.6" and rows[-1]["percent_of_read_limit"] == "71.5"


def test_the_plot_is_the_same_each_time():
    pytest.importorskip("matplotlib")
    drawing = _ladder_rows.svg(SPEEDS)
    assert drawing == _ladder_rows.svg(SPEEDS)
    for part in ("<svg", "serial:4", "20.0 us", "a pure read: 4,690 GB/s", "16,777,216 floats on NVIDIA H200"):
        assert part in drawing


# --- the ladder -------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_gpu(monkeypatch, tmp_path):
    """And a file of results that was shipped."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(_ladder_rows, "H200", tmp_path / "shipped.csv")
    return tmp_path / "shipped.csv"


@pytest.mark.parametrize("rich", [True, False])
def test_without_a_gpu_the_rungs_are_explained_and_the_results_shown(fake_ladder, no_gpu, capsys, monkeypatch, rich):
    if rich and not _screen.HAS_RICH:
        pytest.skip("rich is not installed")
    monkeypatch.setattr(_screen, "HAS_RICH", rich)
    no_gpu.write_text(_ladder_rows.csv_text(SPEEDS))
    assert ladder_command.main([]) == 0
    out = capsys.readouterr().out
    for each in fake_ladder.rungs():
        for what in ("idea", "cost", "limits"):
            assert f"{what + ':':8}the {what} of {each.name}" in out
    assert "There is no GPU here" in out and "16,777,216 float32, 67.1 MB; NVIDIA H200" in out
    line = next(line for line in out.splitlines() if line.strip().startswith("float4") and "█" in line)
    assert line.split()[:5] == ["float4", "50.00", "1,342", "28.6", "1.20"]


def test_without_a_gpu_files_are_made_of_the_shipped_results(fake_ladder, no_gpu, tmp_path):
    pytest.importorskip("matplotlib")
    no_gpu.write_text(_ladder_rows.csv_text(SPEEDS))
    assert ladder_command.main(["--csv", str(tmp_path / "a.csv"), "--plot", str(tmp_path / "a.svg")]) == 0
    assert _ladder_rows.read(tmp_path / "a.csv") == SPEEDS
    assert (tmp_path / "a.svg").read_text() == _ladder_rows.svg(SPEEDS)


def test_without_results_it_says_so(fake_ladder, no_gpu, capsys, tmp_path):
    assert ladder_command.main([]) == 0
    assert "No results are recorded yet." in capsys.readouterr().out
    assert ladder_command.main(["--csv", str(tmp_path / "a.csv")]) == 1


def test_a_build_without_cuda_says_so(fake_ladder, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(ladder_command, "read_stamp", lambda: {"cuda": None})
    assert "no CUDA kernels" in ladder_command.why_not_here()


def test_with_a_gpu_every_rung_is_timed_with_progress(fake_ladder, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(ladder_command, "why_not_here", lambda: "")
    monkeypatch.setattr(_ladder_timing, "measure", lambda n, texts: iter([dataclasses.replace(s, n=n) for s in SPEEDS]))
    assert ladder_command.main(["--n", "1000", "--csv", str(tmp_path / "a.csv")]) == 0
    said = capsys.readouterr()
    assert "sum of 1,000 float32" in said.out and "the idea of" not in said.out
    assert "rung 1 of 6: naive" in said.err and "rung 6 of 6: production" in said.err
    assert [speed.rung for speed in _ladder_rows.read(tmp_path / "a.csv")] == list(US)
    ladder_command.main(["--explain"])
    assert "the idea of naive" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, says",
    [(["--n", "0"], "not positive"), (["--n", "x"], "--n"), (["--csv", "/no/where.csv"], "no folder")],
)
def test_wrong_arguments_are_named(arguments, says, capsys):
    with pytest.raises(SystemExit) as exit:
        ladder_command.main(arguments)
    assert exit.value.code == 2 and says in capsys.readouterr().err


def test_a_plot_without_matplotlib_is_refused_before_anything_is_measured(capsys, monkeypatch):
    monkeypatch.setattr(ladder_command.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        ladder_command.main(["--plot", "ladder.svg"])
    assert "pip install matplotlib" in capsys.readouterr().err


def test_a_rung_can_be_profiled(fake_ladder, capsys):
    target, _ = profile.parse(["ladder:serial:4", "--n", "1000"])
    assert (target.op, target.shape, target.bytes_in) == ("ladder:serial:4", (1000,), 4000)
    for wrong in ("ladder:serial", "ladder:nothing"):
        with pytest.raises(SystemExit):
            profile.parse([wrong, "--n", "1000"])
        assert "there are naive, sequential, serial:1" in capsys.readouterr().err


# --- the real ladder --------------------------------------------------------------------------------------------------


def test_the_real_rungs_are_explained(capsys):
    ladder_command.explain()
    out = capsys.readouterr().out
    assert all(each.name in out for each in ladder.rungs())


def test_every_rung_of_the_sum_has_its_place_in_the_document():
    text = (common.ROOT / "docs/ladder.md").read_text()
    names = [each.name for each in ladder.rungs() if each.kind == "sum"]
    assert re.findall(r"^### (\w+)$", text, re.M) == names
    assert re.findall(r"<!-- begin (\w+) -->", text)[1 : len(names) + 1] == names
    for each in ladder.rungs():
        assert f"`{each.name}`" in text or each.name in names, each.name


@pytest.mark.cuda
def test_the_real_ladder(tmp_path):
    done = run("ladder", "--n", "100003", "--csv", str(tmp_path / "a.csv"))
    assert done.returncode == 0, done.stderr
    speeds = _ladder_rows.read(tmp_path / "a.csv")
    assert [speed.rung for speed in speeds] == [t for each in ladder.rungs() if each.kind == "sum" for t in each.calls]
    assert all(0.1 < speed.us < 1e5 for speed in speeds) and speeds[0].machine == torch.cuda.get_device_name()
