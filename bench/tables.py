"""What the README's tables are made of: markdown, and cells from rows of results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from bench import results
from bench.results import Row, time_us

NOTHING = "No results are recorded yet."
BLOCK = re.compile(r"<!-- begin ([\w-]+) -->.*?<!-- end \1 -->", re.DOTALL)  # the generated parts of a document


def fill(document: str, body: Callable[[str], str]) -> str:
    """The document with every block between markers made anew, by its name."""
    return BLOCK.sub(lambda m: f"<!-- begin {m[1]} -->\n\n{body(m[1])}\n\n<!-- end {m[1]} -->", document)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """A markdown table; the first `texts` columns are text, the others are numbers."""
    lines = [header, [*["---"] * texts, *["---:"] * (len(header) - texts)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def conditions(rows: Sequence[Row]) -> str:
    """The machine record of a results file as one line."""
    first = rows[0]
    named = (("driver", "driver"), ("torch", "torch"), ("cuda", "CUDA"), ("python", "Python"), ("commit", "commit"))
    parts = [f"{label} {first[key]}" for key, label in named if first[key]]
    limit = first.get("read_limit_gb_s")
    parts += [f"read limit B = {float(limit):,.0f} GB/s"] if limit else []
    return f"{first['machine']}, {first['date'][:10]}, {', '.join(parts)}."


def bullets(rows: Sequence[Row]) -> str:
    return "\n".join(f"- {line}" for line in results.summary(rows))


def ratio_cell(providers: dict[str, Row], rival: str) -> str:
    """Rival's time and how many times ours it is; bold where the rival wins by more than noise."""
    if rival not in providers:
        return ""
    ratio = results.ratios(providers)[rival]
    text = f"{ratio:.2f} x"
    return f"**{text}**" if ratio * results.NOISE < 1 else text


def speed_cells(ours: Row) -> list[str]:
    """us, GB/s and how many times the floor."""
    return [f"{time_us(ours):.2f}", f"{float(ours['gb_s']):,.0f}", f"{float(ours['x_floor']):.2f} x"]
