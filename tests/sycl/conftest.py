"""SYCL on a processor: test_sycl_suite.py runs the other files where its runtime is found."""

import os

import pytest

from tests.support import sycl_runtime
from tests.support.live_memory import nothing_left

NAMES = ("sycl_device", "sycl_shared", "sycl_host")

#: OpenCL's loader, by which SYCL finds a processor, reads once where the runtimes are.
collect_ignore = [] if os.environ.get(sycl_runtime.CHOSEN) else list(sycl_runtime.IN_PROCESS)


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(autouse=True)
def clean():
    with nothing_left(*NAMES):
        yield
