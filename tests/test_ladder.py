"""The ladder: its descriptions and errors everywhere, its sums on CUDA, and the checker against sums that are wrong."""

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import torch_reduce
from tests import common, read_checker

op = torch.ops.gpureduce.ladder
RUNGS = torch_reduce.ladder.rungs()
SUMS = [call for rung in RUNGS if rung.kind == "sum" for call in rung.calls]
ORDER = ["naive", "sequential", "strided", "serial", "float4", "vec4_serial", "warp_shuffle", "two_pass", "slots"]
ORDER += ["atomic_per_block", "atomic_per_element", "kahan", "double", "production"]
SIZES = [1, 31, 1000, 1_000_000, 1_000_003, 10_000_000, (1 << 26) + 5]


# --- descriptions


def test_the_sums_are_in_their_order():
    assert [rung.name for rung in RUNGS if rung.kind == "sum"] == ORDER
    assert {rung.kind for rung in RUNGS} == {"sum", "map", "tile", "columns", "pipeline", "adaptive"}
    assert len({rung.name for rung in RUNGS}) == len(RUNGS)


def test_every_rung_is_described():
    for rung in RUNGS:
        for text in (rung.idea, rung.cost, rung.limits):
            assert len(text) > 10 and text.endswith("."), (rung.name, text)
    assert {rung.name: rung.parameters for rung in RUNGS if rung.kind == "sum" and rung.parameters} == {
        "serial": (1, 2, 4, 8, 16),
        "vec4_serial": (1, 2, 4, 8),
    }
    assert json.loads(torch.ops.gpureduce.ladder_rungs())[0]["name"] == "naive"
    assert not next(rung for rung in RUNGS if rung.name == "atomic_per_block").deterministic


# --- calls that are refused


@pytest.mark.parametrize("rung", ["", "nave", "serial", "serial:3", "naive:1", "serial:04", "serial:4:4", "serial:-1"])
def test_unknown_rungs(rung):
    with pytest.raises(ValueError, match=r"does not exist .expected one of naive, sequential, .*serial:16, float4"):
        op(torch.ones(5), rung)


def test_sums_need_cuda_tensors():
    with pytest.raises(NotImplementedError, match=r"gpureduce::ladder: rung 'naive'.*runs on CUDA"):
        op(torch.ones(5), "naive")


def refused(error, match, *arguments):
    with pytest.raises(error, match=match):
        op(*arguments)


@pytest.mark.parametrize("where", ["cpu", "meta", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_wrong_tensors(where):
    x = torch.ones(4, 4, device=where)
    refused(RuntimeError, "expects self of dtype Float, but it is of dtype Double", x.double(), "naive")
    refused(RuntimeError, r"contiguous self, but its sizes are \[4, 4\] and its strides \[1, 4\]", x.t(), "naive")
    refused(RuntimeError, "'naive' takes no other tensor", x, "naive", x)
    refused(RuntimeError, r"same sizes, but got \[4, 4\] and \[2, 4\]", x, "map:1", x[:2])
    refused(RuntimeError, "'tile:16' needs other, .* but it is None", x, "tile:16")
    refused(RuntimeError, r"as many columns of self as rows of other", x, "tile:16", x[:3])
    refused(RuntimeError, "expects self to be 2-d, but it is 1-d", x[0], "columns")
    refused(RuntimeError, "expects other of dtype Long, but it is of dtype Float", x[0], "adaptive", x[0])
    refused(RuntimeError, "one offset more", x[0], "adaptive", torch.empty(0, dtype=torch.int64, device=where))


@pytest.mark.cuda
def test_tensors_in_the_wrong_place():
    x = torch.ones(4, device="cuda")
    refused(RuntimeError, "reads the memory of the host, but self is on cuda:0", x, "pipeline:2")
    refused(RuntimeError, "other is on cpu, but self is on cuda:0", x, "map:1", x.cpu())


def test_not_differentiable():
    x = torch.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable, but self requires a gradient"):
        op(x, "naive")
    with pytest.raises(RuntimeError, match="not differentiable, but other requires a gradient"):
        op(x.detach(), "map:1", x)
    with torch.no_grad(), pytest.raises(NotImplementedError, match="CUDA"):
        op(x, "naive")


def test_meta():
    x, offsets = torch.ones(6, 4, device="meta"), torch.ones(8, dtype=torch.int64, device="meta")
    for call in SUMS:
        assert op(x, call).shape == () and op(x, call).dtype == torch.float32
    assert op(x, "map:2").shape == (6, 4)
    assert op(x, "tile:32", x.t().contiguous()).shape == (6, 6)
    assert op(x, "column_tile:8").shape == (4,)
    assert op(x.view(-1), "adaptive", offsets).shape == (7,)
    refused(NotImplementedError, "has no Meta kernel", x, "pipeline:1")


# --- the checker


def plain_indices(n, items, block=256):
    """The elements that serial reads, in blocks of `items` times 256."""
    first = torch.arange(-(-n // (block * items)) * block).view(-1, block)
    first = first % block + first // block * (block * items)
    return torch.cat([(first + i * block).view(-1) for i in range(items)])


def faulty_indices(n, items, block=256):
    """Those of tests/cpp/faulty_serial.cu: (block * 256 + thread) * items + i * 256."""
    first = torch.arange(-(-n // (block * items)) * block) * items
    return torch.cat([first + i * block for i in range(items)])


def sum_at(indices):
    def function(x):
        at = indices(x.numel())
        return x[at[at < x.numel()]].double().sum()

    return function


@pytest.mark.parametrize("items", [2, 4, 8, 16])
def test_checker_catches_the_faulty_index(items):
    for n in (5000, 100_000, 1_000_003):
        assert read_checker.faults(sum_at(lambda n: plain_indices(n, items)), n, offsets=(0, 1)) == []
        found = read_checker.faults(sum_at(lambda n: faulty_indices(n, items)), n)
        assert {fault.split()[0] for fault in found} == {"weights", "marks"}, found
        ones = torch.ones(n)
        assert sum_at(lambda n: faulty_indices(n, items))(ones) > (1 - 256 * items / n) * n, "ones hardly show it"


def test_checker_catches_weights_that_repeat():
    """Weights of an odd period would not do: multiples of 4, read 4 times each, have the same sum but for the ends."""
    n, period = 3 * 31 * 4096, 3 * 31
    i = torch.arange(n)
    periodic = torch.where(i % 3 == 1, -(1 + i % 31), 1 + i % 31).double()
    assert period % 2 == 1 and periodic[::4].sum() * 4 == periodic.sum()
    assert read_checker.faults(lambda x: 4 * x[::4].double().sum(), n) != []


@pytest.mark.parametrize("n", [1, 5, 1000, 70_001])
def test_checker_catches_single_faults(n):
    """Past the end, short of it, one element twice, one for another."""
    whole = lambda x: x.double().sum()  # noqa: E731
    assert read_checker.faults(whole, n, offsets=(0, 3)) == []
    for wrong in (lambda x: whole(x[:-1]), lambda x: whole(x) + x[n // 2], lambda x: whole(x[1:]) + x[-1]):
        assert read_checker.faults(wrong, n) != [] or (n == 1 and wrong(torch.ones(1)) == 1)


@pytest.mark.parametrize("n", [1, 100, 70_000, 1 << 22])
def test_data_are_exact_in_any_order(n):
    for make in read_checker.DATA.values():
        x = make(n, 3)
        assert x.dtype == torch.float32 and x.eq(x.trunc()).all()
        for order in (x, x.flip(0), x[torch.randperm(n)]):
            assert order.cumsum(0, dtype=torch.float64).abs().max() < read_checker.EXACT
    assert (read_checker.weights(n) != 0).all()


# --- the sums on CUDA


def _without_memory(n):
    """Why n floats and their weights do not fit; nothing if they do."""
    return "" if torch.cuda.mem_get_info()[0] > 8 * n + (1 << 30) else f"{n} floats do not fit into the free memory"


@pytest.mark.cuda
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("rung", SUMS)
def test_every_element_counts_once(rung, n):
    assert read_checker.faults(lambda x: op(x, rung), n, offsets=(0, 1, 2, 3), seeds=(0,), device="cuda") == []


@pytest.mark.cuda
@pytest.mark.parametrize("rung", SUMS)
def test_sizes_around_the_edges(rung):
    for edge in (256, 512, 1024, 4096, 8192, 65536, 1 << 20, 8192 * 4096):
        for n in (edge - 1, edge, edge + 1):
            assert read_checker.faults(lambda x: op(x, rung), n, offsets=(0, 1), seeds=(n,), device="cuda") == []


@pytest.mark.cuda
@pytest.mark.large
@pytest.mark.parametrize("rung", ["vec4_serial:4", "two_pass", "slots", "atomic_per_block", "double", "production"])
def test_more_than_2_31_elements(rung):
    n = (1 << 31) + 5
    if reason := _without_memory(n):
        pytest.skip(reason)
    assert read_checker.faults(lambda x: op(x, rung), n, offsets=(1,), seeds=(0,), device="cuda") == []


def _faulty_serial(folder):
    """tests/cpp/faulty_serial.cu as a function of a tensor; skips where it cannot be built."""
    from torch.utils.cpp_extension import CUDA_HOME

    homes = [f"{home}/bin/nvcc" for home in (CUDA_HOME, "/usr/local/cuda") if home]
    nvcc = next((path for path in homes if Path(path).exists()), None) or shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not found, so the faulty kernel cannot be built")
    library, (major, minor) = folder / "faulty_serial.so", torch.cuda.get_device_capability()
    source = Path(__file__).parent / "cpp/faulty_serial.cu"
    flags = ["-shared", "-cudart=shared", "-Xcompiler", "-fPIC", f"-arch=sm_{major}{minor}", "-o", str(library)]
    subprocess.run([nvcc, *flags, str(source)], check=True)
    function = ctypes.CDLL(str(library)).faulty_serial
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]

    def call(x):
        out = torch.empty((), device="cuda")
        assert function(x.data_ptr(), x.numel(), out.data_ptr(), torch.cuda.current_stream().cuda_stream) == 0
        return out

    return call


@pytest.mark.cuda
def test_checker_catches_the_faulty_kernel(tmp_path):
    faulty = _faulty_serial(tmp_path)
    for n in (5000, 1_000_003):
        assert {fault.split()[0] for fault in read_checker.faults(faulty, n, device="cuda")} == {"weights", "marks"}
    assert faulty(torch.ones(10_000_000, device="cuda")).item() == pytest.approx(1e7, rel=1e-3), "ones hardly show it"


@pytest.mark.cuda
@pytest.mark.parametrize("rung", SUMS)
def test_no_elements_and_any_shape(rung):
    assert op(torch.empty(0, device="cuda"), rung).item() == 0
    assert op(torch.ones(3, 5, 7, device="cuda"), rung).item() == 105
    assert op(torch.tensor(3.0, device="cuda"), rung).item() == 3


@pytest.mark.cuda
@pytest.mark.parametrize("rung", SUMS)
def test_infinities_and_nan(rung):
    infinity, nan = float("inf"), float("nan")
    for n, values, want in (
        (5000, [infinity], infinity),
        (5000, [-infinity, -infinity], -infinity),
        (5000, [infinity, -infinity], nan),
        (100_000, [nan], nan),
    ):
        x = torch.ones(n, device="cuda")
        x[[7, n - 1][: len(values)]] = torch.tensor(values, device="cuda")
        torch.testing.assert_close(op(x, rung).item(), want, equal_nan=True)


@pytest.mark.cuda
@pytest.mark.parametrize(
    "rung", [call for rung in RUNGS if rung.kind == "sum" and rung.deterministic for call in rung.calls]
)
def test_the_same_bits_every_run(rung):
    x = common.random_data(3_000_001, torch.float32, device="cuda")
    first = op(x, rung)
    for _ in range(5):
        common.assert_same_bits(op(x, rung), first, rung)


@pytest.mark.cuda
@pytest.mark.parametrize("rung", ["kahan", "double"])
def test_accurate_sums(rung):
    """Random values in [0, 1) plus a large one: within one unit in the last place of the fp64 sum."""
    x = torch.rand(10_000_000, device="cuda")
    x[12345] = 1e9
    want = x.double().sum().item()
    assert abs(op(x, rung).item() - want) <= 2**-23 * want
    assert abs(op(x, "production").item() - want) <= 2**-23 * want * 30


@pytest.mark.cuda
def test_production_is_sum():
    for n in (1, 1000, 1_000_003):
        x = common.random_data(n + 1, torch.float32, device="cuda")
        for offset in (0, 1):
            common.assert_same_bits(op(x[offset:], "production"), common.op(x[offset:]))


@pytest.mark.cuda
@pytest.mark.parametrize("rung", SUMS)
def test_two_streams(rung):
    inputs = [read_checker.weights(2_000_003, seed, "cuda") for seed in (1, 2)]
    wanted = [read_checker.exact_sum(x) for x in inputs]
    streams = [torch.cuda.Stream() for _ in inputs]
    torch.cuda.synchronize()
    got = [[], []]
    for _ in range(10):
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                got[i].append(op(inputs[i], rung))
    torch.cuda.synchronize()
    for results, want in zip(got, wanted, strict=True):
        assert {result.item() for result in results} == {want}


@pytest.mark.cuda
@pytest.mark.parametrize("rung", SUMS)
def test_cuda_graphs(rung):
    x = read_checker.weights(1_000_003, 1, "cuda")
    op(x, rung)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = op(x, rung)
    for seed in (2, 3):
        x.copy_(read_checker.weights(x.numel(), seed, "cuda"))
        graph.replay()
        assert result.item() == read_checker.exact_sum(x)


@pytest.mark.cuda
def test_opcheck():
    x = torch.ones(1000, device="cuda")
    for arguments in ((x, "slots"), (x, "map:2", x), (x.view(20, 50), "tile:16", x.view(50, 20))):
        torch.library.opcheck(op.default, arguments)
