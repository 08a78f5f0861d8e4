"""One emulator with two devices for all tests; each test must leave it as it was."""

import pytest

from tests.emulator.emulated_driver import Driver, build


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("emulator"), "libemulator.so")


@pytest.fixture(scope="session")
def driver(library):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HAMR_EMULATOR_DEVICES", "2")
        patch.delenv("HAMR_EMULATOR_MODE", raising=False)
        driver = Driver(library)
        driver.start()
    driver.get("cuDevicePrimaryCtxRetain", 1)
    return driver


@pytest.fixture
def d(driver):
    """The driver with device 0 current; afterwards all is given back and without violations."""
    driver.do("cuCtxSetCurrent", driver.get("cuDevicePrimaryCtxRetain", 0))
    before = [driver.live(what) for what in ("memory", "streams", "events", "pools", "modules")]
    yield driver
    driver.do("cuDevicePrimaryCtxRelease_v2", 0)
    driver.finish()
    violations = driver.violations()
    driver.library.emulator_reset()
    assert violations == []
    after = [driver.live(what) for what in ("memory", "streams", "events", "pools", "modules")]
    assert after == before
