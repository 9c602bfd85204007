"""CUDA as a citizen: streams, graphs, memory, devices, errors, and counts beyond 32 bits."""

import gc

import pytest
import torch

from tests import common
from tests.common import LAYOUTS, assert_same_bits, name, op

pytestmark = pytest.mark.cuda


def shapes():
    """Calls of every path: short, warp, one block, many blocks, columns of one and of many chunks, gathers."""
    yield (1 << 20,), None
    yield (1 << 17, 8), 1
    yield (1 << 14, 700), 1
    yield (3, 400_000), 1
    yield (1 << 17, 8), 0
    yield (64, 1 << 14), 0
    yield (30, 1000, 30), [0, 2]


def test_current_stream_is_used():
    """A launch on the legacy or on a pool stream would read the zeros before the fill."""
    stream = torch.cuda.Stream()
    for shape, dim in shapes():
        x = torch.zeros(shape, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            x.fill_(1)
            y = op(x, dim)
        stream.synchronize()
        assert y.sum().item() == x.numel(), (shape, dim)


def test_backward_uses_the_current_stream():
    stream = torch.cuda.Stream()
    x = torch.zeros(512, 3000, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        with torch.no_grad():
            x.fill_(1)
        (gradient,) = torch.autograd.grad(op(op(x * x, 1) * 3), x)
    stream.synchronize()
    assert (gradient == 6).all()


def test_capture_and_replay_with_new_inputs():
    for shape, dim in shapes():
        x = torch.zeros(shape, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = op(x, dim)
        for value in (1, 2, 3, 0, 1):
            x.fill_(value)
            graph.replay()
            assert y.sum().item() == value * x.numel(), (shape, dim)
        assert op(x, dim).sum().item() == x.numel()  # eager after the graph: the counters were left at zero


def test_first_call_of_all_may_be_captured():
    """Nothing is set up lazily outside the graph: a fresh process captures its first sum."""
    import subprocess
    import sys

    code = """
import torch, sys
torch.ops.load_library(sys.argv[1])
x = torch.ones(1 << 22, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = torch.ops.gpureduce.sum(x)
graph.replay(); assert y.item() == 1 << 22
x.fill_(2); graph.replay(); assert y.item() == 1 << 23
del graph, y
torch.cuda.empty_cache()
filler = torch.full((1 << 24,), float("nan"), device="cuda")
assert torch.ops.gpureduce.sum(x).item() == 1 << 23  # nothing eager lives in the memory of the graph
"""
    result = subprocess.run(
        [sys.executable, "-c", code, common.library_path()], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr


def test_capture_of_forward_and_backward():
    x = torch.ones(300, 5000, device="cuda", requires_grad=True)
    weights = torch.arange(300.0, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # torch asks for a warm-up on a side stream before a backward is captured
        torch.autograd.grad(op(x * x, 1), x, weights)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (gradient,) = torch.autograd.grad(op(x * x, 1), x, weights)
    with torch.no_grad():
        x.fill_(4)
    graph.replay()
    assert torch.equal(gradient, (8 * weights)[:, None].expand(300, 5000))


def test_many_graphs_replayed_on_two_streams_at_once():
    """Each graph must own its mailbox, however many were captured before and whatever runs beside it."""
    graphs = []
    for i in range(12):
        x = torch.full((1 << 21,), float(i + 1), device="cuda")
        columns = torch.full((1 << 16, 24), float(i + 1), device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y, z = op(x), op(columns, 0)
        graphs.append((graph, x, columns, y, z))
    gc.collect()
    torch.cuda.empty_cache()
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    for _ in range(10):
        for _, _, _, y, z in graphs:
            y.zero_(), z.zero_()
        torch.cuda.synchronize()
        for i, (graph, *_) in enumerate(graphs):
            with torch.cuda.stream(streams[i % 2]):
                graph.replay()
        torch.cuda.synchronize()
        for i, (_, x, _, y, z) in enumerate(graphs):
            assert y.item() == (i + 1) * x.numel()
            assert z.tolist() == [(i + 1) * (1 << 16)] * 24


def test_branches_of_a_graph_do_not_meet():
    """Launches of branches that run at once, of any number of chunks, have mailboxes of their own."""
    inputs = [torch.full((1 << 21,), float(i + 1), device="cuda") for i in range(4)]
    wide = [t.view(1 << 12, 512) for t in inputs]
    tall = [t.view(1 << 17, 16)[:, :5] for t in inputs]
    branches = [torch.cuda.Stream() for _ in inputs]
    results = [[] for _ in inputs]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        start = torch.cuda.Event()
        start.record()
        for stream in branches:
            stream.wait_event(start)
        for _ in range(10):  # in turns, so that neighbours in the capture are of different branches
            for i, stream in enumerate(branches):
                with torch.cuda.stream(stream):
                    results[i].append((op(tall[i], 0), op(inputs[i]), op(wide[i], 0)))
        for stream in branches:
            torch.cuda.current_stream().wait_stream(stream)
    for _ in range(20):
        for triple in (triple for of_branch in results for triple in of_branch):
            [t.fill_(-1) for t in triple]
        graph.replay()
        torch.cuda.synchronize()
        for i, of_branch in enumerate(results):
            for few, one, many in of_branch:
                assert one.item() == (i + 1) << 21
                assert few.tolist() == [(i + 1) << 17] * 5 and many.tolist() == [(i + 1) << 12] * 512


def test_graphs_come_and_go():
    """What a destroyed graph leaves behind, in counters and memory, does not disturb the next one."""
    x = torch.ones(1 << 20, device="cuda")
    kept = []
    for i in range(60):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y, z = op(x), op(x.view(-1, 8), 0)
        graph.replay()
        assert y.item() == 1 << 20 and z.tolist() == [1 << 17] * 8
        assert op(x).item() == 1 << 20
        if i % 10 == 0:
            kept.append((graph, y))
    for graph, y in kept:
        y.zero_()
        graph.replay()
        assert y.item() == 1 << 20


def test_two_eager_streams_interleaved():
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    inputs = [torch.full((1 << 22,), float(i + 1), device="cuda") for i in range(2)]
    tall = [torch.full((1 << 17, 24), float(i + 1), device="cuda") for i in range(2)]
    torch.cuda.synchronize()
    results = ([], [])
    for _ in range(300):
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                results[i].append((op(inputs[i]), op(tall[i], 0)))
    torch.cuda.synchronize()
    for i in range(2):
        assert {y.item() for y, _ in results[i]} == {float((i + 1) << 22)}
        assert (torch.stack([z for _, z in results[i]]) == float((i + 1) << 17)).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.complex64], ids=name)
def test_only_the_output_is_allocated(layout, dtype):
    flat = torch.ones(4000 * 6000, dtype=dtype, device="cuda")
    x = LAYOUTS[layout](flat, 4000, 6000)
    op(flat)  # makes the stream's mailbox
    for dim in [None, *range(x.dim())]:
        for options in ({}, {"dtype": torch.complex128 if dtype.is_complex else torch.float64}):
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            y = op(x, dim, **options)
            peak = torch.cuda.max_memory_allocated() - before
            assert peak < y.numel() * y.element_size() + (1 << 20), f"dim {dim}: {peak} bytes"


def test_no_host_synchronisation():
    x = torch.ones(1 << 22, device="cuda").view(-1, 1024).t()
    op(x), op(x, 1)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        results = op(x), op(x, 0), op(x, 1), op(x[:, :0], 1)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    start, end = torch.cuda.Event(), torch.cuda.Event()
    torch.cuda._sleep(200_000_000)
    start.record()
    results += (op(x), op(x, 1))
    end.record()
    assert not start.query(), "the sums waited for the sleep before them"
    torch.cuda.synchronize()
    assert results[0].item() == 1 << 22


def test_no_sticky_error_after_empty_inputs():
    for shape in ((0,), (0, 3), (3, 0), (4, 5, 0), (0, 0)):
        x = torch.zeros(shape, device="cuda", requires_grad=True)
        for dim in [None, *range(len(shape))]:
            y = op(x, dim)
            assert y.cpu().count_nonzero() == 0
            (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
            assert gradient.shape == x.shape
    torch.cuda.synchronize()
    assert torch.ones(3, device="cuda").sum().item() == 3


def test_device_guard():
    if torch.cuda.device_count() < 2:
        pytest.skip("needs a second GPU")
    assert torch.cuda.current_device() == 0
    for shape, dim in shapes():
        x = common.random_data(shape, torch.float32, seed=60)
        y = op(x.to("cuda:1"), dim)
        assert y.device == torch.device("cuda:1") and torch.cuda.current_device() == 0
        assert_same_bits(y.cpu(), op(x.to("cuda:0"), dim).cpu())


def test_backward_on_cuda_is_the_cpu():
    for shape, dim in shapes():
        x = common.random_data(shape, torch.float32, seed=61)
        grads = []
        for device in ("cpu", "cuda"):
            leaf = x.detach().clone().to(device).requires_grad_()
            y = op(leaf * 3, dim)
            y.backward(common.exact_data(y.numel(), torch.float32, device).view(y.shape))
            grads.append(leaf.grad.cpu())
        assert_same_bits(*grads)


def test_sums_survive_an_allocation_storm():
    """Memory goes back to the allocator while the kernel still runs; stream order keeps it safe."""
    x = torch.ones(1 << 22, device="cuda")
    results = []
    for i in range(200):
        results.append(op(x))
        torch.full((1 << (10 + i % 12),), float("nan"), device="cuda")
    assert {y.item() for y in results} == {float(1 << 22)}
