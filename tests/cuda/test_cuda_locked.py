"""Host memory that another library has page-locked, and that hamr adopts as ordinary memory."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.cuda.driver import PORTABLE, locked, register, unregister

COUNT = 1000

pytestmark = pytest.mark.skipif(
    driver.library is None or not hasattr(driver.library, "cuMemHostRegister_v2"),
    reason="the driver does not page-lock memory of others",
)


def on_device(value: float, **options) -> hamr.Buffer:
    made = hamr.Buffer(COUNT, "f4", "cuda", fill=value, **options)
    made.synchronize()
    return made


READERS = {
    "handle": lambda b: np.asarray(b.get_host_accessible()).copy(),
    "numpy": lambda b: np.asarray(b).copy(),
    "memoryview": lambda b: np.frombuffer(memoryview(b), "f4").copy(),
    "array interface": lambda b: np.asarray(Interface(b.__array_interface__)).copy(),
    "dlpack": lambda b: np.from_dlpack(b).copy(),
    "dlpack for the host": lambda b: np.from_dlpack(b.get_host_accessible()).copy(),
    "arrow": lambda b: (b.__arrow_c_array__(), np.copy(address_of(b)))[1],
    "get": lambda b: b.get(),
    "element": lambda b: np.full(COUNT, b[COUNT - 1].item()),
    "pickle": lambda b: pickle.loads(pickle.dumps(b)).get(),
    "view": lambda b: np.asarray(b[::-1]).copy(),
    "copy": lambda b: b.copy().get(),
    "another device array": lambda b: b.copy("cuda").get(),
    "synchronize": lambda b: (b.synchronize(), np.copy(address_of(b)))[1],
}


class Interface:
    def __init__(self, interface: dict) -> None:
        self.__array_interface__ = interface


def address_of(b: hamr.Buffer) -> np.ndarray:
    """The bytes, without asking anybody."""
    kept[:] = [b]
    return next(array for array in arrays if array.ctypes.data == b.ptr)


kept: list = []
arrays: list[np.ndarray] = []


@pytest.mark.parametrize("reader", READERS)
def test_whoever_reads_waits(emulator, reader):
    arrays[:] = [np.zeros(COUNT, "f4")]
    with locked(arrays[0]) as array:
        b, source = hamr.buffer(array, transfer="async"), on_device(7)
        b.assign(source)
        assert emulator.pending() > 0
        assert array[0] == 0, "the copy is enqueued, and nobody waits"
        assert set(READERS[reader](b)) == {7}
        del b
        kept.clear()


@pytest.mark.parametrize("mode", ["async", "sync_host", "sync"])
def test_modes_say_what_is_waited_for(emulator, mode):
    with locked(np.zeros(COUNT, "f4")) as array:
        b, device = hamr.buffer(array, transfer=mode), on_device(7, transfer=mode)
        b.assign(device)
        assert (array[-1] == 7) == (mode != "async")
        b.synchronize()
        array[:] = 5
        device.assign(b)
        assert (emulator.pending() == 0) == (mode == "sync")
        assert set(device.get()) == {5}


def test_the_default_waits_for_the_host():
    with locked(np.zeros(COUNT, "f4")) as array:
        b = hamr.buffer(array)
        b.assign(on_device(7))
        assert set(array) == {7}


@pytest.mark.parametrize("mode", ["async", "sync_host"])
def test_operands_are_the_callers_again(mode):
    """Whoever passes an array itself has nobody to ask."""
    with locked(np.zeros(COUNT, "f4")) as array, locked(np.zeros(COUNT, "f4")) as other:
        device = on_device(7, transfer=mode)
        hamr.copy_many([array], [device])
        assert set(array) == {7}
        hamr.copy_blocks([other], [3, 5], [device], [0, 1])
        assert other[[3, 4, 5]].tolist() == [7, 0, 7]
        device.get(other)
        assert set(other) == {7}
        array[:] = 5
        device[...] = array
        array[:] = 6
        assert set(device.get()) == {5}
        hamr.copy_many([device], [array])
        array[:] = 8
        assert set(device.get()) == {6}


def test_nobody_is_asked_when_it_is_adopted(emulator):
    with locked(np.zeros(COUNT, "f4")) as array:
        hamr.buffer(array)
        before = [emulator.calls(name) for name in emulator.entry_points]
        b = hamr.buffer(array)
        np.asarray(b)
        b.fill(3)
        assert b.allocator == hamr.Allocator.malloc
        assert [emulator.calls(name) for name in emulator.entry_points] == before


def test_lists_and_blocks_are_enqueued(emulator):
    with locked(np.zeros((8, COUNT), "f4")) as array:
        host = [hamr.buffer(row, transfer="async") for row in array]
        device = [on_device(i, transfer="async") for i in range(8)]
        copies = emulator.calls("cuMemcpyDtoHAsync_v2"), emulator.calls("cuMemcpyDtoH_v2")
        hamr.copy_many(host, device)
        assert not array.any(), "nobody waits"
        assert [set(np.asarray(b)) for b in host] == [{i} for i in range(8)]
        whole = hamr.buffer(array, transfer="async")
        table = hamr.Buffer((8, COUNT), "f4", "cuda", fill=9, transfer="async")
        hamr.copy_blocks([whole], [1, 3], [table], [0, 2])
        assert array[1, 0] == 1, "nobody waits"
        assert np.asarray(whole)[:, 0].tolist() == [0, 9, 2, 9, 4, 5, 6, 7]
        hamr.copy_blocks([table], [7], [whole], [2])
        assert copies == (emulator.calls("cuMemcpyDtoHAsync_v2"), emulator.calls("cuMemcpyDtoH_v2"))
        assert set(table.get()[7]) == {2}


@pytest.mark.parametrize("part", [slice(0, 100), slice(500, None), slice(10, 20)])
def test_what_is_locked_in_part_is_ordinary(part):
    array = np.zeros(COUNT, "f4")
    with locked(array[part]):
        b, device = hamr.buffer(array, transfer="async"), on_device(7)
        b.assign(device)
        assert set(array) == {7}, "nobody asks for ordinary memory"
        device.get(array)
        array[:] = np.arange(COUNT)
        device.assign(b)
        array[:] = 0
        device[...] = np.arange(COUNT, dtype="f4")
        hamr.copy_many([b], [device])
        assert np.array_equal(array, np.arange(COUNT))
        hamr.copy_blocks([b], list(range(COUNT)), [device], list(reversed(range(COUNT))))
        assert np.array_equal(array, np.arange(COUNT)[::-1])


def test_the_lock_may_end_while_hamr_has_the_array():
    array = np.zeros((4, COUNT), "f4")
    register(array)
    b = hamr.buffer(array, transfer="async")
    device = hamr.Buffer((4, COUNT), "f4", "cuda", fill=7, transfer="async")
    b.assign(device)
    b.synchronize()
    unregister(array)
    device.fill(8)
    b.assign(device)
    assert array[0, 0] == 8, "it is ordinary memory now"
    device.fill(9)
    hamr.copy_blocks([b], [2], [device], [0])
    assert array[:, 5].tolist() == [8, 8, 9, 8]
    device.fill(10)
    hamr.copy_many([b[0], b[3]], [device[0], device[1]])
    assert array[:, 5].tolist() == [10, 8, 9, 10]
    device.assign(b)
    assert np.array_equal(device.get(), array)


def test_memory_that_says_it_is_locked_may_not_be_any_more(emulator):
    """As a tensor of torch's, whose kind DLPack tells: kernels must not read it then."""
    array = np.arange(4.0 * COUNT, dtype="f4").reshape(4, COUNT)
    register(array)
    b = hamr.Buffer.from_pointer(array.ctypes.data, array.shape, "f4", "cuda_host", owner=array)
    device = hamr.Buffer((4, COUNT), "f4", "cuda", fill=7)
    hamr.copy_blocks([device], [0, 1], [b], [2, 3])
    assert np.array_equal(device.get()[:2], array[2:])
    unregister(array)
    hamr.copy_blocks([device], [2, 3], [b], [1, 0])
    assert np.array_equal(device.get(), array[[2, 3, 1, 0]])
    hamr.copy_many([b[0], b[2]], [device[0], device[1]])
    assert np.array_equal(np.asarray(b)[[0, 2]], device.get()[:2])
    wide = hamr.Buffer((COUNT, 64), "f8", "cuda")
    many = np.arange(64.0 * COUNT, dtype="f4").reshape(64, COUNT)
    register(many)
    c = hamr.Buffer.from_pointer(many.ctypes.data, many.shape, "f4", "cuda_host", owner=many)
    unregister(many)
    wide[...] = c.T
    assert np.array_equal(wide.get(), many.T)


@pytest.mark.multigpu
@pytest.mark.parametrize("flags", [0, PORTABLE])
def test_memory_of_another_devices_context(flags):
    array = np.zeros((4, COUNT), "f4")
    with locked(array, 1, flags):
        b = hamr.buffer(array, transfer="async")
        device = hamr.Buffer((4, COUNT), "f4", "cuda", fill=7, transfer="async", device=0)
        hamr.copy_blocks([b], [0, 2], [device], [1, 3])
        assert np.asarray(b)[:, 0].tolist() == [7, 0, 7, 0]
        hamr.copy_many([b[1], b[3]], [device[0], device[0]])
        assert np.asarray(b).all()
        np.asarray(b)[...] = 5
        device.assign(b)
        assert set(device.get().ravel()) == {5}


COPIES = {
    "one": lambda to, of: to.assign(of),
    "many": lambda to, of: hamr.copy_many([to[:500], to[500:]], [of[:500], of[500:]]),
    "blocks": lambda to, of: hamr.copy_blocks([to], range(COUNT), [of], range(COUNT)),
}


@pytest.mark.multigpu
@pytest.mark.parametrize("flags", [0, PORTABLE])
@pytest.mark.parametrize("copy", COPIES)
def test_another_devices_copy_follows(emulator, copy, flags):
    """A device may read at once what was locked for another one's context."""
    with locked(np.zeros(COUNT, "f4"), flags=flags) as array:
        b = hamr.buffer(array, transfer="async")
        b.assign(on_device(7, stream=hamr.Stream(device=0), transfer="async"))
        assert array[0] == 0, "the copy is pending"
        other = on_device(0, device=1, transfer="async")
        COPIES[copy](other, b)
        assert set(other.get()) == {7}


def test_its_owner_is_kept_until_the_copy_is_over():
    class Own(np.ndarray):
        ended = None

        def __del__(self):
            Own.ended = float(base[-1]) if self.base is base else Own.ended

    base = np.zeros(COUNT, "f4")
    with locked(base):
        b, device = hamr.buffer(base.view(Own), transfer="async"), on_device(7)
        b.assign(device)
        del b
        assert base[0] == 7
