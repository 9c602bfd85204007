"""Wall time of gradient clipping, gpureduce against torch's foreach kernels in turns: python -m bench.bench_clip

The gradients have the shapes of real models' parameters. A call is timed from an idle device to an idle device, host
and device together, as it counts at the end of a backward pass; "clips" has a norm above the limit, "keeps" below it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import torch_reduce
from bench import harness, machine, results

Shape = tuple[int, ...]
DTYPES = (torch.float32, torch.bfloat16)


def resnet50() -> Iterator[Shape]:
    """The 161 parameters of torchvision's ResNet-50: 25,557,032 elements."""

    def convolution(inner: int, outer: int, size: int) -> Iterator[Shape]:
        yield outer, inner, size, size
        yield from [(outer,)] * 2  # batch norm

    yield from convolution(3, 64, 7)
    inner = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            yield from convolution(inner, width, 1)
            yield from convolution(width, width, 3)
            yield from convolution(width, 4 * width, 1)
            if block == 0:
                yield from convolution(inner, 4 * width, 1)
            inner = 4 * width
    yield from ((1000, inner), (1000,))


def gpt2_small() -> Iterator[Shape]:
    """The 148 parameters of GPT-2 small, the output layer being the embedding: 124,439,808 elements."""
    width = 768
    yield from ((50257, width), (1024, width))
    for _ in range(12):
        yield from [(width,)] * 2
        yield from ((width, 3 * width), (3 * width,), (width, width), (width,))
        yield from [(width,)] * 2
        yield from ((width, 4 * width), (4 * width,), (4 * width, width), (width,))
    yield from [(width,)] * 2


MODELS: dict[str, Callable[[], Iterator[Shape]]] = {"resnet50": resnet50, "gpt2-small": gpt2_small}
CLIPS: dict[str, Callable[..., torch.Tensor]] = {
    "gpureduce": torch_reduce.clip_grad_norm_,
    "torch": torch.nn.utils.clip_grad_norm_,
}


def parameters(model: str, dtype: torch.dtype, device: str) -> list[torch.nn.Parameter]:
    """With gradients, but without memory of their own to speak of."""
    made = []
    for shape in MODELS[model]():
        parameter = torch.nn.Parameter(torch.empty(1, dtype=dtype, device=device).expand(shape))
        parameter.grad = torch.randn(shape, device=device).mul_(1e-3).to(dtype)
        made.append(parameter)
    return made


def check(model: str, dtype: torch.dtype, device: str) -> None:
    """Both give the same norm and the same gradients, before anything is timed."""
    lists = {}
    for name, clip in CLIPS.items():
        torch.manual_seed(0)
        lists[name] = parameters(model, dtype, device)
        norm = clip(lists[name], 0.5, foreach=True)
        lists[name].append(torch.nn.Parameter(norm.detach()))
        lists[name][-1].grad = norm
    rtol = 0.02 if dtype == torch.bfloat16 else 2e-3  # torch's norm is that far off on the CPU
    for ours, theirs in zip(lists["gpureduce"], lists["torch"], strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=rtol, atol=1e-9)


def measure(model: str, dtype: torch.dtype, clips: bool, device: str, seconds: float) -> list[dict[str, object]]:
    made = parameters(model, dtype, device)
    elements = sum(p.numel() for p in made)

    def synchronize() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    # A call with a limit of half the norm halves the gradients, so they are set anew before each.
    sources = [p.grad.clone() for p in made if p.grad is not None]
    gradients = [p.grad for p in made if p.grad is not None]
    limit = 0.5 * torch_reduce.total_norm(gradients).item() if clips else 1e9

    def call(clip: Callable[..., torch.Tensor]) -> Callable[[], None]:
        def run() -> None:
            clip(made, limit, foreach=True)
            synchronize()

        return run

    def prepare() -> None:
        if clips:
            torch._foreach_copy_(gradients, sources)
        synchronize()

    timings = harness.time_calls({name: call(clip) for name, clip in CLIPS.items()}, prepare, seconds)
    case = f"{model} {str(dtype).removeprefix('torch.')} {'clips' if clips else 'keeps'}"
    read = elements * dtype.itemsize
    rows: list[dict[str, object]] = []
    for name, t in timings.items():
        row: dict[str, object] = {"case": case, "provider": name, "us": t.us, "first_us": t.first_us}
        row |= {"second_us": t.second_us, "best_us": t.best_us, "calls": t.calls}
        rows.append({**row, "tensors": len(made), "bytes_in": read, "bytes": read * (3 if clips else 1)})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3, help="per case (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=results.RESULTS, help="folder for the results file")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    record = machine.record(options.device)
    print(", ".join(f"{key} {value}" for key, value in record.items() if value), flush=True)
    rows: list[dict[str, object]] = []
    for model in MODELS:
        for dtype in DTYPES:
            check(model, dtype, options.device)
            for clips in (True, False):
                measured = measure(model, dtype, clips, options.device, options.seconds)
                times = {str(row["provider"]): float(str(row["us"])) for row in measured}
                text = ", ".join(f"{name} {us:.1f} us" for name, us in times.items())
                ratio = times["torch"] / times["gpureduce"]
                print(f"{measured[0]['case']!s:28} {text}; {ratio:.2f} x as fast as torch", flush=True)
                rows += measured
                path = results.save(
                    f"clip-{options.device}", rows, record, options.out
                )  # an interrupted run leaves its rows
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
