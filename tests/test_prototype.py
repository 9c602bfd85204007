"""docs/prototype.md: it shows the files as they are, and they build, register, differentiate and compute."""

import os
import re
import subprocess
import sys

import pytest
import torch

from tests import common
from torch_reduce import _facts

FOLDER = common.ROOT / "docs/prototype"
FILES = ("smooth_l1.cpp", "smooth_l1.cu", "smooth_l1.py")
CODE = """
import pathlib, sys, torch
sys.path.insert(0, sys.argv[1])
import smooth_l1
cuda = sys.argv[3] == "cuda"
smooth_l1.load(pathlib.Path(sys.argv[2]), cuda)
devices = ["cpu"] + ["cuda"] * (cuda and torch.cuda.is_available())
for device in devices:
    smooth_l1.check(device)
for bad in ((torch.ones(3), torch.ones(4)), (torch.ones(3), torch.ones(3).double())):
    try:
        torch.ops.mine.smooth_l1_sum(*bad)
    except RuntimeError as error:
        assert "differ" in str(error)
    else:
        raise AssertionError("accepted")
assert torch.ops.mine.smooth_l1_sum(torch.ones(0), torch.ones(0)).item() == 0
print("checked on", *devices)
"""


def build_and_check(folder, kind):
    """In a process of its own, since a library's operators can be registered once only."""
    toolkit = next(_facts.toolkits(), None)
    environment = {**os.environ, **({"CUDA_HOME": toolkit.home} if toolkit else {})}
    if not torch.cuda.is_available():
        environment["TORCH_CUDA_ARCH_LIST"] = "9.0"
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(FOLDER), str(folder), kind],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_document_shows_the_files():
    shown = re.findall(r"^`(\S+)`\n\n```\w+\n(.*?)^```$", (FOLDER.parent / "prototype.md").read_text(), re.S | re.M)
    assert [name for name, _ in shown] == list(FILES)
    for name, text in shown:
        assert text == (FOLDER / name).read_text(), f"docs/prototype.md shows another {name}"


def test_it_has_the_size_that_the_document_says():
    lines = sum((FOLDER / name).read_text().count("\n") for name in FILES)
    assert lines < 100
    assert f"{len(FILES)} files, {lines} lines".replace("3", "Three", 1) in (FOLDER.parent / "prototype.md").read_text()


@pytest.mark.parametrize("document", ["prototype.md", "ladder.md"])
def test_links_lead_somewhere(document):
    """Files exist, and the headings that are linked to in docs/ladder.md."""
    headings = re.findall(r"^#+ `?(\w+)`?$", (FOLDER.parent / "ladder.md").read_text(), re.M)
    for link in re.findall(r"\]\(([^)]+)\)", (FOLDER.parent / document).read_text()):
        path, _, heading = link.partition("#")
        assert (FOLDER.parent / path).exists(), link
        assert not heading or heading in headings, link


@pytest.mark.slow
def test_it_builds_and_works_on_the_cpu(tmp_path):
    assert "checked on cpu" in build_and_check(tmp_path, "cpu")


@pytest.mark.slow
def test_its_cuda_kernel_builds_where_there_is_no_gpu(tmp_path):
    if torch.version.cuda is None or next(_facts.toolkits(), None) is None:
        pytest.skip("torch has no CUDA, or there is no nvcc")
    if torch.cuda.is_available():
        pytest.skip("test_its_cuda_kernel_works builds it")
    assert "checked on cpu" in build_and_check(tmp_path, "cuda")


@pytest.mark.cuda
@pytest.mark.slow
def test_its_cuda_kernel_works(tmp_path):
    assert "checked on cpu cuda" in build_and_check(tmp_path, "cuda")
