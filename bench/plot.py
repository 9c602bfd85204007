"""The plots of the README, from the rows of results files: bandwidth against size, and heat maps of matrices."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.results import NOISE, OURS, Row, by_case, ratios, time_us

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

STYLES = {
    OURS: ("#d62728", "o", 2.2),
    "cub": ("#2ca02c", "s", 1.4),
    "compile": ("#1f77b4", "^", 1.4),
    "torch": ("#7f7f7f", "v", 1.4),
}
NAMES = {OURS: "gpureduce", "cub": "CUB DeviceReduce", "compile": "torch.compile", "torch": "torch.sum"}
COLOURS = {"sum": "#1f77b4", "rival": "#7f7f7f"}  # of the ladder's bars
LOST = "#ff2d20"  # the frame of a cell where torch.sum is faster


def bandwidth_svg(rows: Sequence[Row]) -> str:
    """GB/s against n for the full float32 sums: every provider, and the floor as a line."""
    figure, (axes,) = _figure(8, 4.5, 1)
    rows = [row for row in rows if row["us"] and row["dtype"] == "float32" and row["case"].endswith(" all float32")]
    floor = sorted({(int(row["bytes_in"]) / 4, int(row["bytes_in"]) / float(row["floor_us"]) / 1e3) for row in rows})
    axes.plot([n for n, _ in floor], [speed for _, speed in floor], "k--", linewidth=1, label="floor (a pure read)")
    for provider, (colour, marker, width) in STYLES.items():
        points = sorted((int(row["bytes_in"]) / 4, row) for row in rows if row["provider"] == provider)
        if points:
            speeds = [4 * n / time_us(row) / 1e3 for n, row in points]
            sizes = [n for n, _ in points]
            axes.plot(sizes, speeds, marker=marker, color=colour, linewidth=width, label=NAMES[provider])
    axes.set(xscale="log", yscale="log", xlabel="n, float32 elements", ylabel="GB/s (cold L2, device time)")
    axes.set_title(f"Full sum on {_where(rows[0])}")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    return _svg(figure)


def heatmap_svg(rows: Sequence[Row]) -> str:
    """Percent of the floor's speed for every form of matrix, a panel for each dim; red frames where torch.sum wins."""
    figure, panels = _figure(13, 6.6, 2)
    table = by_case(rows)
    for dim, axes in enumerate(panels):
        cells = {_sizes(case): providers for case, providers in table.items() if f" dim {dim} " in case}
        image = _heatmap(axes, {sizes: providers for sizes, providers in cells.items() if OURS in providers})
        axes.set_title("dim 1: the sum of each row" if dim else "dim 0: the sum of each column")
    figure.colorbar(image, ax=panels, shrink=0.8, label="percent of the speed of a pure read")
    figure.suptitle(f"Sum of {rows[0]['dtype']} matrices on {_where(rows[0])}; red frames: torch.sum is faster")
    return _svg(figure)


def _heatmap(axes: Axes, cells: Mapping[tuple[int, int], Mapping[str, Row]]) -> QuadMesh:
    """One panel; rows of the matrix downwards, its columns to the right."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    heights, widths = (sorted({sizes[axis] for sizes in cells}) for axis in (0, 1))
    grid = [[float("nan")] * len(widths) for _ in heights]
    for (height, width), providers in cells.items():
        y, x = heights.index(height), widths.index(width)
        grid[y][x] = percent = 100 / float(providers[OURS]["x_floor"])
        ink = "white" if percent < 60 else "black"
        axes.text(x, y, f"{percent:.0f}", ha="center", va="center", color=ink, fontsize=9)
        if any(ratio * NOISE < 1 for ratio in ratios(dict(providers)).values()):
            frame = Rectangle((x - 0.44, y - 0.44), 0.88, 0.88, fill=False, edgecolor=LOST, linewidth=1.6, zorder=2)
            axes.add_patch(frame)
    colours = colormaps["viridis"].resampled(20)
    image = axes.pcolormesh(range(len(widths)), range(len(heights)), grid, cmap=colours, vmin=0, vmax=100)
    axes.set_xticks(range(len(widths)), [_short(size) for size in widths], rotation=60)
    axes.set_yticks(range(len(heights)), [_short(size) for size in heights])
    axes.set(xlabel="columns", ylabel="rows", aspect="equal")
    axes.invert_yaxis()
    return image


def ladder_svg(rows: Sequence[Row]) -> str:
    """Percent of the read limit for every rung of the ladder, in their order downwards, a panel for each size."""
    sizes = sorted({int(row["n"]) for row in rows})
    figure, panels = _figure(3 + 2.6 * len(sizes), 6.6, len(sizes))
    for n, axes in zip(sizes, panels, strict=True):
        of_size = [row for row in rows if int(row["n"]) == n and row["us"]]
        percent = [float(row["percent_of_limit"]) for row in of_size]
        colours = ["#d62728" if row["rung"] == "production" else COLOURS[row["kind"]] for row in of_size]
        bars = axes.barh([NAMES.get(row["rung"], row["rung"]) for row in of_size], percent, color=colours)
        labels = [f"{value:.{1 if value < 10 else 0}f}" for value in percent]
        axes.bar_label(bars, labels, padding=2, fontsize=8)
        axes.axvline(100, color="black", linestyle="--", linewidth=1)
        axes.set(xlim=(0, 118), title=f"{_short(n)} floats", xlabel="percent of the read limit")
        axes.invert_yaxis()
        axes.tick_params(axis="y", labelsize=9, labelleft=axes is panels[0])
    figure.suptitle(f"The ladder on {_where(rows[0])}; cold L2, device time")
    return _svg(figure)


def _sizes(case: str) -> tuple[int, int]:
    rows, columns = case.split()[0].split("x")
    return int(rows), int(columns)


def _short(size: int) -> str:
    """16777217 -> 16M + 1."""
    even = size - size % 2 if size > 1 else size
    text = f"{even >> 20}M" if even >= 1 << 20 else f"{even >> 10}K" if even >= 1 << 10 else str(even)
    return text if even == size else f"{text} + 1"


def _where(row: Row) -> str:
    return f"{row['machine']}, torch {row['torch']}, {row['date'][:10]}"


def _figure(width: float, height: float, panels: int) -> tuple[Figure, Sequence[Axes]]:
    """A white figure, to be seen on a dark page too, with text as text; the same file comes from the same rows."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "gpureduce", "svg.fonttype": "none"})
    matplotlib.rcParams["font.sans-serif"] = ["DejaVu Sans", "Arial"]  # each text names the whole list
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, panels, figsize=(width, height), layout="constrained", squeeze=False)
    return figure, list(axes[0])


def _svg(figure: Figure) -> str:
    import matplotlib.pyplot as plt

    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
    return file.getvalue()
