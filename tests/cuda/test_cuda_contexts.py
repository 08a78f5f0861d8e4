"""Memory of a context that is not the device's primary one, as PyCUDA's is."""

from contextlib import contextmanager

import numpy as np
import pytest

import hamr
from tests.cuda import driver

COUNT, REPEATS = (1 << 12, 20) if driver.EMULATED else (1 << 22, 200)


@contextmanager
def inside(context):
    driver.do("cuCtxPushCurrent_v2", context)
    try:
        yield
    finally:
        driver.get("cuCtxPopCurrent_v2")


class Foreign:
    """Elements in a context of their own, set again and again on its default stream."""

    def __init__(self):
        self.context = driver.get("cuCtxCreate_v2", 0, 0)
        driver.get("cuCtxPopCurrent_v2")
        with inside(self.context):
            self.ptr = driver.get("cuMemAlloc_v2", 4 * COUNT)
        self.__cuda_array_interface__ = {
            "shape": (COUNT,),
            "typestr": "<f4",
            "data": (self.ptr, False),
            "version": 2,
        }

    def set(self, value):
        with inside(self.context):
            for number in [0.0] * REPEATS + [value]:
                bits = int(np.float32(number).view("u4"))
                driver.do("cuMemsetD32Async", self.ptr, bits, COUNT, 0)

    def end(self):
        with inside(self.context):
            driver.do("cuMemFree_v2", self.ptr)
        driver.do("cuCtxDestroy_v2", self.context)


@pytest.fixture
def foreign():
    hamr.Buffer(1, "f4", "cuda").get()  # the core has the primary context
    made = Foreign()
    yield made
    made.end()


@pytest.mark.parametrize("way", ["interface", "pointer"])
def test_it_is_used_as_the_devices_own(foreign, way):
    foreign.set(3)
    shared = (
        hamr.buffer(foreign)
        if way == "interface"
        else hamr.Buffer.from_pointer(foreign.ptr, COUNT, "f4", "cuda", owner=foreign)
    )
    assert shared.allocator.name == "cuda"
    assert shared[::1001].astype("f8").get().tolist() == [3.0] * len(range(0, COUNT, 1001))
    shared[::2] = hamr.Buffer(COUNT // 2, "f8", "cuda", fill=5)
    shared.synchronize()
    assert driver.read(foreign.ptr, 4, "f4").tolist() == [5, 3, 5, 3]
    shared.close()


def test_what_the_owner_has_enqueued_is_waited_for(foreign):
    for round_ in range(1, 21):
        foreign.set(round_)
        with hamr.buffer(foreign) as shared:
            last = shared[-3:].copy().get()
        assert last.tolist() == [round_] * 3
