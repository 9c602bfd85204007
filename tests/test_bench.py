"""The benchmarks' own logic, on the CPU: cases, floors, summaries, the accuracy data, tables and plots from rows."""

import dataclasses
import functools
import math
import random
import subprocess
import sys

import pytest
import torch

from bench import bench_accuracy, cases, counters, harness, operators, plot, providers, reference, report, results
from bench.device import Device
from tests import common

RECORD = {"machine": "NVIDIA H200", "driver": "1", "torch": "2.11.0", "cuda": "13.0", "python": "3.12.3"}
RECORD |= {"date": "2026-01-01T00:00:00Z", "commit": "abcdef"}


def device_rows(suite, providers):
    """Rows as bench_reduce writes them, with times of 1 to 2 floors."""
    generator = random.Random(0)
    for case in cases.load(suite):
        floor = harness.floor_us(case, 4.5e3)
        for provider in providers:
            if provider == "cub" and (case.dim is not None or suite == "ops"):
                continue
            us = floor * generator.uniform(1, 2)
            row = {
                "suite": suite,
                "case": case.name,
                "from": case.source,
                "op": case.op,
                "dtype": common.name(case.dtype),
            }
            row |= {"bytes_in": case.bytes_in, "provider": provider, "us": us, "gb_s": case.bytes / us / 1e3}
            yield row | {"floor_us": floor, "x_floor": us / floor, "read_limit_gb_s": 4500.0}


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Saves rows where the report then looks for them, and for no others."""
    monkeypatch.setattr(results, "newest", functools.partial(results.newest, directory=tmp_path))
    return lambda kind, rows: results.read(results.save(kind, list(rows), RECORD, tmp_path))


# --- cases


@pytest.mark.parametrize("suite", cases.SUITES)
def test_cases_are_distinct_and_valid(suite):
    chosen = cases.load(suite)
    assert len({case.name for case in chosen}) == len(chosen) > 0
    for case in chosen:
        assert case.dim is None or all(0 <= dim < len(case.shape) for dim in case.dim), case.name
        assert case.layout in cases.LAYOUTS


def test_models_name_their_layers():
    chosen = cases.load("models")
    assert len(chosen) >= 40
    assert all(len(case.source.split(", ", 1)) == 2 for case in chosen)
    assert len({case.source for case in chosen}) == len(chosen)


@pytest.mark.parametrize("name", cases.HEATMAPS)
@pytest.mark.parametrize("dim", [0, 1])
def test_heatmap_shows_small_and_large(name, dim):
    chosen = [case for case in cases.heatmap(name) if case.dim == (dim,)]
    assert 60 <= len(chosen) <= 100
    assert min(case.numel for case in chosen) <= 1 << 11 and max(case.numel for case in chosen) >= 1 << 28
    assert all(case.shape[1] % 2 == name.endswith("odd") for case in chosen if case.shape[1] > 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_accumulate_has_its_sizes(dtype):
    sizes = {case.bytes_in >> 20 for case in cases.load("accumulate") if case.dim is None and case.dtype == dtype}
    assert sizes == {64, 256, 1024, 4096}


def test_floor_of_small_arrays():
    small, large = (cases.Case((n,), None, torch.float32) for n in (1 << 17, 1 << 28))
    assert harness.floor_us(small, 4.5e3) == 2.6 + small.bytes / 4.5e3
    assert harness.floor_us(small, 4.5e3, (1 << 20) - 1) == 1.3
    assert harness.floor_us(large, 4.5e3, (1 << 20) - 1) == 2.6 + large.bytes / 4.5e3


# --- operators


class StandIn:
    """torch's functions in the place of gpureduce's."""

    norm, vecdot = torch.linalg.vector_norm, torch.linalg.vecdot

    def __getattr__(self, name):
        operator = operators.OPERATORS[name]
        return operator.eager if operator.eager is not None else getattr(torch, name)

    def softmax_stats(self, x, dim):
        return operators.eager_softmax_stats(x, [dim])


def tiny(case):
    """The case on a shape that takes no time; bfloat16 as float32, since torch rounds every step of it on the CPU."""
    shape = {1: (999,), 2: (7, 33)}[len(case.shape)]
    dtype = torch.float32 if case.dtype == torch.bfloat16 else case.dtype
    return dataclasses.replace(case, shape=shape, dtype=dtype)


OPS = list({case.name: case for case in map(tiny, cases.load("ops"))}.values())


def test_operators_have_the_cases_that_they_should():
    chosen = cases.load("ops")
    in_grid = [case for case in chosen if case.source == "grid"]
    assert len(in_grid) == 27 and len({case.op for case in in_grid}) == 9
    large = {(case.op, case.dim, case.dtype) for case in chosen if case.numel > 1 << 24}
    for operator in operators.LIST:
        wanted = {
            (operator.name, *cases.OPS_SHAPES[form][1:], dtype)
            for form in operator.shapes
            for dtype in (torch.float32, torch.bfloat16)
        }
        assert operator.name == "sum" or wanted <= large, operator.name
    assert {op for op, _, dtype in large if dtype == torch.bool} == {"any", "all", "count_nonzero"}
    assert list(reference.REFERENCES) == [operator.name for operator in operators.LIST if operator.shapes]


@pytest.mark.parametrize(
    "op, dtype, bytes_in, outputs, bytes_out",
    [
        ("amax", torch.bfloat16, 16, 4, 8),
        ("max", torch.bfloat16, 16, 4, 8 + 32),
        ("argmin", torch.float32, 32, 4, 32),
        ("any", torch.bool, 8, 4, 4),
        ("count_nonzero", torch.bool, 8, 4, 32),
        ("softmax_stats", torch.bfloat16, 16, 4, 32),
        ("softmax_stats", torch.float64, 64, 4, 64),
        ("vecdot", torch.float32, 64, 4, 16),
    ],
)
def test_bytes_count_every_operand_and_result(op, dtype, bytes_in, outputs, bytes_out):
    case = cases.Case((4, 2), (1,), dtype, op=op)
    assert (case.bytes_in, case.outputs, case.bytes_out) == (bytes_in, outputs, bytes_out)
    x = cases.make_input(case, "cpu")
    assert x.nbytes == bytes_in
    assert sum(part.nbytes for part in operators.parts(providers.torch_call(case)(x))) == bytes_out


@pytest.mark.parametrize("case", OPS, ids=lambda case: case.name)
@pytest.mark.parametrize("piece", [reference.PIECE, 40])
def test_reference_agrees_with_torch(case, piece, monkeypatch):
    monkeypatch.setattr(reference, "PIECE", piece)
    x = cases.make_input(case, "cpu")
    expected = reference.reference(case, x)
    right = providers.torch_call(case)(x)
    assert reference.fault(case, right, expected) == ""
    for i, part in enumerate(operators.parts(right)):
        wrong = list(operators.parts(right))
        wrong[i] = part.clone()
        flat = wrong[i].view(-1)
        flat[-1] = ~flat[-1] if part.dtype == torch.bool else flat[-1] + 1
        assert reference.fault(case, tuple(wrong), expected) != ""
        wrong[i] = part.clone()
        harness.poison(wrong[i])
        assert reference.fault(case, tuple(wrong), expected) != ""


def test_reference_knows_an_operator_from_its_rivals():
    """Products in bfloat16, as x * x makes them, are not good enough for a sum of squares."""
    case = cases.Case((4096,), None, torch.bfloat16, op="sumsq")
    x = torch.full(case.shape, 1 + 2.0**-7, dtype=case.dtype)
    expected = reference.reference(case, x)
    right, rounded = x.double().square().sum().to(case.dtype), torch.tensor(4096 * (1 + 2.0**-6), dtype=case.dtype)
    lower = (rounded.double() * (1 - 2.0**-7)).to(case.dtype)
    assert reference.fault(case, right, expected, rival=False) == ""
    assert reference.fault(case, lower, expected, rival=False) != ""
    assert reference.fault(case, lower, expected, rival=True) == ""


@pytest.mark.parametrize("shape, dim", [((1 << 20,), None), ((64, 1 << 12), (1,)), ((1 << 12, 64), (0,))])
def test_factors_stay_in_range(shape, dim):
    case = cases.Case(shape, dim, torch.bfloat16, op="prod")
    x = cases.make_input(case, "cpu").double()
    rounded = (x.abs() != 1).sum(case.dims).max()
    assert 2 < rounded < 2**14 + 2**10
    assert x.abs().log2().sum(case.dims).abs().max() < 8
    assert 0.4 < (x < 0).double().mean() < 0.6


def test_inputs_are_shared_by_cases_that_can(monkeypatch):
    device = Device("cpu", [], 60)
    mean, var, prod = (cases.Case((64,), None, torch.float32, op=op) for op in ("mean", "var", "prod"))
    first = device._inputs(mean)
    assert device._inputs(var) is first and device._inputs(prod) is not first


def test_measures_two_results_and_reports_wrong_ones(monkeypatch):
    monkeypatch.setattr(harness, "time_host", lambda calls, *others: dict.fromkeys(calls, 1.0))
    monkeypatch.setattr(providers, "GPUREDUCE", StandIn())
    for case in OPS:
        timings, notes = Device("cpu", [], 60).measure(case, ["gpureduce", "torch", "cub", "double"])
        assert set(timings) == {"gpureduce", "torch"} and not notes, (case.name, notes)
    case = next(case for case in OPS if case.op == "aminmax")
    monkeypatch.setitem(providers.PROVIDERS, "torch", lambda case: lambda x: x.aminmax()[::-1])
    timings, notes = Device("cpu", [], 60).measure(case, ["gpureduce", "torch"])
    assert set(timings) == {"gpureduce"} and notes["torch"].startswith("WRONG")


def test_operators_that_are_there_take_the_dtypes_of_the_table():
    there = [operator for operator in operators.LIST if hasattr(torch.ops.gpureduce, operator.function)]
    kinds = {"float": torch.float32, "complex": torch.complex64, "integer": torch.int32, "bool": torch.bool}
    for operator in there:
        for kind, dtype in kinds.items():
            x = torch.ones((2, 3) if operator.operands > 1 else 3, dtype=dtype)
            takes = True
            try:
                operator.call(torch.ops.gpureduce, x, None if operator.all_dims else [0])
            except (RuntimeError, NotImplementedError):
                takes = False
            assert takes == (kind in operator.dtypes), (operator.name, kind)


# --- summaries, tables and plots


def test_modes_are_no_rivals(recorded):
    rows = recorded("sum-accumulate", device_rows("accumulate", ("gpureduce", *results.MODES, "torch")))
    lines = results.summary(rows)
    assert [line.split(":")[0] for line in lines[:3]] == ["compensated", "double", "against torch"]
    assert not any("best rival of each" in line for line in lines)
    only_modes = [row for row in rows if row["provider"] != "torch"]
    assert len(results.summary(only_modes)) == 2


def test_summary_counts_losses():
    times = (("a", "gpureduce", 1.0), ("a", "torch", 2.0), ("b", "gpureduce", 2.0), ("b", "torch", 1.0))
    rows = [{"case": case, "provider": provider, "us": str(us)} for case, provider, us in times]
    lines = results.summary(rows)
    assert lines[0] == "against torch: 1.00 x (geometric mean of 2), worst 0.50 x (b)"
    assert lines[1].startswith("1 of 2 cases more than 2 % slower")


def test_sections_say_when_there_is_nothing(recorded):
    lists = {"operators"}  # what there is, measured or not
    assert {report.SECTIONS[name]() for name in report.SECTIONS.keys() - lists} == {report.NOTHING}
    assert report.plots() == {}


def test_models_table(recorded):
    recorded("sum-models", device_rows("models", ("gpureduce", "torch", "compile", "cub")))
    text = report.device_table("sum-models")
    for case in cases.load("models"):
        assert f"| {case.source} | {case.name} |" in text
    assert "against torch:" in text and "against compile:" in text and RECORD["machine"] in text


def test_operators_tables(recorded):
    rows = recorded("ops", device_rows("ops", ("gpureduce", "torch", "compile")))
    text = report.ops_section()
    assert all(f"| {case.name} |" in text for case in cases.load("ops"))
    assert "All cases:" in text and "The 27 of them" in text and "27)" in text
    lines = report.operators_table().splitlines()[2:]
    assert [line.split("`")[1] for line in lines] == list(dict.fromkeys(op.function for op in operators.LIST))
    unmeasured = [line.split("`")[1] for line in lines if line.endswith("|  |  |")]
    assert unmeasured == ["sum", "total_norm"]
    recorded("ops", [row for row in rows if (row["op"], row["provider"]) != ("amax", "gpureduce")])
    assert report.ops_section().count("| failed |") == 6


def test_accumulate_table(recorded):
    recorded("sum-accumulate", device_rows("accumulate", ("gpureduce", *results.MODES, "torch")))
    text = report.accumulate_table()
    assert "| sum of | plain, us | GB/s | compensated | double | torch.sum |" in text
    assert all(f"| {case.name} |" in text for case in cases.load("accumulate"))


def test_heatmaps(recorded):
    rows = recorded("sum-heatmap", device_rows("heatmap", ("gpureduce", "torch")))
    text = report.heatmap_section()
    assert text.count("![") == len(cases.HEATMAPS) == len(report.plots()) and text.count("<details>") == 2
    assert set(report.HEATMAP_TITLES) == set(cases.HEATMAPS)
    of_map = [row for row in rows if row["from"] == "float32-odd"]
    picture = plot.heatmap_svg(of_map)
    assert picture == plot.heatmap_svg(of_map), "the same file from the same rows"
    assert ">16K + 1</text>" in picture and plot.LOST in picture
    for row in of_map:
        assert row["provider"] != "gpureduce" or f">{100 / float(row['x_floor']):.0f}</text>" in picture


# --- accuracy


def ulp(value):
    """The spacing of float32 numbers at a normal value."""
    return 2.0 ** (math.frexp(value)[1] - 24)


@pytest.mark.parametrize("data", bench_accuracy.DATA)
def test_accurate_modes_keep_their_limit(data):
    rows = bench_accuracy.measure(data, 1 << 12, 0, "cpu")
    assert [row["provider"] for row in rows] == ["gpureduce", *results.MODES, "torch"]
    for row in rows:
        exact, result = float.fromhex(row["exact"]), float.fromhex(row["result"])
        assert math.isclose(row["error_ulp"], abs(result - exact) / ulp(exact), rel_tol=1e-12)
        if row["provider"] in results.MODES:
            assert row["error_ulp"] <= bench_accuracy.LIMIT_ULP
    if data == "ill-conditioned":
        assert math.isclose(rows[0]["condition"], bench_accuracy.CONDITION, rel_tol=0.01)


def test_accuracy_table(recorded):
    rows = []
    for data in bench_accuracy.DATA:
        rows += bench_accuracy.measure(data, 1 << 12, 0, "cpu")
    saved = recorded("accuracy", rows)
    assert all(row["machine"] for row in saved)
    text = report.accuracy_table()
    assert all(f"| {data} | 4,096 |" in text for data in bench_accuracy.DATA)
    assert bench_accuracy.report(saved) == 0
    worst = results.worst(saved)["ill-conditioned", 1 << 12]
    assert f"{report.short(worst['compensated']['error_ulp'])} (" in text


def test_same_bits_counts_what_can_be_compared():
    row = {"data": "normal", "n": "4096", "trial": "0", "exact": "0x1p+0", "result": "0x1p+0", "machine": "this"}
    rows = [row | {"provider": provider} for provider in ("gpureduce", *results.MODES, "torch")]
    others = [row | {"machine": "that"} for row in rows]
    assert report.same_bits(rows, others) == "3 of 3 results of gpureduce have the same bits on that."
    others[0]["result"], others[1]["exact"] = "0x1.8p+0", "0x1.8p+0"
    assert report.same_bits(rows, others) == "1 of 2 results of gpureduce have the same bits on that."


def test_accuracy_fails_beyond_the_limit():
    row = {"data": "normal", "n": "4096", "condition": "1", "error_ulp": "2.5", "error_scaled": "1"}
    rows = [row | {"provider": provider} for provider in ("gpureduce", *results.MODES)]
    assert bench_accuracy.report(rows) == 1


# --- a run


def test_bench_reduce_runs_several_suites(tmp_path):
    command = [sys.executable, "-m", "bench.bench_reduce", "--suite", "models", "heatmap", "--device", "cpu"]
    command += ["--no-compile", "--filter", "^(8192 all|16x64 dim 0 f)", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=common.ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name.split("_")[0] for path in tmp_path.iterdir()} == {"sum-models-part", "sum-heatmap-part"}
    for path in tmp_path.iterdir():
        rows = results.read(path)
        assert [row["provider"] for row in rows] == ["gpureduce", "torch"]
        assert all(row["machine"] and float(row["us"]) > 0 for row in rows)


def test_counters_are_read_from_the_profilers_table():
    """Units, thousands, the kernel's name and the two longest waits, from a row as ncu writes it."""
    prefix, suffix = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
    units = dict.fromkeys(counters.METRICS.values(), "%")
    units |= {counters.METRICS["us"]: "msecond", counters.METRICS["dram_read_mb"]: "Gbyte"}
    found = dict.fromkeys(counters.METRICS.values(), "12.5")
    found |= {counters.METRICS["us"]: "1.5", counters.METRICS["dram_read_mb"]: "1,234.5"}
    found |= {"Kernel Name": "void a::(anonymous namespace)::column_kernel<b::Sum<float, float>, 4>(c)"}
    found |= {f"{prefix}{reason}{suffix}": value for reason, value in (("wait", "2"), ("barrier", "1"), ("lg", "30"))}
    row = counters.row_of(cases.load("grid")[0], units, found)
    assert (row["us"], row["dram_read_mb"], row["dram_percent"]) == (1500.0, 1234500.0, 12.5)
    assert (row["kernel"], row["waits_for"]) == ("column_kernel", "lg 30.0, wait 2.0")
    assert [case.name for case in counters.far_cases("^16777216x3 dim 0")] == ["16777216x3 dim 0 float32"]
