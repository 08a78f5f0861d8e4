"""OpenCL on the platforms that its loader finds; skipped where there are none."""

import gc

import pytest

import hamr

NAMES = ("opencl_device", "opencl_svm")
FOUND = hamr.backends()["opencl"]
DEVICES = range(len(FOUND["devices"]))


def pytest_collection_modifyitems(items):
    if FOUND["available"]:
        return
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.skip(f"no OpenCL: {FOUND['reason']}"))


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(params=[*DEVICES] or [0])
def device(request):
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
