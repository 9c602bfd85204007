"""The README's tables of operators: what each takes, gives and promises, how fast it is, and every case of it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench import results
from bench.operators import EVERY, LIST, Operator
from bench.results import OURS, Row
from bench.tables import NOTHING, bullets, conditions, ratio_cell, speed_cells, table

RIVALS = {"torch": "torch", "compile": "torch.compile"}
NAMES = {"float": "floating", "complex": "complex", "integer": "integers", "bool": "bool"}
KIND = "ops"


def ops_section() -> str:
    """Every case of every operator but sum, an operator's together."""
    rows = results.newest(KIND, "NVIDIA")
    if not rows:
        return NOTHING
    cases = results.by_case(rows)
    lines = [_line(case, cases.get(case, {})) for operator in LIST for case in cases_of(operator.name, rows)]
    in_grid = [row for row in rows if row["from"] == "grid"]
    count = len({row["case"] for row in in_grid})
    parts = [f"{conditions(rows)} All cases:", bullets(rows)]
    parts += [f"The {count} of them that are in the grid of the goals:", bullets(in_grid)] if in_grid else []
    return "\n\n".join([*parts, table(["case", "us", "GB/s", "of floor", *RIVALS.values()], lines)])


def cases_of(name: str, rows: Sequence[Row]) -> list[str]:
    """The names of an operator's cases, as they were measured, with those that failed."""
    return list(dict.fromkeys(row["case"] for row in rows if row["op"] == name))


def _line(case: str, providers: dict[str, Row]) -> list[str]:
    if OURS not in providers:
        return [case, "failed", "", "", *[""] * len(RIVALS)]
    return [case, *speed_cells(providers[OURS]), *(ratio_cell(providers, rival) for rival in RIVALS)]


def operators_table() -> str:
    """One row a function; speeds are geometric means over the cases of all its variants."""
    lines = []
    for function in dict.fromkeys(operator.function for operator in LIST):
        operators = [operator for operator in LIST if operator.function == function]
        first = operators[0]
        speeds = (speed(operators, rival) for rival in RIVALS)
        lines.append([f"`{function}`", first.gradient, dtypes(first), first.bits, first.returns, *speeds])
    header = ["operator", "gradient", "dtypes", "CPU and CUDA agree in every bit", "results", *RIVALS.values()]
    return table(header, lines, 5)


def dtypes(operator: Operator) -> str:
    named = "all" if operator.dtypes == EVERY else ", ".join(NAMES[kind] for kind in operator.dtypes)
    return f"{named}; others with dtype=" if operator.with_dtype else named


def speed(operators: Sequence[Operator], rival: str) -> str:
    """How many times gpureduce's time a rival needs; nothing where that has not been measured."""
    values = [ratio for operator in operators for ratio in ratios(operator, rival)]
    return f"{statistics.geometric_mean(values):.2f} x" if values else ""


def ratios(operator: Operator, rival: str) -> list[float]:
    """Of an operator's cases. The sum has a file of its own, with cases of its own."""
    rows = results.newest("sum-grid" if operator.name == "sum" else KIND, "NVIDIA")
    rows = rows if operator.name == "sum" else [row for row in rows if row["op"] == operator.name]
    measured = [providers for providers in results.by_case(rows).values() if OURS in providers and rival in providers]
    return [results.ratios(providers)[rival] for providers in measured]
