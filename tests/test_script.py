"""TorchScript: script, trace, save, and load in a process that knows only the shared library."""

import subprocess
import sys
import textwrap
import warnings

import pytest
import torch

from tests import common
from tests.common import assert_same_bits


def no_dim(x: torch.Tensor):
    return torch.ops.gpureduce.sum(x)


def none_dim(x: torch.Tensor):
    return torch.ops.gpureduce.sum(x, None)


def int_dim(x: torch.Tensor):
    return torch.ops.gpureduce.sum(x, 1)


def negative_dim(x: torch.Tensor):
    return torch.ops.gpureduce.sum(x, dim=-1)


def list_dim(x: torch.Tensor):
    return torch.ops.gpureduce.sum(x, [0, 1])


def empty_list(x: torch.Tensor):
    dims: list[int] = []
    return torch.ops.gpureduce.sum(x, dims, True)


def keepdim(x: torch.Tensor):
    return torch.ops.gpureduce.sum(x, [1], keepdim=True)


def dtype_none(x: torch.Tensor):
    return torch.ops.gpureduce.sum(x, [0], dtype=None)


def dtype_float64(x: torch.Tensor):
    return torch.ops.gpureduce.sum(x, 0, True, dtype=torch.float64)


def accumulate(x: torch.Tensor):
    return torch.ops.gpureduce.sum(x, 1, accumulate="compensated") + torch.ops.gpureduce.sum(x, 1, accumulate=None)


def variables(x: torch.Tensor):
    dims: list[int] | None = [0]
    total = torch.ops.gpureduce.sum(x, dims)
    for d in range(x.dim()):
        total = total + torch.ops.gpureduce.sum(torch.ops.gpureduce.sum(x, d))
    return total


FUNCTIONS = [
    no_dim,
    none_dim,
    int_dim,
    negative_dim,
    list_dim,
    empty_list,
    keepdim,
    dtype_none,
    dtype_float64,
    accumulate,
]
FUNCTIONS += [variables]
functions = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


def script(function):
    """torch.jit.script, or a skip where this torch no longer has it."""
    probe = torch.nn.Identity()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.jit.script(probe)
        except Exception as error:  # whatever a torch without TorchScript raises
            pytest.skip(f"torch {torch.__version__} on Python {sys.version_info[:2]} refuses torch.jit: {error}")
        return torch.jit.script(function)


def sample(device="cpu"):
    return common.random_data((5, 700), torch.float32, seed=40, device=device)


@functions
def test_scripted_is_eager(device, function):
    x = sample(device)
    scripted = script(function)
    for _ in range(3):  # the profiling executor changes the graph on the second and third run
        assert_same_bits(scripted(x), function(x))
    assert "gpureduce::sum" in str(scripted.graph)


@functions
def test_traced_is_eager(device, function):
    script(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(function, (sample(device),))
    other = sample(device)[:, :333] * 2
    assert_same_bits(traced(other), function(other))


def test_scripted_gradient(device):
    scripted = script(int_dim)
    x = sample(device).requires_grad_()
    for _ in range(3):
        (gradient,) = torch.autograd.grad(scripted(x), x, torch.arange(5.0, device=device))
        assert torch.equal(gradient, torch.arange(5.0, device=device)[:, None].expand(5, 700))


def test_frozen_and_optimised(device):
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.ops.gpureduce.sum(x * 2, 1)

    scripted = script(Model().eval())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frozen = torch.jit.optimize_for_inference(torch.jit.freeze(scripted))
    for _ in range(3):
        assert_same_bits(frozen(sample(device)), Model()(sample(device)))


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd="/",
    )


def test_load_in_a_fresh_process(tmp_path):
    x = sample()
    paths = []
    for function in FUNCTIONS:
        for kind in ("script", "trace"):
            path = tmp_path / f"{function.__name__}.{kind}.pt"
            module = script(function)
            if kind == "trace":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    module = torch.jit.trace(function, (x,))
            module.save(str(path))
            torch.save(function(x), path.with_suffix(".want"))
            paths.append(path)
    torch.save(x, tmp_path / "x")
    code = """
        import sys, pathlib, torch
        torch.ops.load_library(sys.argv[1])
        folder = pathlib.Path(sys.argv[2])
        x = torch.load(folder / "x")
        count = 0
        for path in sorted(folder.glob("*.pt")):
            got, want = torch.jit.load(str(path))(x), torch.load(path.with_suffix(".want"))
            assert torch.equal(got, want) and got.dtype == want.dtype, path
            count += 1
        assert "torch_reduce" not in sys.modules
        print("equal:", count)
    """
    result = run(code, common.library_path(), tmp_path)
    assert result.returncode == 0, result.stderr
    assert f"equal: {len(paths)}" in result.stdout


def test_clear_error_without_the_library(tmp_path):
    script(int_dim).save(str(tmp_path / "model.pt"))
    result = run("import sys, torch; torch.jit.load(sys.argv[1])", tmp_path / "model.pt")
    assert result.returncode == 1, result.stderr  # an exception, not a crash
    assert "gpureduce::sum" in result.stderr and "nknown builtin op" in result.stderr
