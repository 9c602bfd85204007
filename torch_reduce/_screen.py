"""Tables and progress on a terminal: by rich where it is installed, else as plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

try:
    import rich.box
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table
    from rich.text import Text

    HAS_RICH = True
except ImportError:
    HAS_RICH = False

Item = TypeVar("Item")
WIDTH = 120  # where the output is no terminal


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str] = ()) -> None:
    """A table; the columns of these names are numbers, and stand to the right."""
    if not HAS_RICH:
        print(plain_table(header, rows, numbers))
        return
    table = Table(box=rich.box.SIMPLE_HEAD)
    for name in header:
        table.add_column(name, justify="right" if name in numbers else "left", no_wrap=name in numbers)
    for row in rows:
        table.add_row(*(Text(cell, STYLES.get(cell, "")) for cell in row))
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table)


STYLES = {"ok": "green", "warning": "yellow", "broken": "bold red", "skipped": "dim"}


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str] = ()) -> str:
    """The same as text, the last column as long as it is."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    lines = []
    for line in (header, *rows):
        cells = [
            cell.rjust(width) if name in numbers else cell.ljust(width)
            for name, cell, width in zip(header, line, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def with_progress(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The items, one by one, with a bar on the error stream; without a terminal or rich, a line for each."""
    if HAS_RICH and sys.stderr.isatty():
        yield from track(items, what, console=Console(stderr=True), transient=True)
        return
    for i, item in enumerate(items):
        print(f"{what} {i + 1} of {len(items)}: {item}", file=sys.stderr, flush=True)
        yield item
