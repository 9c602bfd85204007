"""Results files: one CSV per suite, machine and day, the machine in every row; and what is computed from their rows."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench import machine

RESULTS = Path(__file__).parent / "results"
OURS = "gpureduce"
MODES = ("compensated", "double")  # of gpureduce: providers beside it, not rivals
NOISE = 1.02  # what two timings of one thing differ by

Row = dict[str, str]


def save(kind: str, rows: Sequence[dict[str, object]], record: dict[str, str], directory: Path = RESULTS) -> Path:
    """Writes <kind>_<machine>_<date>.csv anew; call it now and then, so that an interrupted run leaves its rows."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{kind}_{machine.slug(record)}.csv"
    columns = list(dict.fromkeys(key for row in rows for key in row)) + list(record)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            rounded = {key: f"{value:.5g}" if isinstance(value, float) else value for key, value in row.items()}
            writer.writerow({**rounded, **record})
    return path


def newest(kind: str, device: str = "", directory: Path = RESULTS) -> list[Row]:
    """The rows of the last measured file of a kind whose machine's name holds `device`; none if there is no file."""
    files = [read(path) for path in directory.glob(f"{kind}_*.csv")]
    files = [rows for rows in files if rows and device in rows[0]["machine"]]
    return max(files, key=lambda rows: rows[0]["date"], default=[])


def read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def by_case(rows: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """case -> provider -> row, for the rows that have a time."""
    table: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["us"]:
            table.setdefault(row["case"], {})[row["provider"]] = row
    return table


def worst(rows: Iterable[Row]) -> dict[tuple[str, int], dict[str, dict[str, float]]]:
    """Accuracy: (data, n) -> provider -> the largest condition, error_ulp and error_scaled of all trials."""
    table: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    for row in rows:
        largest = table.setdefault((row["data"], int(row["n"])), {}).setdefault(row["provider"], {})
        for key in ("condition", "error_ulp", "error_scaled"):
            largest[key] = max(largest.get(key, 0.0), float(row[key]))
    return table


def time_us(row: Row) -> float:
    return float(row["us"])


def ratios(providers: dict[str, Row]) -> dict[str, float]:
    """Time of each rival over the time of gpureduce: above 1 where gpureduce is faster."""
    ours = time_us(providers[OURS])
    return {name: time_us(row) / ours for name, row in providers.items() if name != OURS}


def summary(rows: Iterable[Row]) -> list[str]:
    """Geometric means, worst cases and the number of cases that miss the goals, in words."""
    measured = {name: providers for name, providers in by_case(rows).items() if OURS in providers}
    lines = [_mode_line(mode, measured) for mode in MODES if any(mode in providers for providers in measured.values())]
    rivals = {name: {key: row for key, row in case.items() if key not in MODES} for name, case in measured.items()}
    cases = {name: providers for name, providers in rivals.items() if len(providers) > 1}
    if not cases:
        return lines or ["no case with gpureduce and a rival"]
    names = list(dict.fromkeys(name for providers in cases.values() for name in ratios(providers)))
    for rival in names:
        values = {case: ratios(providers)[rival] for case, providers in cases.items() if rival in providers}
        lines.append(_ratio_line(f"against {rival}", values))
    best = {case: min(ratios(providers).values()) for case, providers in cases.items()}
    if len(names) > 1:
        lines.append(_ratio_line("against the best rival of each case", best))
    slower = [case for case, ratio in best.items() if ratio * NOISE < 1]
    lines.append(f"{len(slower)} of {len(best)} cases more than 2 % slower than their best rival")
    return lines + _floor_lines({name: providers[OURS] for name, providers in cases.items()})


def _floor_lines(ours: dict[str, Row]) -> list[str]:
    """How far the large cases are from a pure read; nothing without large cases on a GPU."""
    large = {
        case: float(row["x_floor"])
        for case, row in ours.items()
        if row.get("x_floor") and int(row["bytes_in"]) >= 64_000_000
    }
    if not large:
        return []
    worst = max(large, key=lambda case: large[case])
    above = sum(value > 1.05 for value in large.values())
    mean = statistics.geometric_mean(large.values())
    return [
        f"cases of 64 MB and more: {mean:.3f} x their floor, worst {large[worst]:.3f} x ({worst}), "
        f"{above} of {len(large)} above 1.05 x"
    ]


def _mode_line(mode: str, cases: dict[str, dict[str, Row]]) -> str:
    values = {case: ratios(providers)[mode] for case, providers in cases.items() if mode in providers}
    worst = max(values, key=lambda case: values[case])
    mean = statistics.geometric_mean(values.values())
    return f"{mode}: {mean:.2f} x plain's time (geometric mean of {len(values)}), worst {values[worst]:.2f} x ({worst})"


def _ratio_line(what: str, values: dict[str, float]) -> str:
    worst = min(values, key=lambda case: values[case])
    mean = statistics.geometric_mean(values.values())
    return f"{what}: {mean:.2f} x (geometric mean of {len(values)}), worst {values[worst]:.2f} x ({worst})"
