"""What is known of each rung's speed: rows of the table, of a CSV file and of the plot, all from the same values."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

H200 = Path(__file__).with_name("ladder_h200.csv")  # made of the newest results by: make report
BAR = 24  # characters of a bar at the read limit


@dataclass(frozen=True)
class Speed:
    """The time of one rung on n floats, and where it was measured."""

    rung: str  # with its parameter, as "serial:4"
    n: int
    us: float
    read_limit_gb_s: float
    machine: str
    driver: str
    torch: str
    cuda: str
    date: str

    @property
    def name(self) -> str:
        return self.rung.partition(":")[0]

    @property
    def gb_s(self) -> float:
        return 4 * self.n / self.us / 1e3

    @property
    def percent(self) -> float:
        """Of the read limit."""
        return 100 * self.gb_s / self.read_limit_gb_s

    @property
    def conditions(self) -> str:
        parts = [self.machine, self.date[:10], *([f"driver {self.driver}"] if self.driver else [])]
        parts += [f"torch {self.torch}", f"CUDA {self.cuda}", f"read limit {self.read_limit_gb_s:,.0f} GB/s"]
        return ", ".join(parts)


def read(path: Path) -> list[Speed]:
    """The rows of a file, none if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {"n": int, "us": float, "read_limit_gb_s": float}
    names = [each.name for each in fields(Speed)]
    return [Speed(**{name: numbers.get(name, str)(row[name]) for name in names}) for row in rows]


def csv_text(speeds: Sequence[Speed]) -> str:
    """The rows as a file, with what follows from them."""
    file = io.StringIO()
    derived = ("gb_s", "percent_of_read_limit", "x_before")
    writer = csv.DictWriter(file, [*(each.name for each in fields(Speed)), *derived], lineterminator="\n")
    writer.writeheader()
    for speed, factor in zip(speeds, factors(speeds), strict=True):
        values = (f"{speed.gb_s:.1f}", f"{speed.percent:.1f}", f"{factor:.3f}" if factor else "")
        writer.writerow({**asdict(speed), **dict(zip(derived, values, strict=True))})
    return file.getvalue()


def of_size(speeds: Sequence[Speed], n: int) -> list[Speed]:
    """The rows of the size that is nearest to n by its factor."""
    if not speeds:
        return []
    nearest = min({speed.n for speed in speeds}, key=lambda size: max(size / n, n / size))
    return [speed for speed in speeds if speed.n == nearest]


def factors(speeds: Sequence[Speed]) -> list[float | None]:
    """How many times as fast as the rungs before it a rung is; None for the first one.

    That is the rung before, or an earlier one that is faster, so that a detour on the way is no step of the ladder.
    """
    best: dict[int, float] = {}  # by n, of all rungs before
    found: list[float | None] = []
    for (n, _), rung in itertools.groupby(speeds, key=lambda speed: (speed.n, speed.name)):
        times = [speed.us for speed in rung]
        found += [best[n] / us if n in best else None for us in times]
        best[n] = min([*times, *([best[n]] if n in best else [])])
    return found


def bar(percent: float) -> str:
    """In eighths of a character."""
    eighths = round(min(percent, 100) / 100 * BAR * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


HEADER = ("rung", "us", "GB/s", "% of limit", "x before")
NUMBERS = HEADER[1:]


def cells(speed: Speed, factor: float | None) -> list[str]:
    """A row of the table, without its bar."""
    times = f"{factor:.2f}" if factor else ""
    return [speed.rung, f"{speed.us:,.2f}", f"{speed.gb_s:,.0f}", f"{speed.percent:.1f}", times]


def table(speeds: Sequence[Speed]) -> list[list[str]]:
    return [[*cells(*row), bar(row[0].percent)] for row in zip(speeds, factors(speeds), strict=True)]


def svg(speeds: Sequence[Speed]) -> str:
    """Bars of GB/s, a rung below the other, the read limit as a line. The same rows give the same file."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "gpureduce", "svg.fonttype": "none"})
    matplotlib.rcParams["font.sans-serif"] = ["DejaVu Sans", "Arial"]  # each text names the whole list
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 1.2 + 0.27 * len(speeds)), layout="constrained")
    names = [speed.rung for speed in speeds]
    bars = axes.barh(names, [speed.gb_s for speed in speeds], color="#1f77b4")
    axes.bar_label(bars, [f"{speed.us:,.1f} us" for speed in speeds], padding=3, fontsize=8)
    limit = speeds[0].read_limit_gb_s
    axes.axvline(limit, color="#d62728", linestyle="--", linewidth=1.2, label=f"a pure read: {limit:,.0f} GB/s")
    axes.set(xlabel="GB/s (cold L2, device time)", xlim=(0, limit * 1.16))
    axes.set_title(f"Sum of {speeds[0].n:,} floats on {speeds[0].machine}, {speeds[0].date[:10]}", fontsize=11)
    axes.invert_yaxis()
    axes.legend(loc="lower left", fontsize=8)
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
    return file.getvalue()
