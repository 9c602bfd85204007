"""docs/ladder.md and the shipped results are made of bench/results: from rows that are made up, and as they are."""

import pytest

from bench import counters_ladder, report_ladder, results
from bench.tables import NOTHING
from torch_reduce import _ladder_rows
from torch_reduce._profiled import Target
from torch_reduce._verdict import Kernel

RECORD = {"machine": "NVIDIA H200", "driver": "580.1", "torch": "2.11.0", "cuda": "13.0", "python": "3.12.3"}
RECORD |= {"date": "2026-11-30T08:50:55Z", "commit": "abc1234"}
US = {"naive": 240.0, "sequential": 120.0, "serial:1": 130.0, "serial:4": 60.0, "production": 20.0}


def row(kind, rung, n, us):
    numbers = {"n": n, "us": us, "gb_s": 4 * n / us / 1e3, "read_limit_gb_s": 4690.0}
    return {key: str(value) for key, value in {"kind": kind, "rung": rung, **numbers, **RECORD}.items()}


LADDER = [row("sum", rung, n, us * n / (1 << 24)) for n in (1 << 20, 1 << 24) for rung, us in US.items()]
LADDER += [row("rival", "torch", 1 << 24, 25.0), {**row("sum", "kahan", 1 << 24, 1.0), "us": ""}]  # the last one failed
STRATEGIES = [
    {"case": "adaptive uneven", "kind": "adaptive", "rung": rung, "us": us, "gb_s": "100.0", **RECORD}
    for rung, us in (("warp_per_row", "900.0"), ("adaptive", "300.0"))
]
KERNEL = Kernel(
    "naive_kernel",
    {"us": 230.0, "dram_percent": 8.4, "sm_percent": 55.5, "lanes_per_instruction": 11.6, "bank_conflicts": 12345.0},
    (("barrier", 9.9), ("wait", 2.0), ("other", 1.0)),
)
COUNTERS = [counters_ladder.row_of("naive", Target("ladder:naive", (1 << 24,)), [KERNEL, Kernel("naive_kernel", {})])]
COUNTERS = [{key: str(value) for key, value in {**each, **RECORD}.items()} for each in COUNTERS]


@pytest.fixture
def measured(monkeypatch):
    kinds = {"ladder": LADDER, "ladder-counters": COUNTERS, "strategies": STRATEGIES}
    monkeypatch.setattr(results, "newest", lambda kind, device="": kinds.get(kind, []))


def block(text, name):
    return text.partition(f"<!-- begin {name} -->")[2].partition(f"<!-- end {name} -->")[0].strip()


def test_every_block_of_the_document_is_filled(measured):
    before = report_ladder.DOCUMENT.read_text()
    text = report_ladder.fill(before)
    assert text.count("<!-- begin ") == before.count("<!-- begin ") and report_ladder.fill(text) == text
    whole = block(text, "ladder")
    assert "](../bench/results/ladder.svg)" in whole and "<summary>n = 1,048,576</summary>" in whole
    assert "| serial:4 | 60.00 | 1,118 | 23.8 | 2.00 |" in whole
    naive = block(text, "naive")
    assert "| naive | 240.00 | 280 | 6.0 |  | 8 | 56 | 12 | 12,345 | barrier 9.9, wait 2.0 |" in naive
    assert len(block(text, "serial").splitlines()) == 4, "a line for each parameter"
    assert block(text, "kahan") == NOTHING, "what was not measured is left open"
    assert "| torch.sum | 25.00 | 2,684 | 57.2 |  |" in whole
    assert "- adaptive uneven: warp_per_row takes 3.00 x the time of adaptive" in block(text, "strategies")
    assert "| adaptive uneven | adaptive | 300.00 | 100 |" in block(text, "strategies")


def test_the_shipped_results_are_the_benchs(measured):
    made = report_ladder.files()
    assert made[report_ladder.H200] == _ladder_rows.csv_text(report_ladder.speeds())
    assert {speed.rung for speed in report_ladder.speeds()} == set(US)


def test_check_notices_what_is_out_of_date(measured, monkeypatch, tmp_path):
    for name in ("DOCUMENT", "H200"):
        path = tmp_path / getattr(report_ladder, name).name
        if name == "DOCUMENT":
            path.write_text(report_ladder.DOCUMENT.read_text())
        monkeypatch.setattr(report_ladder, name, path)
    assert not report_ladder.check()
    assert set(report_ladder.update()) == {report_ladder.DOCUMENT, report_ladder.H200}
    assert report_ladder.check()
    report_ladder.H200.write_text(report_ladder.H200.read_text().replace("240.0", "239.0"))
    assert not report_ladder.check()


def test_the_document_and_the_shipped_results_are_up_to_date():
    assert report_ladder.check(), "run make report"
