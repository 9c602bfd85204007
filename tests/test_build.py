"""The build: loading twice, loading elsewhere, no Python in the library, floating-point state, the stamp."""

import json
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest
import torch

from tests import common


def run(code, *arguments, **environment):
    """Runs code in a fresh process with the repository on the path."""
    import os

    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=common.ROOT,
        env={**os.environ, **environment},
    )


def succeeds(result, output):
    assert result.returncode == 0, f"exit status {result.returncode}\n{result.stderr}"
    assert output in result.stdout


def test_import_twice_and_load_after_import():
    code = """
        import importlib, sys, torch, torch_reduce
        path = sys.argv[1]
        importlib.reload(torch_reduce)
        del sys.modules["torch_reduce"]
        import torch_reduce
        torch.ops.load_library(path)
        torch.ops.load_library(path)
        print(torch.ops.gpureduce.sum(torch.ones(5)).item())
    """
    succeeds(run(code, common.library_path()), "5.0")


def test_import_after_load():
    code = """
        import sys, torch
        torch.ops.load_library(sys.argv[1])
        import torch_reduce
        print(torch_reduce.sum(torch.ones(5)).item())
    """
    succeeds(run(code, common.library_path()), "5.0")


@pytest.mark.parametrize("first", ["import", "copy"])
def test_a_second_copy_elsewhere_does_not_abort(tmp_path, first):
    copy = tmp_path / "other" / pathlib.Path(common.library_path()).name
    copy.parent.mkdir()
    shutil.copy(common.library_path(), copy)
    code = """
        import sys, torch
        copy, first = sys.argv[1:]
        if first == "copy":
            torch.ops.load_library(copy)
        import torch_reduce
        try:
            torch.ops.load_library(copy)
        except Exception as error:
            print("refused:", error)
        x = torch.ones(5, requires_grad=True)
        torch.ops.gpureduce.sum(x).backward()
        print("still", torch.ops.gpureduce.sum(x.detach()).item(), x.grad.sum().item())
    """
    succeeds(run(code, copy, first), "still 5.0 5.0")


def test_the_library_needs_no_python():
    library = common.library_path()
    for tool in ("nm", "readelf"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} (binutils) is not installed")
    undefined = subprocess.run(
        ["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True
    ).stdout
    symbols = [line.split()[-1] for line in undefined.splitlines()]
    assert len(symbols) > 10, "nm found no symbols"
    assert not [s for s in symbols if s.startswith(("Py", "_Py")) or "THP" in s or "pybind11" in s]
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "libtorch_cpu" in needed
    assert "libpython" not in needed and "libtorch_python" not in needed


def test_few_symbols_are_exported():
    """Nothing but ours can clash with another extension's symbols."""
    if shutil.which("nm") is None:
        pytest.skip("nm (binutils) is not installed")
    listing = subprocess.run(
        ["nm", "-DC", "--defined-only", common.library_path()], capture_output=True, text=True, check=True
    )
    strong = [line.split(maxsplit=2)[2] for line in listing.stdout.splitlines() if line.split()[1] == "T"]
    foreign = [
        s
        for s in strong
        if "gpureduce" not in s and s not in ("_init", "_fini") and not s.startswith(("__cuda", "cuda"))
    ]
    assert not foreign, foreign[:10]


def test_floating_point_state_is_left_alone():
    """A library linked with -ffast-math would switch subnormals off for the whole process, in every thread."""
    code = """
        import torch, torch_reduce, numpy, threading
        def check(where):
            assert (torch.tensor([1e-40]) * 1).item() != 0, where
            assert float(numpy.float32(1e-40) * numpy.float32(1)) != 0, where
            assert 5e-324 * 1.0 == 5e-324, where
        torch_reduce.sum(torch.ones(3_000_000)), torch_reduce.sum(torch.full((64, 3), 1e-45), 0)
        check("main thread")
        thread = threading.Thread(target=check, args=("new thread",)); thread.start(); thread.join()
        tiny = torch.full((2_000_000,), 1e-40)
        assert (tiny * 1).count_nonzero() == tiny.numel()  # the threads of the pool too
        print("kept")
    """
    succeeds(run(code), "kept")


def test_a_stamp_of_another_torch_is_an_import_error(tmp_path):
    package = pathlib.Path(common.library_path()).parent
    shutil.copytree(package, tmp_path / "torch_reduce", ignore=shutil.ignore_patterns("__pycache__"))
    stamp = tmp_path / "torch_reduce" / "_build.json"
    values = json.loads(stamp.read_text())
    major, minor = torch.__version__.split(".")[:2]
    others = (f"{major}.{int(minor) + 1}.0", f"{int(major) + 1}.{minor}.0", f"{major}.{minor}0.0")
    for other in (*others, f"{major}.{minor}.99"):
        (tmp_path / other).write_text(json.dumps({**values, "torch": other}))
    code = """
        import pathlib, sys, torch
        folder, others = pathlib.Path(sys.argv[1]), sys.argv[2:]
        sys.path.insert(0, str(folder))
        for other in others:
            (folder / "torch_reduce" / "_build.json").write_text((folder / other).read_text())
            try:
                import torch_reduce
            except ImportError as error:
                text = str(error)
                assert other in text and torch.__version__ in text, text
                assert "build_ext --inplace" in text or "pip install --no-build-isolation" in text, text
                print("refused", other)
        print("loaded", torch_reduce.__file__)
    """
    result = run(code, tmp_path, *others, f"{major}.{minor}.99")
    succeeds(result, f"loaded {tmp_path}")
    assert [line.split()[1] for line in result.stdout.splitlines() if line.startswith("refused")] == list(others)


def test_a_missing_library_says_how_to_build_it(tmp_path):
    package = pathlib.Path(common.library_path()).parent
    shutil.copytree(package, tmp_path / "torch_reduce", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    result = run("import sys; sys.path.insert(0, sys.argv[1]); import torch_reduce", tmp_path)
    assert result.returncode == 1 and "ImportError" in result.stderr and "is not built" in result.stderr
    assert "build_ext --inplace" in result.stderr or "pip install --no-build-isolation" in result.stderr


def test_works_with_no_visible_gpu():
    code = """
        import torch, torch_reduce
        assert not torch.cuda.is_available()
        print(torch_reduce.sum(torch.ones(5)).item(), torch_reduce.explain(torch.ones(5), 0)[:0] == "")
    """
    succeeds(run(code, CUDA_VISIBLE_DEVICES=""), "5.0 True")


def test_a_cuda_tensor_on_a_cpu_only_build_is_a_clear_error():
    if common.build_stamp()["cuda"]:
        pytest.skip("this library has CUDA kernels")
    from torch._subclasses.fake_tensor import FakeTensorMode

    kernel = torch._C._dispatch_dump("gpureduce::sum")
    assert "CUDA" in kernel, "a CUDA tensor would get the dispatcher's wall of text"
    if torch.cuda.is_available():
        with pytest.raises(NotImplementedError, match="gpureduce was built without CUDA"):
            common.op(torch.ones(3, device="cuda"))
    with FakeTensorMode():  # shapes and dtypes need no kernels
        assert common.op(torch.empty(3, 4, device="cuda"), 1).shape == (3,)


def test_stamp_says_what_was_built():
    stamp = common.build_stamp()
    assert stamp["torch"].split(".")[:2] == torch.__version__.split(".")[:2]
    assert stamp["cuda"] in (None, torch.version.cuda)
    assert bool(stamp["cuda"]) == bool(stamp["architectures"])


@pytest.mark.cuda
def test_the_gpu_at_hand_is_among_the_architectures():
    major, minor = torch.cuda.get_device_capability()
    listed = common.build_stamp()["architectures"]
    assert any(a.split("+")[0].rstrip("af") == f"{major}.{minor}" for a in listed) or any(
        a.endswith("PTX") for a in listed
    )


def test_bad_build_switch_is_named():
    result = run("import runpy; runpy.run_path('setup.py')", GPUREDUCE_CUDA="yes")
    assert result.returncode != 0 and "GPUREDUCE_CUDA" in result.stderr and "yes" in result.stderr


def test_building_without_torch_says_what_to_type(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('No module named torch')\n")
    result = run("import runpy; runpy.run_path('setup.py')", PYTHONPATH=str(tmp_path))
    assert result.returncode != 0
    assert "pip install --no-build-isolation ." in result.stderr
    assert "Traceback" not in result.stderr
