"""Marks, skips with a reason, and the device parametrisation."""

import pytest
import torch

from tests import common


def pytest_configure(config):
    config.addinivalue_line("markers", "cuda: needs a CUDA GPU and a library built with CUDA")
    config.addinivalue_line("markers", "large: needs more than 10 GB of free GPU memory")


def pytest_collection_modifyitems(items):
    missing = common.why_no_cuda()
    for item in items:
        if missing and item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason=missing))


def pytest_report_header():
    return f"gpureduce: torch {torch.__version__}, CUDA tests: {common.why_no_cuda() or torch.cuda.get_device_name()}"


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    return request.param


@pytest.fixture
def geometry():
    """Sets the CUDA launch geometry for one test; the planner decides again afterwards."""

    def force(path=0, threads=0, chunk_leaves=0, threads_across=0, rows_per_group=0):
        torch.ops.gpureduce._force_geometry(path, threads, chunk_leaves, threads_across, rows_per_group)

    yield force
    force()


@pytest.fixture
def threads():
    """Sets torch's thread count for one test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
