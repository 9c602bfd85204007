"""The demo: handwritten digits learnt through gpureduce, eager and as TorchScript, then a table of speed and accuracy.

Run it with: make demo. The data set is scikit-learn's (1,797 real images of 8 x 8 pixels, shipped in that package).
Every sum of the model, the loss and the batch normalisation's statistics, goes through torch.ops.gpureduce.sum.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits  # type: ignore[import-untyped]
from torch import Tensor, nn

import torch_reduce  # noqa: F401  (registers torch.ops.gpureduce)
from bench import harness
from bench.cases import Case, make_input

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EPOCHS, BATCH, TRAINING_IMAGES = 25, 128, 1437
SIZES = (2**10, 2**14, 2**17, 2**20, 2**22, 2**24, 2**26)
console = Console(width=110)


class Digits(nn.Module):
    """64 pixels -> 96 -> 10, batch normalisation in between; the same with torch.sum if ours is False."""

    __constants__ = ("ours",)  # known when TorchScript compiles, so that only one branch is compiled

    def __init__(self, ours: bool) -> None:
        super().__init__()
        self.ours = ours
        self.first, self.second = nn.Linear(64, 96), nn.Linear(96, 10)
        self.scale, self.shift = nn.Parameter(torch.ones(96)), nn.Parameter(torch.zeros(96))
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(96))
        self.register_buffer("variance", torch.ones(96))

    def total(self, x: Tensor) -> Tensor:
        if self.ours:
            return torch.ops.gpureduce.sum(x)  # type: ignore[no-any-return]
        return torch.sum(x)

    def column_totals(self, x: Tensor) -> Tensor:
        if self.ours:
            return torch.ops.gpureduce.sum(x, [0])  # type: ignore[no-any-return]
        return torch.sum(x, [0])

    def normalise(self, x: Tensor) -> Tensor:
        mean, variance = self.mean, self.variance
        if self.training:
            mean = self.column_totals(x) / x.size(0)
            variance = self.column_totals((x - mean) ** 2) / x.size(0)
            self.mean.lerp_(mean.detach(), 0.1)
            self.variance.lerp_(variance.detach(), 0.1)
        return (x - mean) * torch.rsqrt(variance + 1e-5) * self.scale + self.shift

    def forward(self, images: Tensor) -> Tensor:
        return torch.log_softmax(self.second(torch.relu(self.normalise(self.first(images)))), 1)

    @torch.jit.export
    def loss(self, images: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy; targets are one-hot rows."""
        return -self.total(self.forward(images) * targets) / images.size(0)


@dataclass(frozen=True)
class Split:
    """The images in a fixed shuffled order, scaled to 0..1."""

    images: Tensor
    labels: Tensor

    @classmethod
    def load(cls) -> tuple[Split, Split]:
        digits = load_digits()
        order = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(0))
        images = (torch.tensor(digits.data, dtype=torch.float32) / 16)[order].to(DEVICE)
        labels = torch.tensor(digits.target)[order].to(DEVICE)
        first, last = slice(TRAINING_IMAGES), slice(TRAINING_IMAGES, None)
        return cls(images[first], labels[first]), cls(images[last], labels[last])


@dataclass(frozen=True)
class Trained:
    correct: int  # test images
    weights: str  # hash of every bit of the final state
    seconds: float


def new_model(ours: bool) -> Digits:
    torch.manual_seed(1)
    return Digits(ours).to(DEVICE)


def train(model: nn.Module, training: Split, test: Split) -> Trained:
    """Adam with a linearly falling rate over batches in a fixed order; nothing in it is random."""
    started = time.perf_counter()
    targets = nn.functional.one_hot(training.labels, 10).float()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    generator = torch.Generator().manual_seed(2)
    model.train()
    for epoch in range(EPOCHS):
        optimizer.param_groups[0]["lr"] = 5e-3 * (1 - epoch / EPOCHS)
        order = torch.randperm(TRAINING_IMAGES, generator=generator).to(DEVICE)
        for batch in torch.split(order, BATCH):
            optimizer.zero_grad()
            model.loss(training.images[batch], targets[batch]).backward()  # type: ignore[operator]
            optimizer.step()
    model.eval()
    with torch.no_grad():
        correct = int((model(test.images).argmax(1) == test.labels).sum())
    bits = b"".join(t.cpu().numpy().tobytes() for t in model.state_dict().values())
    return Trained(correct, hashlib.sha256(bits).hexdigest()[:16], time.perf_counter() - started)


def scripted() -> nn.Module | str:
    """The model as TorchScript, or why this torch has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions of torch say that TorchScript is deprecated
            module: nn.Module = torch.jit.script(new_model(True))
    except Exception as error:  # whatever it is that a torch without TorchScript raises
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return module


def learn_digits() -> list[str]:
    """Trains every variant and prints it; returns what failed."""
    training, test = Split.load()
    images = len(test.labels)
    console.print(
        f"\n[bold]1. Handwritten digits[/bold]: {TRAINING_IMAGES} images to learn from, {images} to test on\n"
    )
    variants: list[tuple[str, Callable[[], nn.Module | str]]] = [
        ("torch.sum, eager", lambda: new_model(False)),
        ("gpureduce, eager", lambda: new_model(True)),
        ("gpureduce, eager, again", lambda: new_model(True)),
        ("gpureduce, TorchScript", scripted),
    ]
    results: dict[str, Trained] = {}
    for name, make in variants:
        model = make()
        if isinstance(model, str):
            console.print(f"  {name:30} left out, this torch refuses torch.jit.script: {model}")
            continue
        # TorchScript's optimiser rewrites the arithmetic from the third call on; off, so that bits can be compared.
        with getattr(torch.jit, "optimized_execution", contextlib.nullcontext)(False):
            result = results[name] = train(model, training, test)
        share = f"{result.correct}/{images} = {result.correct / images:.2%}"
        console.print(f"  {name:30} {share} correct, weights {result.weights}, {result.seconds:.1f} s")
    return check_training(results, images)


def check_training(results: dict[str, Trained], images: int) -> list[str]:
    """The same accuracy up to one image (rounding may tip one that lies on the edge); gpureduce's runs equal."""
    rival = results["torch.sum, eager"]
    failures = [] if rival.correct > 0.95 * images else [f"torch.sum's model learnt only {rival.correct}/{images}"]
    for name, result in results.items():
        if result.correct < rival.correct - 1:
            failures.append(f"{name}: {rival.correct - result.correct} images behind torch.sum")
        if name.startswith("gpureduce") and result.weights != results["gpureduce, eager"].weights:
            failures.append(f"{name}: the weights differ in their bits from those of the first run")
    if not failures:
        console.print("\n  [green]As accurate as torch.sum, and every run gives the same bits.[/green]")
    return failures


def same_bits_on_both_devices() -> list[str]:
    """CUDA = CPU, bit for bit, on a few shapes."""
    if DEVICE == "cpu":
        console.print("  No GPU here: CPU against CUDA is not compared.")
        return []
    op, failures = torch.ops.gpureduce.sum, []
    for shape, dim in (((1_000_003,), None), ((4099, 257), [0]), ((4099, 257), [1]), ((8, 3, 61, 67), [0, 2, 3])):
        x = torch.randn(shape)
        if not torch.equal(op(x, dim), op(x.cuda(), dim).cpu()):
            failures.append(f"sum{shape} over {dim}: CPU and CUDA differ")
    console.print("  CPU and CUDA give " + ("different bits" if failures else "[green]the same bits[/green]"))
    return failures


def time_both(n: int) -> dict[str, harness.Timing]:
    """Interleaved times; on CUDA device time with cold inputs, on the CPU wall time over rotating inputs."""
    case = Case((n,), None, torch.float32)
    calls: dict[str, harness.Call] = {"gpureduce": lambda x: torch.ops.gpureduce.sum(x), "torch": torch.sum}
    if DEVICE == "cpu":
        inputs = [make_input(case, DEVICE) for _ in range(2 if n > 1 << 20 else 1)]
        return harness.time_host(calls, inputs, 1.0)
    flush = harness.Flush()
    count = harness.buffer_count(case.bytes_in, flush.l2_bytes)
    inputs = [make_input(case, DEVICE) for _ in range(count)]
    repeats = harness.call_count(2.6 + case.bytes / 2e6, count)
    return harness.time_graphs({name: harness.Captured(fn, inputs, repeats) for name, fn in calls.items()}, flush, 8)


def relative_errors(n: int) -> list[float]:
    """Of gpureduce, its compensated mode and torch.sum, on uniform numbers, against the exact sum."""
    x = torch.rand(n, device=DEVICE)
    exact = math.fsum(x.tolist()) if n <= 1 << 20 else x.double().sum().item()
    op = torch.ops.gpureduce.sum
    results = (op(x), op(x, accumulate="compensated"), torch.sum(x))
    return [abs(result.item() - exact) / exact for result in results]


def compare() -> list[str]:
    """The table over sizes; fails if a result is farther off than the bound of a tree of additions."""
    where = torch.cuda.get_device_name() if DEVICE == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    console.print(f"\n[bold]2. sum of n float32 on: {where}[/bold]\n")
    times = ["gpureduce us", "GB/s", "torch us", "GB/s", "torch/gpureduce"]
    table = Table("n", *times, "error", "compensated", "torch error")
    for column in table.columns:
        column.justify = "right"
    failures = []
    for n in SIZES:
        with console.status(f"measuring n = {n:,}"):
            measured, errors = time_both(n), relative_errors(n)
        ours, rival = measured["gpureduce"].us, measured["torch"].us
        speed = [f"{ours:.2f}", f"{4 * n / ours / 1e3:.1f}", f"{rival:.2f}", f"{4 * n / rival / 1e3:.1f}"]
        table.add_row(f"{n:,}", *speed, f"{rival / ours:.2f}", *(f"{error:.1e}" for error in errors))
        if not all(error <= 64 * 2.0**-24 for error in errors[:2]):
            failures.append(f"n = {n}: relative errors {errors[:2]}")
    console.print(table)
    console.print("  Relative errors, uniform numbers in 0..1, against math.fsum up to 2^20 and float64 above.")
    return failures


def main() -> int:
    console.print("gpureduce on " + (torch.cuda.get_device_name() if DEVICE == "cuda" else "the CPU (no GPU found)"))
    failures = [*learn_digits(), *same_bits_on_both_devices(), *compare()]
    for failure in failures:
        console.print(f"[red]FAILED[/red] {failure}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
