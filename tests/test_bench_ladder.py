"""The ladder's benchmarks on the CPU: rows, what they are said to show, and the plot, from times that are made up."""

import functools

import pytest
import torch

import torch_reduce
from bench import bench_ladder, harness, report, results, strategies
from tests.test_bench import RECORD

LIMIT = 4.6e6  # bytes per us


def timing(us):
    return harness.Timing(us, us, us, us, 2)


@pytest.fixture
def sum_rows():
    names = [*strategies.rungs_of("sum"), "torch", "cub"]
    return [
        row
        for n in bench_ladder.SIZES
        for row in bench_ladder.sum_rows(n, {name: timing(4 * n / 1e6 + i) for i, name in enumerate(names)}, LIMIT)
    ]


def test_rows_of_sums(sum_rows, capsys):
    rows = {(row["n"], row["rung"]): row for row in sum_rows}
    assert len(rows) == len(sum_rows) and {row["kind"] for row in sum_rows} == {"sum", "rival"}
    first = rows[1 << 28, "naive"]
    assert first["us"] == pytest.approx(2**30 / 1e6) and first["gb_s"] == pytest.approx(1000)
    assert first["percent_of_limit"] == pytest.approx(100 * 1000 / 4600)
    assert rows[1 << 20, "production"]["x_of_production"] == 1
    bench_ladder.print_sums(sum_rows[:3])
    assert "% of the limit" in capsys.readouterr().out


def test_plot(sum_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "newest", functools.partial(results.newest, directory=tmp_path))
    assert report.LADDER_PLOT not in report.plots()
    results.save("ladder", sum_rows, RECORD, tmp_path)
    picture = report.plots()[report.LADDER_PLOT]()
    assert picture.startswith("<?xml") and ">256M floats<" in picture and ">vec4_serial:8<" in picture
    assert picture == report.plots()[report.LADDER_PLOT]()


def test_integers_show_what_is_read(monkeypatch):
    monkeypatch.setattr(
        torch, "randint", lambda *a, _randint=torch.randint, **k: _randint(*a, **{**k, "device": "cpu"})
    )
    x = strategies.integers(1 << 20, largest=bench_ladder.LARGEST)
    assert x.abs().max() <= bench_ladder.LARGEST and x.cumsum(0, dtype=torch.float64).abs().max() < 1 << 24
    assert 4 * x[::4].sum() != x.sum()


def test_statements():
    cases = {"map": ["torch.add"], "tile": ["torch.matmul"], "columns": ["torch.sum", "gpureduce.sum"], "adaptive": []}
    cases["pipeline"] = ["copy, then torch.sum", "copy alone"]
    assert set(cases) == {rung.kind for rung in torch_reduce.ladder.rungs()} - {"sum"}
    rows = []
    for kind, rivals in cases.items():
        x = torch.ones(4)
        case = strategies.Case(f"{kind} 4", kind, (x,), dict.fromkeys(rivals, torch.add), 16, 8)
        times = {name: timing(100.0 - i) for i, name in enumerate(case.calls)}
        rows += strategies.show(strategies.rows_of(case, times))
    lines = strategies.statements(rows)
    assert "map 4: map:1 takes 1.10 x the time of torch.add" in lines
    assert any(line.startswith("tile 4: matmul takes") for line in lines)
    assert "pipeline 4: pipeline:2 hides 25 % of the 4 us that pipeline:1 takes beside the copy" in lines
    assert {line.split(" ")[0] for line in lines} == set(cases)


def test_uneven_rows():
    lengths = strategies.uneven_lengths(10_000)
    assert lengths.max() == 1 << 22 and (lengths < 64).float().mean() > 0.99
