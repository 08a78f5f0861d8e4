"""OpenCL on the platforms that its loader finds; skipped where there are none."""

from pathlib import Path

import pytest

from tests.support import opencl_runtime
from tests.support.live_memory import nothing_left

NAMES = ("opencl_device", "opencl_svm")
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE) and opencl_runtime.absent():
            item.add_marker(pytest.mark.skip(opencl_runtime.absent()))


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        count = len(opencl_runtime.found()["devices"])
        metafunc.parametrize("device", range(max(count, 1)))


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(autouse=True)
def clean():
    with nothing_left(*NAMES):
        yield
