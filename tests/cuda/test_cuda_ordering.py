"""What memory, streams and threads wait for when buffers change streams, devices or owners."""

import gc
import os
import threading

import numpy as np
import pytest

import hamr
from hamr import _native
from tests.cuda import driver
from tests.support.contents import on_host
from tests.support.processes import run_code, scaled

N = 1000


# Memory of a pool is freed after what its last users' streams hold.


def in_use_on(stream):
    """A buffer from a pool that was made on another stream than the one it is used on."""
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=1, stream=hamr.Stream(device=0))
    buffer.synchronize()
    buffer.set_stream(stream)
    return buffer


def late(stream, buffer):
    driver.write_late(stream, buffer.ptr, N, 2)


@pytest.mark.parametrize("end", ["close", "free", "del"])
def test_the_stream_set_is_waited_for(emulator, end):
    stream = driver.Stream()
    buffer = in_use_on(stream)
    late(stream, buffer)
    if end == "del":
        del buffer
    else:
        getattr(buffer, end)()
    assert emulator.violations() == []


def test_the_default_stream_set_is_waited_for(emulator):
    buffer = in_use_on(None)
    late(driver.LEGACY, buffer)
    buffer.close()
    assert emulator.violations() == []


def test_a_stream_that_was_set_before_is_waited_for(emulator):
    first, second = driver.Stream(), driver.Stream()
    buffer = in_use_on(first)
    late(first, buffer)
    buffer.set_stream(second)
    buffer.close()
    assert emulator.violations() == []


def test_the_streams_of_views_and_handles_are_waited_for(emulator):
    stream = driver.Stream()
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=1, stream=hamr.Stream(device=0))
    buffer.synchronize()
    view = hamr.buffer(buffer, stream=stream)
    buffer.close()
    handle = view.get_cuda_accessible()
    view.close()
    late(stream, handle)
    handle.close()
    assert emulator.violations() == []


def test_growth_gives_old_memory_back_after_its_users(emulator):
    stream = driver.Stream()
    buffer = in_use_on(stream)
    late(stream, buffer)
    buffer.resize(100 * N)
    assert emulator.violations() == []
    assert on_host(buffer).tolist()[:N] == [2] * N


# Temporaries.


@pytest.mark.multigpu
def test_a_temporary_on_another_device_is_not_on_the_buffers_stream():
    """CuPy would record an event of its device on that stream, which fails."""
    stream = hamr.Stream(device=0)
    buffer = hamr.Buffer(N, "f4", "cuda", fill=3, device=0, stream=stream, transfer="async")
    handle = buffer.get_cuda_accessible(1)
    assert handle.is_temporary
    assert handle.device == 1
    assert handle.__cuda_array_interface__["stream"] in (None, driver.LEGACY)
    assert driver.content(handle).tolist() == [3] * N
    assert buffer.get_cuda_accessible(0)._stream == int(stream)


@pytest.mark.parametrize("count", [0, N])
def test_accessors_refuse_devices_that_do_not_exist(device_allocator, count):
    buffer = hamr.Buffer(count, "f4", device_allocator)
    with pytest.raises(ValueError, match="device is 99"):
        buffer.get_cuda_accessible(99)


# Consumers of memory that another device's stream uses.


def waited_for(shared):
    """Do what the interface asks of a consumer."""
    stream = shared.__cuda_array_interface__["stream"]
    if stream is not None:
        with driver.on(shared.device):
            driver.do("cuStreamSynchronize", stream)


@pytest.mark.multigpu
def test_memory_is_not_written_before_another_device_has_read_it(device_allocator):
    source = hamr.Buffer(N, "f4", device_allocator, fill=1, device=0)
    target = hamr.Buffer(N, "f4", "cuda", fill=0, device=1)
    source.synchronize()
    target.synchronize()
    target[...] = source
    waited_for(source)
    writer = driver.Stream(0)
    driver.write_late(writer, source.ptr, N, 9)
    writer.synchronize()
    assert driver.content(target).tolist() == [1] * N


@pytest.mark.multigpu
def test_managed_memory_is_not_read_before_another_device_has_written_it():
    source = hamr.Buffer(N, "f4", "cuda", fill=1, device=0)
    target = hamr.Buffer(N, "f4", "cuda_uva", fill=0, device=1, transfer="async")
    source.synchronize()
    target.synchronize()
    target[...] = source
    waited_for(target)
    reader = driver.Stream(1)
    seen = driver.Array(np.zeros(N, "f4"), device=1)
    driver.write_late(reader, seen.ptr, N, 0, source=target.ptr)
    reader.synchronize()
    assert seen.read().tolist() == [1] * N


@pytest.mark.multigpu
def test_what_another_device_writes_to_managed_memory_is_waited_for():
    b = hamr.Buffer(N, "f4", "cuda_uva", fill=1, device=0)
    h = b.get_cuda_accessible(1)
    for value in (5, 6):  # after a wait, too
        driver.write_late(driver.LEGACY, h.ptr, N, value, device=1)
        assert b.get().tolist() == [value] * N


# Memory that is shared.


def test_memory_is_taken_only_where_it_can_be_freed(emulator):
    address = driver.allocate(4096)
    with pytest.raises(ValueError, match="where the allocation starts"):
        hamr.Buffer.from_pointer(address + 256, 16, "f4", "cuda", take=True)
    with pytest.raises(ValueError, match="accepted is cuda:"):
        hamr.Buffer.from_pointer(address, 16, "f4", "cuda_async", take=True)
    assert emulator.violations() == []
    driver.free(address)


def known(array):
    """Arrays of this type go the short way from now on."""
    hamr.buffer(driver.Array(np.zeros(4, "f4")))
    return array


def test_counts_that_do_not_fit_are_refused():
    array = known(driver.Array(np.zeros(4, "f4")))
    array.__cuda_array_interface__.update(shape=(2**40, 2**40), strides=(0, 0))
    with pytest.raises(ValueError, match="does not fit"):
        hamr.buffer(array)


class Key:
    """A key of a dictionary that does something when it is compared with a name."""

    def __init__(self, name, action):
        self.name, self.action = name, action

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        if other == self.name:
            self.action()
        return False


def with_key(action):
    array = known(driver.Array(np.arange(4, dtype="f4")))
    fields = dict(array.__cuda_array_interface__)
    del fields["stream"], fields["strides"]
    fields["data"] = (array.ptr, False)  # known to the dictionary alone
    fields[Key("stream", lambda: action(fields))] = None
    array.__cuda_array_interface__ = fields
    return array


def test_an_exception_of_a_key_is_not_lost():
    def fail(fields):
        raise RuntimeError("from a key")

    with pytest.raises(RuntimeError, match="from a key"):
        hamr.buffer(with_key(fail))


def test_a_key_that_changes_the_dictionary():
    others = []

    def change(fields):
        fields.clear()
        others.extend((float(i), object()) for i in range(100))

    array = with_key(change)
    assert on_host(hamr.buffer(array)).tolist() == [0, 1, 2, 3]


def test_an_interface_is_not_kept_for_what_was_swapped():
    """Making tuples may run the collector, and so finalisers that swap."""
    thresholds = gc.get_threshold()
    for allocations in range(1, 20):
        first, second = (hamr.Buffer((2, 2, 2), "f4", "cuda", fill=v) for v in (1, 2))

        class Swaps:
            def __init__(self, *buffers):
                self.cycle, self.buffers = self, buffers

            def __del__(self):
                self.buffers[0].swap(self.buffers[1])

        gc.collect()
        Swaps(first, second)
        try:
            gc.set_threshold(allocations)
            first.__cuda_array_interface__  # noqa: B018
        finally:
            gc.set_threshold(*thresholds)
        gc.collect()
        for buffer in (first, second):
            assert buffer.__cuda_array_interface__["data"][0] == buffer.ptr


# Python's lock.


#: The device waits for a semaphore that another thread posts: that ends only if Python's lock is
#: given up meanwhile.
HELD_UP = """
import ctypes, sys, threading
import numpy as np
import hamr
from tests.support import dlpack_exchange_structs as exchange
from tests.cuda import driver
from hamr import _native
libc, semaphore, started = ctypes.CDLL(None), ctypes.create_string_buffer(64), threading.Event()
libc.sem_init(semaphore, 0, 0)
waits = ctypes.cast(libc.sem_wait, ctypes.c_void_p)
thread = threading.Thread(target=lambda: (started.wait(), libc.sem_post(semaphore)), daemon=True)
thread.start()
def hold_up(stream):
    with driver.on(0):
        driver.do("cuLaunchHostFunc", stream.handle, waits, ctypes.addressof(semaphore))
def check(give_up):
    sys.setswitchinterval(1000)
    started.set()
    give_up()
    assert driver.emulator.pending() == 0
    thread.join()
"""


def test_host_memory_that_a_device_reads_is_given_up_without_the_lock(emulator):
    """The device may be waiting for a callback in Python."""
    run_code(
        HELD_UP
        + """
N = 1000
address = driver.allocate(4 * N, kind="cuda_host")
locked = np.frombuffer((ctypes.c_float * N).from_address(address), "f4")
locked[:] = 7
stream = driver.Stream()
target = hamr.Buffer(N, "f4", "cuda_async", fill=0, stream=stream, transfer="async")
target.synchronize()
shared = [hamr.buffer(locked)]
assert shared[0].allocator.name == "malloc"
hold_up(stream)
target[...] = shared[0]
check(shared.clear)
assert np.asarray(target.get_host_accessible()).tolist() == [7] * N
""",
    )


@pytest.mark.freed_again
@pytest.mark.parametrize("what", ["result", "tensor"])
def test_a_devices_memory_is_given_up_without_the_lock(emulator, what):
    run_code(
        HELD_UP
        + f"""
# More than hamr's pool keeps: that goes back to the driver at once, which waits for the device.
size = driver.MORE_THAN_IS_KEPT
source = hamr.Buffer(size, "u1", "cuda", fill=1)._pin()
if {what!r} == "result":
    results = [_native.copy(_native.Array, source, source._allocator, -1, source._element)]
    give_up = results.clear
else:
    tensor = exchange.allocate(exchange.table_of(hamr.Buffer), (size,), device=(2, 0))
    give_up = tensor.delete_with_lock
hold_up(driver.Stream())
check(give_up)
""",
    )


# Threads.


def test_streams_end_while_other_threads_use_the_same_memory():
    """Their copies are pending on streams that end as soon as nobody names them."""
    shared = hamr.Buffer(N, "f4", "cuda_async", fill=1, transfer="async")
    wrong, rounds = [], scaled(500, 50)

    def work():
        try:
            for _ in range(rounds):
                stream = hamr.Stream(device=0)
                own = hamr.Buffer(N, "f4", "cuda", fill=0, stream=stream, transfer="async")
                own[...] = shared
                assert on_host(own).tolist() == [1] * N
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Forks.


@pytest.mark.freed_again
def test_a_child_does_not_count_what_its_parent_shares():
    array = known(driver.Array(np.zeros(4, "f4"), stream=None))
    shared = hamr.buffer(array)
    assert _native.waiting() == [(int(shared.allocator), 1)]
    child = os.fork()
    if child == 0:
        os._exit(len(_native.waiting()))
    assert os.waitpid(child, 0)[1] == 0
    assert _native.waiting() == [(int(shared.allocator), 1)]
