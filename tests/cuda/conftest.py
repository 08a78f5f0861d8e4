"""What the CUDA tests share: devices to skip without, and an emulator that must not be misused."""

import json

import pytest

import hamr
from hamr import hetero
from tests.cuda import driver
from tests.support.sharers import Process

CUDA_ALLOCATORS = [
    hamr.Allocator.cuda,
    hamr.Allocator.cuda_async,
    hamr.Allocator.cuda_uva,
    hamr.Allocator.cuda_host,
    hamr.Allocator.cuda_vmm,
]


def pytest_runtest_setup(item):
    for marker in item.iter_markers("multigpu"):
        needed = marker.args[0] if marker.args else 2
        if needed > driver.DEVICES:
            pytest.skip(f"{driver.DEVICES} CUDA devices, needs {needed}")


@pytest.fixture(scope="session", autouse=True)
def needs_device():
    """Most tests and modules need a device; those of its absence override this."""
    if driver.DEVICES == 0:
        pytest.skip("no CUDA device")


@pytest.fixture(autouse=True)
def current_context(needs_device):
    """Where there is one device its context is current, as beside other libraries; else none is."""
    if driver.DEVICES == 1:
        driver.set_current(driver.context(0))
    yield
    if driver.DEVICES == 1:
        driver.set_current(0)


@pytest.fixture
def emulator():
    """For what a real driver offers no means for: injected failures, and a look at late work."""
    if driver.emulator is None:
        pytest.skip("no fault injection, nor a view of late work, with a real driver")
    return driver.emulator


@pytest.fixture(autouse=True)
def no_violations(request, needs_device):
    """Nothing that a test made hamr do misused the driver.

    Where a test leaves work without order, as its callers may, it is marked so, and that is told.
    """
    yield
    if driver.emulator is None or driver.DEVICES == 0:
        return
    driver.emulator.stop_failing()
    driver.emulator.finish()
    found = driver.emulator.violations()
    driver.emulator.reset()
    races = [text for text in found if driver.RACE in text]
    if request.node.get_closest_marker("races"):
        assert races
        found = [text for text in found if text not in races]
    assert found == []


#: What blocks the caller until a device has done something.
BLOCKING = (
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cuCtxSynchronize",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoD_v2",
)


@pytest.fixture
def nothing_blocks(emulator):
    """No thread waits for a device in the test."""
    before = {call: emulator.calls(call) for call in BLOCKING}
    yield
    assert {call: emulator.calls(call) for call in BLOCKING} == before


@pytest.fixture
def cuda_alone(monkeypatch):
    """Work is scheduled on CUDA's devices: other runtimes may be on the machine, too."""
    monkeypatch.setenv("HAMR_ACCELERATORS", "cuda")


@pytest.fixture
def token(cuda_alone):
    """A stream of the first device."""
    return hetero.DeviceChooser().choose(0)


@pytest.fixture(params=CUDA_ALLOCATORS, ids=lambda a: a.name)
def cuda_allocator(request):
    return request.param


@pytest.fixture(params=[a for a in CUDA_ALLOCATORS if a.name != "cuda_host"], ids=lambda a: a.name)
def device_allocator(request):
    """Those whose memory CUDA reaches."""
    return request.param


@pytest.fixture(params=range(max(driver.DEVICES, 1)), ids="device {}".format)
def device(request):
    return request.param


@pytest.fixture
def processes(tmp_path):
    """Makes processes that share their memory, of which none may misuse the driver."""
    report, made = tmp_path / "report", []

    def make(**settings):
        pools = {"HAMR_CUDA_POOL_SHARED": "1", "HAMR_EMULATOR_REPORT": str(report)}
        made.append(Process(**pools, **settings))
        return made[-1]

    yield make
    for each in made:
        each.__exit__()
    lines = report.read_text().splitlines() if report.exists() else []
    assert [json.loads(line)["violations"] for line in lines] == [[]] * len(lines)


@pytest.fixture
def trimmed(needs_device):
    hamr.trim()


@pytest.fixture
def register():
    """on_out_of_memory, for one test."""
    added = []

    def add(callback):
        added.append(hamr.on_out_of_memory(callback))
        return added[-1]

    yield add
    for handle in added:
        handle.remove()
