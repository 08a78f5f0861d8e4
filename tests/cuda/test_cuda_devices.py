"""Several devices: which one is current, who reaches whom, and moves between them."""

import threading

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support import producers
from tests.support.producers import assert_same

pytestmark = pytest.mark.multigpu

A = hamr.Allocator
ON_DEVICE = ["cuda", "cuda_async", "cuda_uva"]


def ramp():
    return np.arange(24, dtype="f4").reshape(4, 6)


def at(device, allocator="cuda_async", **more):
    return hamr.Buffer((4, 6), "f4", allocator, device=device, data=ramp(), **more)


# Which device is current.


def test_blocks_nest_and_end():
    assert hamr.current_device() == 0
    with hamr.device(1) as one:
        assert (one.index, hamr.current_device()) == (1, 1)
        with hamr.device(0):
            assert hamr.current_device() == 0
            with one:
                assert hamr.current_device() == 1
            assert hamr.current_device() == 0
        assert hamr.current_device() == 1
        assert hamr.device().index == 1
    assert hamr.current_device() == 0


def test_an_exception_ends_the_block():
    with pytest.raises(ZeroDivisionError), hamr.device(1), hamr.device(0), hamr.device(1):
        raise ZeroDivisionError
    assert hamr.current_device() == 0


def test_blocks_and_other_libraries_agree():
    driver.set_current(driver.context(1))
    try:
        assert hamr.current_device() == 1
        assert hamr.Buffer(3, "f4", "cuda").owner == 1
        with hamr.device(0):
            assert driver.current_context() == driver.context(0)
        assert driver.current_context() == driver.context(1)
    finally:
        driver.set_current(driver.context(0))


def test_each_thread_has_its_own():
    seen = {}
    together = threading.Barrier(4)

    def work(number):
        with hamr.device(number % 2):
            together.wait()
            seen[number] = hamr.current_device(), hamr.Buffer(3, "f4", "cuda", fill=1).owner
            together.wait()
        seen[number] += (hamr.current_device(),)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    with hamr.device(1):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert hamr.current_device() == 1
    assert seen == {i: (i % 2, i % 2, 0) for i in range(4)}


@pytest.mark.parametrize("number", [driver.DEVICES, -2, 2**40])
def test_no_such_device(number):
    with pytest.raises(ValueError, match="device is"):
        hamr.device(number)
    with pytest.raises(ValueError, match="device is"):
        hamr.memory_info(number)
    with pytest.raises(ValueError, match="device is"):
        hamr.peer_access(0, number)
    for wrong in ("0", "cpu", -1.0):
        with pytest.raises((TypeError, ValueError), match="device is"):
            hamr.device(wrong)


CONSTRUCTORS = {
    "Buffer": lambda a: hamr.Buffer(3, "f4", a, fill=1),
    "upstream": lambda a: hamr.buffer_float(A[a], 3, 1.0),
    "copy": lambda a: hamr.Buffer(3, "f4", fill=1).copy(a),
    "move": lambda a: moved(a),
    "make_buffer": lambda a: hamr.make_buffer(A[a], 3, 1.0),
}


def moved(allocator):
    buffer = hamr.Buffer(3, "f4", fill=1)
    buffer.move(allocator)
    return buffer


@pytest.mark.parametrize("make", CONSTRUCTORS.values(), ids=CONSTRUCTORS)
@pytest.mark.parametrize("allocator", ON_DEVICE)
def test_constructors_use_the_current_device(make, allocator):
    for number in range(driver.DEVICES):
        with hamr.device(number):
            buffer = make(allocator)
        assert buffer.owner == number
        if allocator != "cuda_uva":
            assert driver.device_of(buffer.ptr) == number
        assert np.asarray(buffer.get_host_accessible()).tolist() == [1, 1, 1]
        buffer.resize(100, 2)
        assert buffer.owner == number, "new memory comes from the same device"


def test_streams_and_events_are_on_the_current_device():
    with hamr.device(1):
        stream = hamr.Stream(device=-1)
        assert (stream.device, stream.record().device) == (1, 1)
        assert hamr.Event().device == 1
    stream.synchronize()
    assert hamr.Stream(device=1).device == 1


# Access.


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async"])
def test_access_on_another_device_is_a_copy_there(allocator):
    buffer = at(0, allocator)
    with hamr.device(1):
        handle = buffer.get_cuda_accessible()
        assert (handle.is_temporary, handle.device) == (True, 1)
        assert driver.device_of(handle.ptr) == 1
    np.testing.assert_array_equal(driver.content(handle), ramp())
    assert not buffer.get_cuda_accessible().is_temporary
    asked = buffer.get_cuda_accessible(device=1)
    assert (asked.is_temporary, asked.device) == (True, 1)
    view = buffer[::-1, 1::2].get_cuda_accessible(1)
    np.testing.assert_array_equal(driver.content(view), ramp()[::-1, 1::2])
    with hamr.device(1):
        assert buffer.get_device_accessible().device == 1


def test_managed_memory_is_reached_from_every_device():
    buffer = at(0, "cuda_uva")
    with hamr.device(1):
        handle = buffer.get_cuda_accessible()
    assert (handle.is_temporary, handle.ptr) == (False, buffer.ptr)


def test_host_memory_goes_to_the_current_device():
    for allocator in ("malloc", "cuda_host"):
        with hamr.device(1):
            handle = at(None, allocator).get_cuda_accessible()
        assert driver.device_of(handle.ptr) == handle.device == 1
        np.testing.assert_array_equal(driver.content(handle), ramp())


# Between devices.


PEERS = """
from tests.cuda.test_cuda_devices import everything_between_devices
everything_between_devices()
print("done")
"""


def everything_between_devices():
    last = driver.DEVICES - 1
    for one in ON_DEVICE:
        for other in ON_DEVICE:
            for source, target in ((0, last), (last, 0)):
                between(at(source, one), target, other)


def between(source, to, allocator):
    """Every content operation with operands on two devices."""
    copied = source.copy(allocator, device=to)
    assert copied.owner == to
    assert_same(copied, ramp())
    assert_same(source.copy(allocator, device=to, dtype="i2"), ramp().astype("i2"))
    target = hamr.Buffer((4, 6), "f8", allocator, device=to, fill=-1)
    target[1:3] = source[::2]
    expected = np.full((4, 6), -1.0)
    expected[1:3] = ramp()[::2]
    assert_same(target, expected)
    target.assign(source)
    target.append(source[0])
    target.set(source, at=0, start=23, n=1)
    expected = np.append(ramp().ravel(), ramp()[0]).astype("f8")
    expected[0] = 23
    assert_same(target, expected)
    assert target.owner == to
    home = source.owner
    source.move(allocator, device=to)
    assert source.owner == to
    source.append(5)
    assert_same(source, np.append(ramp(), np.float32(5)))
    source.move(allocator, device=home)
    source.swap(target)
    assert (source.owner, target.owner) == (to, home)
    assert_same(source, expected)


#: Whether the devices could or not: the emulator's cannot then, others may not.
NO_PEERS = {"HAMR_EMULATOR_PEERS" if driver.EMULATED else "HAMR_CUDA_PEER_ACCESS": "0"}


@pytest.mark.parametrize("name", ["HAMR_CUDA_PEER_ACCESS", *NO_PEERS])
def test_peers_that_are_forbidden(name):
    done = producers.run_python(PEERS, **{name: "0"})
    assert done.stdout == "done\n"


def test_everything_between_devices():
    everything_between_devices()


def test_order_between_streams_of_two_devices():
    streams = driver.Stream(0), driver.Stream(1)
    arrays = [
        hamr.Buffer(1000, "f4", "cuda", fill=0, device=i, stream=streams[i], transfer="async")
        for i in (0, 1)
    ]
    for _ in range(50):
        value = driver.fresh_value()
        driver.write_late(streams[0], arrays[0].ptr, 1000, value)
        arrays[1].assign(arrays[0])
        assert driver.content(arrays[1]).tolist() == [value] * 1000
        driver.write_late(streams[1], arrays[1].ptr, 1000, 1, source=arrays[1].ptr)
        assert driver.content(arrays[1].copy("cuda_async", device=0)).tolist() == [value + 1] * 1000


def test_a_per_thread_stream_is_that_of_the_buffers_device():
    scratch = driver.Array(np.zeros(1000, "f4"), device=1, stream=driver.PER_THREAD)
    driver.write_late(driver.PER_THREAD, scratch.ptr, 1000, 3, device=1)
    shared = hamr.buffer(scratch, stream=hamr.Stream(device=1))
    assert np.asarray(shared.get_host_accessible()).tolist() == [3] * 1000


# Peers, places, memory.


def test_peer_access():
    possible = driver.get("cuDeviceCanAccessPeer", 0, 1, kind=driver.ctypes.c_int) == 1
    for _ in range(2):
        assert hamr.peer_access(0, 1) == hamr.peer_access(1, 0) == possible
    assert hamr.peer_access(1, 1) is True


def test_peer_access_that_somebody_enabled_before_is_no_error():
    code = """
import hamr
from tests.cuda import driver
with driver.on(0):
    code = driver.code("cuCtxEnablePeerAccess", driver.context(1), 0)
print(code == 0, hamr.peer_access(0, 1))
"""
    output = producers.run_python(code).stdout
    possible = driver.get("cuDeviceCanAccessPeer", 0, 1, kind=driver.ctypes.c_int) == 1
    assert output == f"{possible} {possible}\n"


def test_no_peers():
    done = producers.run_python(
        "import hamr; print(hamr.peer_access(0, 1), hamr.peer_access(0, 0))",
        **NO_PEERS,
    )
    assert done.stdout == "False True\n"


def test_device_of_anything():
    stream = driver.Stream(1)
    foreign = driver.Array(ramp(), device=1)
    for x in (
        at(1), at(1)[1:], at(1).get_cuda_accessible(1), at(1, "cuda_uva"), hamr.buffer(foreign),
        foreign, foreign.ptr, np.uint64(foreign.ptr),
        hamr.Stream(device=1), hamr.Stream(device=1).record(),
    ):  # fmt: skip
        assert hamr.device_of(x) == 1, x
    host = np.zeros(3)
    for x in (host, b"1", host.ctypes.data, 0, hamr.buffer(host), at(None, "cuda_host"),
              at(1).get_host_accessible()):  # fmt: skip
        assert hamr.device_of(x) == -1, x
    for x in (object(), None, "0", 1.0, True):
        with pytest.raises(TypeError):
            hamr.device_of(x)
    del stream


def test_memory_info_is_each_devices_own():
    for number in range(driver.DEVICES):
        free, total = hamr.memory_info(number)
        assert total == driver.memory_info(number)[1]
        assert 0 < free <= total
    free, others = hamr.memory_info(1).free, hamr.memory_info(0).free
    size = 64 << 20
    buffer = hamr.Buffer(size, "u1", "cuda", device=1)
    assert free - hamr.memory_info(1).free >= size
    assert others == hamr.memory_info(0).free
    with hamr.device(1):
        assert hamr.memory_info() == hamr.memory_info(1)
    buffer.close()
    hamr.trim()
    assert hamr.memory_info(1).free >= free


# The caller's context.


class Visits:
    """Operations on device 1, by a caller whose context is another."""

    def __init__(self):
        self.stream = hamr.Stream(device=1)
        self.foreign = driver.Array(ramp(), device=1, stream=driver.LEGACY)
        self.buffers = [at(1, a, stream=self.stream) for a in ON_DEVICE]


OPERATIONS = {
    "create": lambda v: [at(1, a) for a in ON_DEVICE],
    "copy": lambda v: [b.copy("cuda", device=0) for b in v.buffers],
    "convert": lambda v: [b.astype("i4") for b in v.buffers],
    "change": lambda v: [b.copy().append(b) for b in v.buffers],
    "write": lambda v: [b.copy().__setitem__(np.s_[::2], 3) for b in v.buffers],
    "read": lambda v: [b.get() for b in v.buffers],
    "text": lambda v: [str(b) for b in v.buffers],
    "host access": lambda v: [b.get_host_accessible() for b in v.buffers],
    "cuda access": lambda v: [b.get_cuda_accessible(i) for b in v.buffers for i in (0, 1)],
    "export": lambda v: [b.__cuda_array_interface__ for b in v.buffers],
    "import": lambda v: hamr.buffer(v.foreign).copy(),
    "stream": lambda v: hamr.Stream(device=1).record().synchronize(),
    "order": lambda v: v.stream.wait(hamr.Stream(device=0).record()),
    "synchronize": lambda v: [b.synchronize() for b in v.buffers],
    "per-thread": lambda v: hamr.Buffer(3, "f4", "cuda", device=1, stream=driver.PER_THREAD),
    "info": lambda v: (hamr.memory_info(1), hamr.device_properties(1), hamr.peer_access(0, 1)),
    "locate": lambda v: hamr.device_of(v.foreign),
    "trim": lambda v: hamr.trim(),
    "too much": lambda v: too_much(),
    "no such device": lambda v: no_such_device(),
}


def too_much():
    with pytest.raises(hamr.OutOfMemory):
        hamr.Buffer(1 << 60, "u1", "cuda_async", device=1)


def no_such_device():
    with pytest.raises(ValueError, match="device is"):
        hamr.Buffer(1, "u1", "cuda_async", device=driver.DEVICES)


@pytest.mark.parametrize("current", ["none", "device 0", "device 1", "the caller's own"])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_the_callers_context_stays_current(operation, current):
    visits = Visits()
    outcome = []

    def work():
        own = 0
        try:
            if current == "the caller's own":
                own = driver.get("cuCtxCreate_v2", 0, 0)
            elif current != "none":
                driver.set_current(driver.context(int(current[-1])))
            before = driver.current_context()
            assert (before == 0) == (current == "none")
            operation(visits)
            after = driver.current_context()
            assert after == before
            outcome.append("kept")
        except BaseException as error:
            outcome.append(error)
        finally:
            if own:
                driver.do("cuCtxDestroy_v2", own)

    thread = threading.Thread(target=work)  # whose contexts end with it
    thread.start()
    thread.join()
    assert outcome == ["kept"]
