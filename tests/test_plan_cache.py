"""The cache of prepared calls: what is found, what is not, and that a call never gets another one's result."""

import itertools
import threading

import pytest
import torch

from tests import common
from tests.common import assert_same_bits, name, op


class Count:
    """The hits and misses of this thread within a `with` block."""

    def __enter__(self):
        self.before = torch.ops.gpureduce._plan_cache_stats()
        return self

    def __exit__(self, *_):
        after = torch.ops.gpureduce._plan_cache_stats()
        self.hits, self.misses = (b - a for a, b in zip(self.before, after, strict=True))


@pytest.fixture(autouse=True)
def empty_cache(geometry):
    geometry()  # forgets what other tests have left


def test_a_repeated_call_is_found(device):
    x = common.random_data((5, 70), torch.float32, device=device)
    for call in ({}, {"dim": 1}, {"dim": [0], "keepdim": True}, {"dtype": torch.float64}, {"accumulate": "double"}):
        with Count() as first:
            want = op(x, **call)
        assert (first.hits, first.misses) == (0, 1), call
        with Count() as more:
            for _ in range(5):
                assert_same_bits(op(x, **call), want, str(call))
            assert_same_bits(op(x.clone(), **call), want, str(call))  # other memory, aligned alike
        assert (more.hits, more.misses) == (6, 0), call


def variants(device):
    """Calls that differ from one another in one thing each; their sums all differ."""
    flat = common.random_data(40 * 60 + 8, torch.float32, 5, device)
    x = flat[: 40 * 60].view(40, 60)
    yield x, {}
    yield x.view(60, 40), {"dim": 0}
    for dim in (0, 1, -1, [0], [1], [0, 1], [], None):
        yield x, {"dim": dim}
    yield x, {"dim": 0, "keepdim": True}
    yield x.t(), {"dim": 0}  # strides
    yield x.view(60, 40), {"dim": 1}  # sizes
    yield x[:, :40], {"dim": 1}
    yield flat[1 : 40 * 60 + 1].view(40, 60), {"dim": 1}  # alignment
    yield flat[4 : 40 * 60 + 4].view(40, 60), {"dim": 1}
    yield x.double(), {"dim": 1}
    yield x.bfloat16(), {"dim": 1}
    for dtype in (torch.float64, torch.float16, torch.complex64, torch.int64):
        yield x, {"dim": 1, "dtype": dtype}
    for mode in ("compensated", "double"):
        yield x, {"dim": 1, "accumulate": mode}
    yield x.view(2, 20, 3, 20), {"dim": [1, 3]}
    yield x.view(2, 20, 3, 20), {"dim": [0, 2]}


def test_alternating_calls_do_not_mix(device, geometry):
    calls = list(variants(device))
    want = []
    for x, call in calls:
        geometry()  # a miss for sure
        want.append(op(x, **call))
    for i, j in itertools.product(range(len(calls)), repeat=2):
        for k in (i, j):
            x, call = calls[k]
            assert_same_bits(op(x, **call), want[k], f"{call} after {calls[i][1]}")


def test_errors_are_not_remembered(device):
    x = torch.ones(3, 4, device=device)
    for _ in range(3):
        with pytest.raises(IndexError):
            op(x, 2)
        with pytest.raises(ValueError):
            op(x, 1, accumulate="kahan")
        with pytest.raises(RuntimeError):
            op(x, [0, 0])
        assert op(x, 1).tolist() == [4, 4, 4]


def test_converted_elements(device):
    """A narrowing call is two calls: the cache has both."""
    x = common.random_data((5, 70), torch.float64, device=device)
    want = op(x, 1, dtype=torch.float16)
    assert_same_bits(want, op(x.to(torch.float16), 1))
    with Count() as count:
        assert_same_bits(op(x, 1, dtype=torch.float16), want)
        assert_same_bits(op(x.t().contiguous().t(), 1, dtype=torch.float16), op(x.half().t().contiguous().t(), 1))
    assert count.hits >= 2


def test_more_shapes_than_room(device):
    """A thread keeps a bounded number of calls; those that were pushed out are prepared anew, and right."""
    x = torch.ones(3000, device=device)
    for _ in range(2):
        with Count() as count:
            for n in range(1, 3000):
                op(x[:n])
        assert count.misses > 2900
    assert [op(x[:n]).item() for n in (1, 7, 2999)] == [1, 7, 2999]


@pytest.mark.parametrize("dims", [6, 7, 12, 64])
def test_many_dims(device, dims):
    """Calls of more dims than the cache takes are prepared each time."""
    x = common.exact_data(64, torch.float32, device).view([2] * 6 + [1] * (dims - 6)).expand([2] * 6 + [1] * (dims - 6))
    named = list(range(0, dims, 2))
    with Count() as count:
        for _ in range(3):
            assert torch.equal(op(x, named).flatten(), torch.sum(x.view([2] * 6), [0, 2, 4]).flatten())
    assert count.hits == (2 if dims == 6 else 0)


@pytest.mark.cuda
def test_forced_geometry_is_seen(geometry):
    x = common.random_data(1 << 20, torch.float32, device="cuda")
    want = op(x)
    with Count() as count:
        for chunk in (32, 64, 128):
            geometry(chunk_leaves=chunk)
            assert_same_bits(op(x), want)
    assert (count.hits, count.misses) == (0, 3)


def test_geometry_empties_the_cache(device, geometry):
    x = torch.ones(33, device=device)
    op(x)
    geometry(threads=64)
    with Count() as count:
        op(x), op(x)
    assert (count.hits, count.misses) == (1, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8], ids=name)
def test_threads(device, dtype):
    """Threads that sum the same and different shapes at once, while another one empties all caches."""
    flat = common.random_data(64 * 64, dtype, 9, device)
    shapes = [(64, 64), (32, 128), (128, 32), (4096,), (16, 16, 16), (2, 2048)]
    want = {(shape, dim): op(flat.view(shape), dim) for shape in shapes for dim in (0, -1, None)}
    failures, done = [], threading.Event()

    def work(seed):
        keys = list(want)
        try:
            for i in range(400):
                shape, dim = keys[(i * (seed + 1) + seed) % len(keys)]
                assert_same_bits(op(flat.view(shape), dim), want[shape, dim], f"{shape} {dim}")
        except BaseException as error:
            failures.append(error)

    def empty():
        while not done.wait(0.001):
            torch.ops.gpureduce._force_geometry()

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    emptier = threading.Thread(target=empty)
    for thread in (*workers, emptier):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    emptier.join()
    assert not failures, failures[0]


def test_threads_come_and_go():
    """A thread's cache ends with it."""
    x = torch.ones(10)
    for _ in range(200):
        thread = threading.Thread(target=lambda: [op(x[:n]) for n in range(1, 10)])
        thread.start()
        thread.join()
    assert op(x).item() == 10
