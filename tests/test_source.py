"""Rules of the source tree: who may include what, no build switches in code, one row of everything for each op."""

import re

import pytest
import torch

from bench import operators
from tests import common, family, golden

CSRC = common.ROOT / "csrc"
SOURCES = sorted(path for path in CSRC.rglob("*") if path.suffix in (".h", ".cuh", ".cpp", ".cu", ".inc"))
INCLUDE = re.compile(r'^\s*#\s*include\s+(<[^>]+>|"[^"]+")', re.M)

# The include table: folder, or file -> (project folders it may include, patterns of outside headers it may include).
STD = r"<[a-z0-9_]+>|<immintrin\.h>"
CUDA = r"<cuda(_runtime|_runtime_api|_fp16|_bf16|_pipeline)?\.h>|<cooperative_groups(/\w+)?\.h>|<cub/.*>|<cuda/.*>"
TORCH = r"<(torch|ATen|c10)/.*>"
TABLE = {
    "core": ({"core"}, STD),
    "cpu": ({"cpu", "core"}, STD),
    "cuda": ({"cuda", "core"}, f"{STD}|{CUDA}"),
    "ladder": ({"ladder", "core"}, f"{STD}|{CUDA}"),
    "ladder/production.cu": ({"ladder", "core", "cuda/run.h"}, STD),  # the last rung
    "python": ({"torch/operators.h"}, f"{STD}|{TORCH}"),
    "torch": ({"torch", "core", "cpu/run.h", "cuda/run.h", "ladder/ladder.h"}, f"{STD}|{CUDA}|{TORCH}"),
}


def text_of(path):
    """The file without its comments."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def ids(path):
    return str(path.relative_to(CSRC))


def test_there_are_sources():
    assert {path.relative_to(CSRC).parts[0] for path in SOURCES} >= {"core", "cpu", "torch"}


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_include_table(path):
    folder = path.relative_to(CSRC).parts[0]
    assert folder in TABLE, f"csrc/{folder} is not in the include table"
    folders, outside = TABLE.get(ids(path), TABLE[folder])
    for header in INCLUDE.findall(path.read_text()):
        if header.startswith("<"):
            assert re.fullmatch(outside, header), f"{path.name} includes {header}"
            continue
        target = (path.parent / header.strip('"')).resolve()
        assert target.exists() and target.is_relative_to(CSRC), f"{path.name} includes {header}"
        place = target.relative_to(CSRC)
        allowed = place.parts[0] in folders or str(place) in folders
        assert allowed, f"{path.relative_to(CSRC)} includes {place}"


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_no_build_switches(path):
    text = text_of(path)
    assert not re.search(r"WITH_CUDA|USE_CUDA|GPUREDUCE_CUDA", re.sub(r'"[^"\n]*"', "", text)), (
        "setup.py leaves files out instead"
    )
    assert "Python.h" not in text and "pybind11" not in text and "PYBIND11" not in text
    assert "ATen/cuda/CUDAContext.h" not in text, "c10/cuda/CUDAStream.h does without cuBLAS and cuSPARSE headers"
    if path.relative_to(CSRC).parts[0] in ("core", "cpu", "cuda", "ladder"):
        assert not re.search(r"\b(at|c10|torch)::", text), "kernels and plan know no torch"
    assert "AT_DISPATCH" not in text


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_offsets_are_64_bit(path):
    """An int that holds an element count or offset is the fault behind every failure beyond 2^31 elements."""
    narrow = r"\b(?:int|unsigned|int32_t|uint32_t|float)\s+(?:const\s+)?(n|offset|numel|outputs|elements)\s*[=;,)]"
    assert not re.findall(narrow, text_of(path))


def test_no_contraction_and_no_fast_math():
    build = (common.ROOT / "setup.py").read_text()
    assert "-ffp-contract=off" in build and "--fmad=false" in build
    assert not re.search(r"fast-math|use_fast_math|ftz=true|-Ofast|march=native|-std=", re.sub(r"#.*", "", build))


def rows():
    """(name, overload, gradient rule) of every row of the one table of operators."""
    table = re.search(r"kOperators\[\] = \{(.*?)\n\};", text_of(CSRC / "torch/operators.h"), re.S)[1]
    return re.findall(r'\{"(\w+)",\s*"(\w*)".*?GradientRule::(\w+)', table, re.S)


def test_every_op_has_its_rows():
    """An operator of the table is one row everywhere: schema, oracle, gradient, golden file, bench."""
    assert len(rows()) > 20
    oracles = {member.name.split()[0] for member in family.FAMILY}
    rules = (CSRC / "torch/gradients.h").read_text()
    measured = {operator.function for operator in operators.LIST}
    for name, overload, rule in rows():
        full = f"{name}.{overload}" if overload else name
        assert getattr(getattr(torch.ops.gpureduce, name), overload or "default"), f"{full} has no schema"
        assert full in oracles, f"{full} has no oracle"
        assert f"case GradientRule::{rule}:" in rules, f"{full} has no autograd decision"
        assert name in golden.FUNCTIONS and golden.path(name).exists(), f"{full} has no golden bits"
        assert name in measured, f"{full} has no bench row"


def test_every_rung_is_in_the_one_list():
    """A rung is one struct, one word in the list, one launcher in a .cu; a build without CUDA sees no CUDA header."""
    folder = CSRC / "ladder"
    headers = "\n".join(text_of(folder / name) for name in ("sums.h", "strategies/strategies.h"))
    structs = [body for body in re.split(r"\nstruct ", headers)[1:] if "const char* name" in body]
    listed = re.search(r"AllRungs =\s*TypeList<(.*?)>;", text_of(folder / "ladder.h"), re.S)[1]
    assert [re.match(r"\w+", body)[0] for body in structs] == re.findall(r"\w+", listed)
    kernels = "\n".join(path.read_text() for path in folder.rglob("*.cu"))
    assert sorted(re.findall(r"Error (\w+)::launch\(", kernels)) == sorted(re.findall(r"\w+", listed))
    for path in (*folder.rglob("*.h"), *folder.rglob("*.cpp")):
        assert not re.search(r"#include <cuda", path.read_text()), f"{path.name} must build without CUDA"


def test_golden_files_have_every_type():
    assert {key.split()[0] for key in golden.read("sum")} >= {common.name(dtype) for dtype in common.FLOATING}
    for function in golden.FUNCTIONS:
        keys = {key.split(" [")[0] for key in golden.read(function)}
        members = [member for member in family.FAMILY if member.function == function and function != "sum"]
        for member in members:
            kept = set(golden.DTYPES) & set(member.dtypes) - set(member.composed)
            assert keys >= {f"{member} {common.name(dtype)}" for dtype in kept}, member


def test_readme_tables_are_the_results():
    """The tables between the generated marks are what bench/report.py makes of bench/results."""
    report, readme = common.ROOT / "bench/report.py", common.ROOT / "README.md"
    if not report.exists() or not readme.exists():
        pytest.skip("bench/report.py or README.md does not exist")
    import subprocess
    import sys

    before = readme.read_text()
    check = subprocess.run(
        [sys.executable, "-m", "bench.report", "--check"], cwd=common.ROOT, capture_output=True, text=True, timeout=120
    )
    assert readme.read_text() == before, "--check must not write"
    assert check.returncode == 0, check.stdout + check.stderr
