"""OpenMP on the runtime that hamr finds; skipped where there is none."""

from pathlib import Path

import pytest

from tests.support import openmp_runtime
from tests.support.live_memory import nothing_left

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE) and openmp_runtime.absent():
            item.add_marker(pytest.mark.skip(openmp_runtime.absent()))


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", range(max(len(openmp_runtime.found()["devices"]), 1)))


@pytest.fixture(autouse=True)
def clean():
    with nothing_left("openmp"):
        yield
