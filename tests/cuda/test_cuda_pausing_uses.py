"""What would use memory that is paused is refused, by each protocol and call."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

import hamr
from hamr.allocators import _core
from tests.cuda import driver
from tests.cuda.test_cuda_pausing import MIB, free, made
from tests.support.contents import on_host


@pytest.fixture
def name(request):
    return request.node.name


#: What would touch the memory. Each takes a buffer on a device, and another one.
USES = {
    "fill": lambda b, other: b.fill(2),
    "host": lambda b, other: b.get_host_accessible(),
    "cuda": lambda b, other: b.get_cuda_accessible(),
    "on_host": lambda b, other: b.on_host("rw").__enter__(),
    "on_cuda": lambda b, other: b.on_cuda("r").__enter__(),
    "copy": lambda b, other: b.copy(),
    "copy to the host": lambda b, other: b.copy(allocator="malloc"),
    "copy from it": lambda b, other: other.assign(b),
    "copy to it": lambda b, other: b.set(other),
    "copy many": lambda b, other: hamr.copy_many([other], [b]),
    "copy blocks": lambda b, other: hamr.copy_blocks(
        other[...].reshape(10, 100), [0], b[...].reshape(10, 100), [1]
    ),
    "element": lambda b, other: b[3],
    "get": lambda b, other: b.get(np.empty(1000, "f4")),
    "assignment": lambda b, other: b.__setitem__(slice(3, 7), 1),
    "astype": lambda b, other: b.astype("f8"),
    "append": lambda b, other: b.append(other),
    "growth": lambda b, other: b.resize(10 * MIB),
    "move": lambda b, other: b.move("malloc"),
    "cuda_array_interface": lambda b, other: b.__cuda_array_interface__,
    "dlpack": lambda b, other: b.__dlpack__(),
    "dlpack on a stream": lambda b, other: b.__dlpack__(stream=1),
    "dlpack without order": lambda b, other: b.__dlpack__(stream=-1),
    "dlpack to the host": lambda b, other: b.__dlpack__(dl_device=(1, 0)),
    "item": lambda b, other: b[3].item(),
    "cached": lambda b, other: b.cached().get_host_accessible(),
    "share": lambda b, other: hamr.buffer(b).share(),
}


def blocks_of_one(to, of):
    hamr.copy_blocks(to, [0], of, [0])


@pytest.mark.parametrize("use", USES)
def test_what_would_use_paused_memory_says_so(name, use):
    buffer, other = made(name), hamr.Buffer(1000, "f4", "cuda", fill=1)
    hamr.pause(name, keep="host")
    with pytest.raises(hamr.PausedMemory, match=f"{name[:20]}.*paused") as refused:
        USES[use](buffer, other)
    assert refused.value.tag == name
    hamr.resume(name)
    USES[use](buffer, other)


@pytest.mark.parametrize("copy", [hamr.copy_many, blocks_of_one])
def test_nothing_of_many_copies_is_made_where_one_is_paused(name, copy):
    away, host = made(name), np.zeros((2, 1000), "f4")
    first, second = (hamr.Buffer((2, 1000), "f4", "cuda", fill=i) for i in (1, 2))
    away = away.reshape(1, 1000)
    hamr.pause(name, keep="host")
    for to, of in (
        ([first, first], [second, away]),
        ([first, second, away], [second, first, first[:1]]),
        ([host, second], [first, away]),
    ):
        with pytest.raises(hamr.PausedMemory) as refused:
            copy(to, of)
        assert refused.value.tag == name
    assert [float(on_host(b).max()) for b in (first, second, hamr.buffer(host))] == [1, 2, 0]
    hamr.resume(name)
    copy([first, first], [second, away])
    assert (on_host(first)[:1] == on_host(away)).all()


def test_what_needs_no_memory_still_works(name):
    buffer = made(name)
    view = buffer[10:20]
    hamr.pause(name, keep="nothing")
    assert buffer.shape == (1000,)
    assert view.ptr == buffer.ptr + 40
    assert repr(buffer)
    assert buffer.nbytes == 4000
    view.close()
    buffer.free()
    hamr.resume(name)


def test_arrays_of_others_over_paused_memory_are_refused(name):
    buffer = made(name)
    adopted = hamr.from_dlpack(buffer)
    described = hamr.buffer(Described(buffer))
    hamr.pause(name, keep="host")
    for array in (adopted, described):
        with pytest.raises(hamr.PausedMemory):
            array.get_host_accessible()
        with pytest.raises(hamr.PausedMemory):
            array.fill(3)
        with pytest.raises(hamr.PausedMemory):
            array.__dlpack__()
    hamr.resume(name)
    adopted.fill(5)
    assert (on_host(buffer) == 5).all()


class Described:
    """Another library's array over a buffer's memory."""

    def __init__(self, buffer: hamr.Buffer) -> None:
        self.buffer = buffer
        self.__cuda_array_interface__ = buffer.__cuda_array_interface__


def test_libraries_memory(name):
    hook = _Hook()
    with hamr.pausable(name):
        inside = [hook.alloc(size) for size in (512, 5000, 3 * MIB)]
    outside = hook.alloc(5000)
    assert outside not in inside
    adopted = [hamr.buffer(_Bytes(at, 512)) for at in inside]
    for i, array in enumerate(adopted):
        array.fill(i + 1)
    before = free()
    hamr.pause(name, keep="host")
    assert not driver.emulator or free() - before >= 6 * MIB  # others use a real device, too
    for array in adopted:
        with pytest.raises(hamr.PausedMemory):
            array.fill(1)
    with hamr.pausable(name), pytest.raises(hamr.PausedMemory):
        _core.allocate(_core.CUPY, 0, 100, 0)
    hook.free(inside.pop())
    hamr.resume(name)
    for i, array in enumerate(adopted[:2]):
        assert (on_host(array) == i + 1).all()
    del adopted, array
    gc.collect()
    for at in [*inside, outside]:
        hook.free(at)
    hamr.trim()
    assert name not in hamr.pausable_memory()


class _Hook:
    """What torch calls."""

    def __init__(self) -> None:
        _, library = _core.hooks()
        self._alloc, self._free = library.hamr_torch_alloc_or_throw, library.hamr_torch_free
        self._alloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        self._alloc.restype = ctypes.c_void_p
        self._free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self._free.restype = None

    def alloc(self, size: int) -> int:
        return self._alloc(size, 0, None)

    def free(self, address: int) -> None:
        self._free(address, 0, 0, None)


class _Bytes:
    """An array over memory that somebody has."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }
