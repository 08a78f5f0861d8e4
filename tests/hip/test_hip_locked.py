"""Host memory that another library has page-locked, adopted as ordinary memory, and HIP."""

import numpy as np
import pytest

import hamr
from tests.cuda.driver import locked

COUNT = 1000


@pytest.mark.parametrize("mode", ["async", "sync_host", "sync"])
def test_modes_say_what_is_waited_for(emulator, mode):
    with locked(np.zeros(COUNT, "f4")) as array:
        b = hamr.buffer(array, transfer=mode)
        device = hamr.Buffer(COUNT, "f4", "hip", fill=7, transfer=mode)
        device.synchronize()
        b.assign(device)
        assert (array[-1] == 7) == (mode != "async")
        assert set(np.asarray(b)) == {7}
        array[:] = 5
        device.assign(b)
        assert set(device.get()) == {5}
        device.fill(6)
        hamr.copy_many([b[:10], b[20:]], [device[:10], device[20:]])
        hamr.copy_blocks([b], [10], [device], [0])
        assert np.asarray(b)[[9, 10, 11, 20]].tolist() == [6, 6, 5, 6]


def test_what_is_locked_in_part_is_ordinary():
    array = np.zeros(COUNT, "f4")
    with locked(array[: COUNT // 2]):
        b = hamr.buffer(array, transfer="async")
        device = hamr.Buffer(COUNT, "f4", "hip", fill=7, transfer="async")
        b.assign(device)
        assert set(array) == {7}, "nobody asks for ordinary memory"
        array[:] = 5
        device.assign(b)
        assert set(device.get()) == {5}
