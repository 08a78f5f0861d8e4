"""The chain of ``hamr bench --only pipeline``, by the emulated driver in CuPy's place."""

import ctypes
import types

import numpy as np
import pytest

from hamr._benchmark import pipelines
from tests.cuda import driver

BYTES = pipelines.COUNT * 4


class Array:
    def __init__(self, device):
        self.device, self.ptr = device, driver.allocate(BYTES, device)

    def __del__(self):
        driver.free(self.ptr, self.device)


class OnDriver:
    """A toolkit whose kernels last no time."""

    name = "driver"

    def __init__(self):
        self.launched = 0

    on = staticmethod(driver.on)
    stream = staticmethod(driver.Stream)
    array = staticmethod(Array)

    def external(self, handle, device):
        return types.SimpleNamespace(handle=handle, device=device)

    def pinned(self):
        return np.empty(pipelines.COUNT, "f4")

    def upload(self, stream, to, source):
        driver.do("cuMemcpyHtoDAsync_v2", to.ptr, source.ctypes.data, BYTES, stream.handle)

    def download(self, stream, to, source):
        driver.do("cuMemcpyDtoHAsync_v2", to.ctypes.data, source.ptr, BYTES, stream.handle)

    def launch(self, stream, to, source, add, nanoseconds):
        assert pipelines.SHORTEST <= nanoseconds < pipelines.LONGEST
        self.launched += 1
        handle = ctypes.c_uint64(stream.handle)
        driver.write_late(
            handle.value, to.ptr, pipelines.COUNT, add, source.ptr, 2, device=stream.device
        )

    def wait(self, stream):
        stream.synchronize()


@pytest.fixture(autouse=True)
def emulated(emulator, monkeypatch):
    """On a device ``hamr bench`` itself runs it, with CuPy."""
    monkeypatch.delenv("HAMR_ACCELERATORS", raising=False)


def test_the_groups():
    kit = OnDriver()
    groups = [g.measure(lambda: None) for g in pipelines.groups_of(kit, 30, 2, driver.DEVICES)]
    assert len(groups) == (3 if driver.DEVICES > 1 else 2)
    for group in groups:
        assert group["rows"][0]["ratio"] == 1
        bound = [row for row in group["rows"] if "target" in row]
        assert len(bound) == 1
        assert bound[0]["operation"].startswith(pipelines.OURS)
        assert bound[0]["met"] is (bound[0]["ratio"] <= bound[0]["target"])
    assert [row["operation"] for row in groups[1]["rows"]] == [
        "driver: naive, a wait after each module",
        pipelines.OURS,
    ]
    told = groups[0]["rows"][-1]["modules"]
    assert [*told] == ["make", "kernel0", "kernel1", "kernel2", "download", "check"]
    assert all(len(times) == 3 for times in told.values())


@pytest.mark.parametrize("way", ["naive", "in_turns", "on_threads", "pipeline"])
def test_a_wrong_sum_is_found(way, monkeypatch):
    kit, work = OnDriver(), pipelines.Work(20)
    assert getattr(pipelines, way)(kit, work, driver.DEVICES) == 20
    assert kit.launched == 20 * pipelines.KERNELS
    monkeypatch.setattr(kit, "download", lambda stream, to, source: to.fill(0))
    ways = {way: getattr(pipelines, way)}
    with pytest.raises(RuntimeError, match=f"{way}: [01] of 20 sums are right"):
        pipelines._measured(kit, work, ways, driver.DEVICES, 1)


def test_without_cupy_it_says_so():
    lib = types.SimpleNamespace(cupy=None, absent={"cupy": "ImportError: no"})
    with pytest.raises(RuntimeError, match="CuPy's: ImportError: no"):
        next(pipelines.chains(lib, None))
