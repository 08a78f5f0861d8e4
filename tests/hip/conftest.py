"""What the tests of HIP share: the emulated driver below the stand-in must not be misused."""

import gc

import pytest

import hamr
from tests.cuda import driver

HIP_ALLOCATORS = [
    hamr.Allocator.hip,
    hamr.Allocator.hip_async,
    hamr.Allocator.hip_uva,
    hamr.Allocator.hip_host,
]


@pytest.fixture
def emulator():
    return driver.emulator


@pytest.fixture(autouse=True)
def no_violations():
    yield
    gc.collect()
    driver.emulator.stop_failing()
    driver.emulator.finish()
    found = driver.emulator.violations()
    driver.emulator.reset()
    assert found == []


@pytest.fixture(params=HIP_ALLOCATORS, ids=lambda a: a.name)
def hip_allocator(request):
    return request.param


@pytest.fixture(params=HIP_ALLOCATORS[:-1], ids=lambda a: a.name)
def device_allocator(request):
    """Those whose memory HIP's devices reach."""
    return request.param
