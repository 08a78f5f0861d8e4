"""An emulated driver that has no memory left."""

from __future__ import annotations

import gc

import hamr
from tests.cuda import driver

#: Elements of float32 that tests take.
COUNT = driver.LARGE // 4
ALLOCATIONS = (
    "cuMemAlloc_v2",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocManaged",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
)
FULL = driver.OUT_OF_MEMORY


def fill_device(emulator):
    gc.collect()  # what earlier tests' tracebacks keep comes back now, or would make room later
    hamr.trim()
    for call in ALLOCATIONS:
        emulator.fail(call, 0, FULL)
