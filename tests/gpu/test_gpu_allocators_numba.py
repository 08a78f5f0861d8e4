"""Numba on hamr's pool."""

from __future__ import annotations

import pytest

from tests.support.processes import run_code

SECONDS = 300.0

NUMBA = """
import numpy as np
from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError
import hamr, hamr.allocators
hamr.allocators.use_in_numba()
host = np.arange(1 << 20, dtype="f4")
for _ in range(30):
    there = cuda.to_device(host)
    assert (there.copy_to_host() == host).all()
assert hamr.stats()["allocators"]["cuda"]["current"] >= host.nbytes
free, total = cuda.current_context().get_memory_info()
assert 0 < free < total
handle = there.get_ipc_handle()
assert handle is not None
with cuda.defer_cleanup():
    cuda.to_device(host)
try:
    cuda.device_array(1 << 50, "u1")
except CudaAPIError as error:
    assert int(error.code) == 2 and isinstance(error.__cause__, hamr.OutOfMemory), error
else:
    raise AssertionError("nothing was raised")
pinned = cuda.pinned_array(1000, "f4")
pinned[:] = 3
assert (cuda.to_device(pinned).copy_to_host() == 3).all()
del there, handle
"""


def test_numba(numba_library):
    run_code(NUMBA, timeout=SECONDS)


NUMBA_BEFORE = """
import numpy as np
from numba import cuda
import hamr.allocators
there = cuda.to_device(np.ones(3))
try:
    hamr.allocators.use_in_numba()
except RuntimeError as error:
    assert "before its first use" in str(error), error
else:
    raise AssertionError("nothing was raised")
"""


def test_numbas_first_use_was_before(numba_library):
    run_code(NUMBA_BEFORE, timeout=SECONDS)


NUMBA_BEHIND_THE_BINDING = """
import numpy as np
from cuda.bindings import driver
for call in (lambda: driver.cuInit(0), lambda: driver.cuDeviceGet(0)):
    error, *found = call()
    assert int(error) == 0, error
error, context = driver.cuDevicePrimaryCtxRetain(found[0])
assert int(error) == 0, error
if {current}:
    error, = driver.cuCtxSetCurrent(context)
    assert int(error) == 0, error
import hamr.allocators
hamr.allocators.use_in_numba()
from numba import cuda
there = cuda.to_device(np.arange(1000, dtype="f4"))
assert (there.copy_to_host() == np.arange(1000)).all()
free, total = cuda.current_context().get_memory_info()
assert 0 < free < total
assert hamr.stats()["allocators"]["cuda"]["live"] > 0
"""


@pytest.mark.parametrize("current", [False, True])
def test_numba_behind_the_drivers_binding(numba_library, current):
    run_code(NUMBA_BEHIND_THE_BINDING.format(current=current), timeout=SECONDS)


NUMBA_PAGE_LOCKED = """
import numpy as np
if {ours}:
    import hamr.allocators
    hamr.allocators.use_in_numba()
from numba import cuda
from numba.cuda.cudadrv import driver
memory = cuda.current_context().memhostalloc(32, mapped=True)
seen = np.ndarray(32, "u1", buffer=memory)
driver.device_memset(memory, 0xAB, 32)
cuda.synchronize()
assert (seen == 0xAB).all()
mapped = cuda.mapped_array(10, "u4")
mapped.fill(123)
driver.device_memset(mapped, 0, driver.device_memory_size(mapped))
cuda.synchronize()
assert (mapped == 0).all()
"""


@pytest.mark.parametrize("ours", [False, True], ids=["Numba's own", "hamr's"])
def test_numba_fills_page_locked_memory(numba_library, ours):
    run_code(NUMBA_PAGE_LOCKED.format(ours=ours), timeout=SECONDS)
