"""No copy of a non-contiguous input, and no storage beyond the output: measured with torch's profiler and with the
resident set of a fresh process."""

import subprocess
import sys

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from tests import common
from tests.common import LAYOUTS, name, op


def allocated_bytes(function):
    """Bytes that torch's CPU allocator handed out while function ran."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        result = function()
    total = sum(max(0, event.self_cpu_memory_usage) for event in recorded.events())
    del result
    return total


def test_the_measure_sees_a_copy():
    x = torch.zeros(1000, 1000).t()
    assert allocated_bytes(lambda: x.contiguous()) >= 4_000_000


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool, torch.complex64], ids=name)
def test_only_the_output_is_allocated(dtype, layout):
    x = LAYOUTS[layout](common.exact_data(300 * 700, dtype), 300, 700)
    for dim in [None, *range(x.dim())]:
        for options in ({}, {"accumulate": "double"}):
            result = op(x, dim, **options)
            output = result.numel() * result.element_size()
            used = allocated_bytes(lambda dim=dim, options=options: op(x, dim, **options))
            assert used <= max(output, 64) + 64, f"dim {dim}: {used} bytes for an output of {output}"


def test_peak_resident_memory():
    """A 256 MB input read through a transpose, a slice and a wider dtype adds less than 40 MB to the process."""
    code = """
import resource, sys, torch
torch.ops.load_library(sys.argv[1])
op = torch.ops.gpureduce.sum
base = torch.ones(8192, 8192)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
op(torch.ones(100, 100).t()[::2, ::3], 0, dtype=torch.float64, accumulate="compensated")
before = peak()
assert op(base.t(), 0)[5].item() == 8192
assert op(base[:, ::2], 1)[7].item() == 4096
assert op(base.view(64, 128, 8192).permute(2, 0, 1)[:, 1:], [0, 2])[3].item() == 8192 * 128
assert op(base[1:, 1:], dtype=torch.float64).item() == 8191 * 8191
assert op(base.t(), accumulate="compensated").item() == 8192 * 8192
print(peak() - before)
"""
    result = subprocess.run(
        [sys.executable, "-c", code, common.library_path()], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 40, f"{result.stdout.strip()} MB"


def test_results_do_not_leak():
    """The same call 500 times leaves the resident set where it was."""
    code = """
import sys, torch
torch.ops.load_library(sys.argv[1])
op = torch.ops.gpureduce.sum
torch.set_num_threads(1)
x = torch.ones(512, 512, requires_grad=True)
resident = lambda: int(open("/proc/self/statm").read().split()[1]) * 4 // 1024
def work(count):
    for _ in range(count):
        op(x, 1).sum().backward()
        x.grad = None
work(100)
before = resident()
work(500)
print(resident() - before)
"""
    result = subprocess.run(
        [sys.executable, "-c", code, common.library_path()], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 20, f"{result.stdout.strip()} MB"
