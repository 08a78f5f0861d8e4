"""Which movements are over when a call returns: the three transfer modes."""

import numpy as np
import pytest

import hamr
from tests.cuda import driver

N = 1000
ASYNC, SYNC_HOST, SYNC = hamr.Transfer.async_, hamr.Transfer.sync_host, hamr.Transfer.sync
DEVICE_ONLY = ["cuda", "cuda_async"]


def ones(allocator, transfer, stream=None):
    """A buffer of ones on which nothing is pending."""
    made = hamr.Buffer(N, "float32", allocator, fill=1, transfer=transfer, stream=stream)
    made.synchronize()
    return made


def shows(emulator, buffer, value):
    return bool((emulator.peek(buffer.ptr, N, "f4") == value).all())


@pytest.fixture(params=DEVICE_ONLY)
def allocator(request):
    return request.param


@pytest.fixture(params=[None, "new"], ids=["default stream", "new stream"])
def stream(request):
    return request.param and hamr.Stream(device=0)


def test_async_returns_before_the_device_has_copied(emulator, allocator, stream):
    source, target = ones(allocator, "async", stream), hamr.Buffer(N, "f4", allocator, fill=0)
    target.set_stream(stream, "async")
    target.synchronize()
    target.assign(source)
    assert emulator.pending() > 0
    assert shows(emulator, target, 0)
    target.synchronize()
    assert shows(emulator, target, 1)


def test_async_returns_before_the_device_has_taken_host_data(emulator, allocator, stream):
    source = np.full(N, 2, "f4")
    buffer = ones(allocator, "async", stream)
    buffer[...] = source
    assert emulator.pending() > 0
    assert shows(emulator, buffer, 1)
    source[:] = 3  # the host may go on at once
    buffer.synchronize()
    assert shows(emulator, buffer, 2)


def test_async_returns_before_pinned_memory_is_written(emulator, allocator, stream):
    hamr.trim()  # of freed memory some may hold ones
    source = ones(allocator, "async", stream)
    pinned = source.copy("cuda_host")
    assert pinned.transfer == ASYNC
    assert emulator.pending() > 0
    assert not shows(emulator, pinned, 1)
    pinned.synchronize()
    assert shows(emulator, pinned, 1)


def test_async_waits_for_ordinary_memory(emulator, allocator, stream):
    """Nothing would tell its readers that the copy is still under way."""
    host = ones(allocator, "async", stream).copy("malloc")
    assert np.frombuffer(memoryview(host), "f4").tolist() == [1] * N


def test_async_filling_is_late(emulator, device_allocator, stream):
    buffer = ones(device_allocator, "async", stream)
    buffer.fill(5)
    assert emulator.pending() > 0
    assert shows(emulator, buffer, 1)
    buffer.synchronize()
    assert shows(emulator, buffer, 5)


@pytest.mark.parametrize("to", ["malloc", "cpp", "cuda_host"])
def test_sync_host_waits_on_the_way_to_the_host(emulator, allocator, stream, to):
    host = ones(allocator, "sync_host", stream).copy(to)
    assert shows_on_host(host, 1)
    target = hamr.Buffer(N, "f4", to, fill=0)
    source = ones(allocator, "sync_host", stream)
    source.fill(7)
    target.assign(source)
    assert shows_on_host(target, 7)


def shows_on_host(buffer, value):
    """What the host finds at the address, without asking hamr, which would wait."""
    raw = (driver.ctypes.c_float * N).from_address(buffer.ptr)
    return bool((np.frombuffer(raw, "f4") == value).all())


def test_sync_host_does_not_wait_between_devices(emulator, allocator, stream):
    source, value = ones(allocator, "sync_host", stream), 1234.5  # which no freed memory has
    source.fill(value)
    target = source.copy()
    assert emulator.pending() > 0
    assert not shows(emulator, target, value)
    target.synchronize()
    assert shows(emulator, target, value)


def test_sync_host_does_not_wait_on_the_way_to_the_device(emulator, allocator, stream):
    buffer = ones(allocator, "sync_host", stream)
    buffer[...] = np.full(N, 2, "f4")
    assert emulator.pending() > 0
    assert shows(emulator, buffer, 1)


@pytest.mark.parametrize("to", ["malloc", "cuda_host", *DEVICE_ONLY, "cuda_uva"])
def test_sync_waits_for_every_movement(emulator, allocator, stream, to):
    source = ones(allocator, "sync", stream)
    copied = source.copy(to)
    assert copied.transfer == SYNC
    assert shows_there(emulator, copied, 1)
    source[...] = np.full(N, 2, "f4")
    assert shows(emulator, source, 2)
    target = hamr.Buffer(N, "f4", to, fill=0, transfer="sync")
    target.assign(source)
    assert shows_there(emulator, target, 2)


def shows_there(emulator, buffer, value):
    if buffer.allocator == hamr.Allocator.malloc:
        return shows_on_host(buffer, value)
    return shows(emulator, buffer, value)


@pytest.mark.parametrize("mode", [ASYNC, SYNC_HOST, SYNC])
def test_modes_are_kept_and_reset(cuda_allocator, mode):
    buffer = hamr.Buffer(3, "f4", cuda_allocator, fill=1, transfer=mode)
    assert buffer.transfer == mode
    buffer.append(2)
    buffer.move("cuda_host")
    assert buffer.transfer == mode
    assert buffer.copy("malloc").transfer == mode
    stream = hamr.Stream(device=0)
    buffer.set_stream(stream, mode)
    assert (buffer.transfer, buffer.stream) == (mode, stream)
    buffer.set_stream(stream)
    assert buffer.transfer == ASYNC
    buffer.set_transfer(mode)
    assert (buffer.transfer, buffer.stream) == (mode, stream)
    assert str(buffer) == "{1, 1, 1, 2}"


def test_the_default_mode():
    """Upstream's typed constructors copy asynchronously by default; in Python nothing does."""
    for buffer in (hamr.Buffer(3, "f4", "cuda"), hamr.buffer_float(2, 3, 1.0), hamr.buffer(b"1")):
        assert buffer.transfer == SYNC_HOST


# The host never reads too early, whatever the mode.

READERS = {
    "memoryview": lambda b: np.frombuffer(memoryview(b), "f4"),
    "asarray": np.asarray,
    "interface": lambda b: np.asarray(Interface(b)),
    "handle": lambda b: np.asarray(b.get_host_accessible()),
    "handle's memoryview": lambda b: np.frombuffer(memoryview(b.get_host_accessible()), "f4"),
    "__array__": lambda b: b.__array__(),
    "get": lambda b: b.get(),
    "view": lambda b: np.asarray(b[:]),
    "copy": lambda b: np.asarray(b.copy("malloc")),
}


class Interface:
    def __init__(self, buffer):
        self.__array_interface__ = buffer.__array_interface__
        self.buffer = buffer


@pytest.mark.parametrize("mode", [ASYNC, SYNC_HOST, SYNC])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("to", ["cuda_host", "cuda_uva"])
def test_pinned_and_managed_memory_is_waited_for(to, read, mode, stream):
    source = ones("cuda_async", mode, stream)
    value = driver.fresh_value()
    source.fill(value)
    assert read(source.copy(to)).tolist() == [value] * N
    target = hamr.Buffer(N, "f4", to, fill=0, transfer=mode)
    target.assign(source)
    assert read(target).tolist() == [value] * N


@pytest.mark.parametrize("mode", [ASYNC, SYNC_HOST, SYNC])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("allocator", ["cuda_uva", "cuda_host"])
def test_the_host_waits_for_a_foreign_kernel_on_the_buffers_stream(allocator, read, mode):
    stream = driver.Stream()
    buffer = hamr.Buffer(N, "f4", allocator, fill=0, stream=stream, transfer=mode)
    buffer.synchronize()
    value = driver.fresh_value()
    driver.write_late(stream, buffer.ptr, N, value)
    assert read(buffer).tolist() == [value] * N


OPERATIONS = {
    "copy": lambda b: b.copy(),
    "astype": lambda b: b.astype("f8"),
    "item": lambda b: b[3:4].item(),
    "append": lambda b: appended(b),
    "reverse": lambda b: b[::-1].copy("cuda"),
    "text": lambda b: float(str(b[:1])[1:-1]),
    "to ordinary memory": lambda b: b.copy("malloc"),
    "to the device": lambda b: b.copy("cuda_async"),
}


def appended(buffer):
    target = hamr.Buffer(0, "f4", "malloc")
    target.append(buffer)
    return target


@pytest.mark.parametrize("mode", [ASYNC, SYNC_HOST, SYNC])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva", "cuda_host"])
def test_operations_come_after_what_the_buffers_stream_holds(allocator, operation, mode):
    """Whether the device or the host does them."""
    stream = driver.Stream()
    buffer = hamr.Buffer(N, "f4", allocator, fill=0, stream=stream, transfer=mode)
    buffer.synchronize()
    value = driver.fresh_value()
    driver.write_late(stream, buffer.ptr, N, value)
    result = operation(buffer)
    if isinstance(result, hamr.Buffer):
        result = result.get_host_accessible()
    assert np.unique(np.asarray(result)).tolist() == [value]


@pytest.mark.parametrize("mode", [ASYNC, SYNC_HOST, SYNC])
@pytest.mark.parametrize("allocator", DEVICE_ONLY)
def test_temporaries_are_complete(allocator, mode):
    stream = driver.Stream()
    buffer = hamr.Buffer(N, "f4", allocator, fill=0, stream=stream, transfer=mode)
    value = driver.fresh_value()
    driver.write_late(stream, buffer.ptr, N, value)
    assert np.asarray(buffer.get_host_accessible()).tolist() == [value] * N
    assert str(buffer[:2]) == f"{{{value}, {value}}}"
    assert buffer[5].item() == value
