"""SYCL on a processor: test_sycl_suite.py runs the other files where its runtime is found."""

import gc
import os

import pytest

import hamr
from tests.support import sycl_runtime

NAMES = ("sycl_device", "sycl_shared", "sycl_host")

#: OpenCL's loader, by which SYCL finds a processor, reads once where the runtimes are.
collect_ignore = [] if os.environ.get(sycl_runtime.CHOSEN) else list(sycl_runtime.IN_PROCESS)


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(autouse=True)
def clean():
    gc.collect()
    before = hamr.stats()["allocators"]
    yield
    gc.collect()
    after = hamr.stats()["allocators"]
    for name in NAMES:
        assert after.get(name, {"live": 0})["live"] == before.get(name, {"live": 0})["live"], name
