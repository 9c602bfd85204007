"""The plot of bandwidth against size, from the rows of a results file."""

from __future__ import annotations

import io
from collections.abc import Sequence

from bench.results import OURS, Row, time_us

STYLES = {
    OURS: ("#d62728", "o", 2.2),
    "cub": ("#2ca02c", "s", 1.4),
    "compile": ("#1f77b4", "^", 1.4),
    "torch": ("#7f7f7f", "v", 1.4),
}
NAMES = {OURS: "gpureduce", "cub": "CUB DeviceReduce", "compile": "torch.compile", "torch": "torch.sum"}


def bandwidth_svg(rows: Sequence[Row]) -> str:
    """GB/s against n for the full float32 sums: every provider, and the floor as a line."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "gpureduce"  # the same file from the same rows
    import matplotlib.pyplot as plt

    rows = [row for row in rows if row["us"] and row["dtype"] == "float32" and row["case"].endswith(" all float32")]
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    floor = sorted({(int(row["bytes_in"]) / 4, int(row["bytes_in"]) / float(row["floor_us"]) / 1e3) for row in rows})
    axes.plot([n for n, _ in floor], [speed for _, speed in floor], "k--", linewidth=1, label="floor (a pure read)")
    for provider, (colour, marker, width) in STYLES.items():
        points = sorted((int(row["bytes_in"]) / 4, row) for row in rows if row["provider"] == provider)
        if points:
            speeds = [4 * n / time_us(row) / 1e3 for n, row in points]
            sizes = [n for n, _ in points]
            axes.plot(sizes, speeds, marker=marker, color=colour, linewidth=width, label=NAMES[provider])
    axes.set(xscale="log", yscale="log", xlabel="n, float32 elements", ylabel="GB/s (cold L2, device time)")
    axes.set_title(f"Full sum on {rows[0]['machine']}, torch {rows[0]['torch']}, {rows[0]['date'][:10]}")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
    return file.getvalue()
