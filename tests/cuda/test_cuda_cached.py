"""Temporaries that buffers keep: handed out again until the elements change, and in order."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.cuda.test_cuda_allocators import FEW_PLACES, name
from tests.support.processes import run_code

A = hamr.Allocator
N = 1000
RAMP = np.arange(N, dtype="f4")

#: What temporaries on a device are made of.
TEMPORARY = A.cuda if driver.POOLED else A.cuda_async


def cached(allocator=A.malloc, device=None, stream=None):
    return hamr.Buffer(N, "f4", allocator, data=RAMP, device=device, stream=stream).cached()


def counters(key):
    return sum(row[key] for row in hamr.stats()["allocators"].values())


@pytest.fixture(autouse=True)
def nothing_kept():
    yield
    gc.collect()
    assert counters("kept") == 0


def asks(device):
    """Where code may ask for elements."""
    return [("host", None), *(("cuda", d) for d in range(driver.DEVICES))]


def ask(buffer, space, device):
    if space == "host":
        return buffer.get_host_accessible()
    return buffer.get_cuda_accessible(device)


def elements(handle, device):
    if handle.device < 0 and not device:
        return np.asarray(handle).copy()
    return driver.read(handle.ptr, N, "f4", handle.device if handle.device >= 0 else device or 0)


@pytest.mark.parametrize("place", FEW_PLACES, ids=name)
@pytest.mark.parametrize("own", [False, True], ids=["default", "own stream"])
def test_the_second_is_the_first(place, own):
    allocator, device = place
    stream = driver.Stream(max(device, 0)) if own and allocator not in (A.malloc, A.cpp) else None
    buffer = cached(allocator, device, stream)
    plain = hamr.buffer(buffer)
    for space, number in asks(device):
        was_temporary = ask(plain, space, number).is_temporary
        first = ask(buffer, space, number)
        made, reused = counters("made"), counters("reused")
        second = ask(buffer, space, number)
        assert (second.ptr, second.shape, second.dtype) == (first.ptr, first.shape, first.dtype)
        assert first.is_temporary == second.is_temporary == was_temporary
        assert counters("made") == made
        assert counters("reused") - reused == was_temporary
        assert first.readonly == second.readonly == was_temporary
        assert np.array_equal(elements(second, number), RAMP)
    assert (counters("kept") > 0) == any(ask(buffer, *where).is_temporary for where in asks(0))
    buffer.close()


def test_only_who_asks_keeps(cuda_allocator):
    buffer = cached(cuda_allocator)
    others = [
        buffer[:], buffer.reshape(-1, 1), buffer.copy(), copy.copy(buffer), copy.deepcopy(buffer),
        hamr.buffer(buffer), pickle.loads(pickle.dumps(buffer.copy("malloc"))),
        buffer.get_cuda_accessible(),
    ]  # fmt: skip
    for other in others:
        assert not getattr(other, "is_cached", False)
        one, two = other.get_host_accessible(), other.get_host_accessible()
        assert one.is_temporary is (one.ptr != two.ptr)
    del others, other, one, two
    assert buffer.is_cached
    assert not buffer.cached(False).is_cached
    assert hamr.Buffer(2).is_cached is False
    with pytest.raises(TypeError, match="on is 1: accepted are True and False"):
        buffer.cached(1)
    buffer.close()
    assert not hamr.Buffer(2).cached(False).is_cached
    for use in (buffer.cached, buffer.changed):
        with pytest.raises(hamr.FreedBuffer):
            use()


def on_host(buffer):
    with buffer.on_host("rw") as array:
        array[0] = 77


def on_cuda(buffer):
    with buffer.on_cuda("w", 0) as handle:
        driver.write_late(handle._stream or driver.LEGACY, handle.ptr, N, 5)


def by_numpy(buffer):
    np.asarray(buffer)[0] = 78
    buffer.changed()


def by_another_block(buffer):
    array = np.asarray(buffer)
    other = hamr.buffer(array)
    other[1] = 79


def changed_by_another_block(buffer):
    array = np.asarray(buffer)
    array[2] = 80
    hamr.buffer(array).changed()


def read_into(buffer):
    hamr.Buffer(N, "f4", "cuda", fill=81).get(np.asarray(buffer))


CHANGES = {
    "fill": lambda b, v: b.fill(3),
    "set": lambda b, v: b.set(4, 5),
    "b[i] =": lambda b, v: b.__setitem__(3, 9),
    "b[...] =": lambda b, v: b.__setitem__(..., RAMP + 1),
    "append": lambda b, v: b.append(5),
    "append where there is room": lambda b, v: (
        b.reserve(2 * N), b.get_cuda_accessible(0), b.append(5)
    ),
    "resize": lambda b, v: b.resize(7),
    "reshaped": lambda b, v: b.resize((N // 2, 2)),
    "reserve": lambda b, v: b.reserve(2 * N),
    "assign": lambda b, v: b.assign([1, 2]),
    "swap": lambda b, v: b.swap(hamr.Buffer(N, "f4", fill=8)),
    "swapped": lambda b, v: hamr.Buffer(N, "f4", fill=8).swap(b),
    "move": lambda b, v: b.move("cpp"),
    "free": lambda b, v: b.free(),
    "close": lambda b, v: b.close(),
    "cached(False)": lambda b, v: b.cached(False),
    "changed": lambda b, v: b.changed(),
    "a view": lambda b, v: v.fill(6),
    "a part": lambda b, v: v[3:4].fill(6),
    "a view's changed": lambda b, v: v.changed(),
    "on_host": lambda b, v: on_host(b),
    "a view's on_host": lambda b, v: on_host(v),
    "on_cuda": lambda b, v: on_cuda(v),
    "by NumPy": lambda b, v: by_numpy(b),
    "another block": lambda b, v: by_another_block(b),
    "another block's changed": lambda b, v: changed_by_another_block(b),
    "get": lambda b, v: read_into(b),
    "trim": lambda b, v: hamr.trim(),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_change_drops_what_is_kept(change):
    buffer = cached()
    view = buffer[:]
    first = buffer.get_cuda_accessible(0)
    assert counters("kept") == 4 * N
    buffer.synchronize()
    change(buffer, view)
    assert counters("kept") == 0
    assert np.array_equal(elements(first, 0), RAMP)  # a handle keeps what it has
    if change not in (CHANGES["free"], CHANGES["close"]):
        now = buffer.get_cuda_accessible(0)
        assert now.ptr != first.ptr
        assert np.array_equal(now.get(), buffer.get())
        if change not in (CHANGES["cached(False)"],):
            assert buffer.is_cached
    assert not view.is_cached
    buffer.close()


def test_the_end_of_a_buffer_drops_what_is_kept():
    buffer = cached()
    view = buffer[:]
    handle = buffer.get_cuda_accessible(0)
    assert counters("kept") == 4 * N
    del buffer
    gc.collect()
    assert counters("kept") == 0
    assert np.array_equal(elements(handle, 0), RAMP)
    view.close()


def test_two_that_are_cached_swap_what_they_keep():
    a, b = cached(), hamr.Buffer(N, "f4", fill=2).cached()
    of_a, of_b = (x.get_cuda_accessible(0).ptr for x in (a, b))
    a.swap(b)
    assert (a.get_cuda_accessible(0).ptr, b.get_cuda_accessible(0).ptr) == (of_b, of_a)
    assert np.array_equal(elements(b.get_cuda_accessible(0), 0), RAMP)


def test_reading_gets_what_is_kept_as_libraries_want_it():
    buffer = cached()
    handle = buffer.get_cuda_accessible(0)
    assert handle.__cuda_array_interface__["data"] == (handle.ptr, True)
    with pytest.raises(BufferError):
        handle.__dlpack__()  # which could not say that it is read-only
    with buffer.on_cuda("r", 0) as reading:
        assert reading.__cuda_array_interface__["data"] == (handle.ptr, False)
        reading.__dlpack__()
    with buffer.on_cuda("w", 0) as writing:
        assert writing.ptr != handle.ptr
    on_device = cached(A.cuda)
    array = np.asarray(on_device.get_host_accessible())
    assert not array.flags.writeable
    with on_device.on_host("r") as again:
        assert again.ctypes.data == array.ctypes.data


# The order of work. The emulator does nothing before somebody waits, and then no more than that.


@pytest.mark.parametrize("allocator", [A.malloc, A.cuda_host], ids=lambda a: a.name)
def test_the_second_consumer_comes_after_the_copy(allocator):
    first, second, third = driver.Stream(), driver.Stream(), driver.Stream()
    buffer = cached(allocator, stream=first if allocator == A.cuda_host else None)
    if allocator == A.malloc:
        buffer.set_stream(first)
    made = buffer.get_cuda_accessible(0)
    target = hamr.Buffer(N, "f4", "cuda", fill=0)
    target.synchronize()
    buffer.set_stream(second)
    handle = buffer.get_cuda_accessible(0)
    assert handle.ptr == made.ptr
    # On the stream that the interface names.
    named = handle.__cuda_array_interface__.get("stream", driver.LEGACY)
    driver.write_late(named, target.ptr, N, 1, source=handle.ptr)
    with driver.on(0):
        driver.do("cuStreamSynchronize", named)
    assert np.array_equal(driver.read(target.ptr, N, "f4"), RAMP + 1)
    # And on one that it is made ready for.
    capsule = handle.__dlpack__(stream=third.handle, max_version=(1, 0))
    driver.write_late(third, target.ptr, N, 2, source=handle.ptr)
    third.synchronize()
    assert np.array_equal(driver.read(target.ptr, N, "f4"), RAMP + 2)
    del capsule


@pytest.mark.parametrize("dropped", ["changed", "fill", "close", "trim"])
@pytest.mark.parametrize("consumer", ["own", "default", "dlpack", "dlpack default"])
def test_memory_goes_back_after_its_last_consumer(emulator, dropped, consumer):
    """It was taken for another stream than those that its later consumers use."""
    first, second = driver.Stream(), driver.Stream()
    buffer = cached()
    buffer.set_stream(first)
    with buffer.get_cuda_accessible(0) as made:
        made.get()  # the copy is over, and hamr knows it
    target = hamr.Buffer(N, "f4", "cuda", fill=0)
    target.synchronize()
    buffer.set_stream(second if consumer == "own" else None)
    handle = buffer.get_cuda_accessible(0)
    assert handle.allocator == TEMPORARY
    capsule, stream = None, second if consumer == "own" else driver.LEGACY
    if consumer.startswith("dlpack"):
        stream = second if consumer == "dlpack" else driver.LEGACY
        number = getattr(stream, "handle", stream)
        capsule = handle.__dlpack__(stream=number, max_version=(1, 0))
    driver.write_late(stream, target.ptr, N, 3, source=handle.ptr)
    handle.close()
    del capsule
    {"changed": buffer.changed, "fill": lambda: buffer.fill(1), "close": buffer.close,
     "trim": hamr.trim}[dropped]()  # fmt: skip
    first.synchronize()
    hamr.Buffer(N, "f4", TEMPORARY, fill=9, stream=hamr.Stream(device=0)).synchronize()
    assert np.array_equal(driver.read(target.ptr, N, "f4"), RAMP + 3)
    assert emulator.violations() == []
    buffer.close()


def test_a_stream_may_end_that_a_kept_temporary_was_used_on():
    buffer = cached()
    stream = hamr.Stream(device=0)
    buffer.set_stream(stream)
    made = buffer.get_cuda_accessible(0).ptr
    buffer.set_stream(None)
    del stream
    gc.collect()
    handle = buffer.get_cuda_accessible(0)
    assert handle.ptr == made
    assert np.array_equal(handle.get(), RAMP)


def test_a_change_waits_for_the_copy_that_reads():
    buffer = cached(A.cuda_host, stream=driver.Stream())
    handle = buffer.get_cuda_accessible(0)
    buffer.fill(5)
    assert np.array_equal(handle.get(), RAMP)
    assert np.array_equal(buffer.get_cuda_accessible(0).get(), np.full(N, 5, "f4"))
    buffer.close()


@pytest.mark.multigpu
def test_each_device_has_its_own():
    buffer = cached(A.cuda, 0)
    handle = buffer.get_cuda_accessible(1)
    assert buffer.get_cuda_accessible(1).ptr == handle.ptr
    assert not buffer.get_cuda_accessible(0).is_temporary
    assert counters("kept") == 4 * N
    buffer.get_host_accessible()
    assert counters("kept") == 8 * N
    buffer.fill(4)
    assert counters("kept") == 0
    assert np.array_equal(buffer.get_cuda_accessible(1).get(), np.full(N, 4, "f4"))
    assert np.array_equal(handle.get(), RAMP)
    buffer.close()


def test_what_is_kept_makes_room(emulator):
    buffer = cached()
    buffer.get_cuda_accessible(0)
    for nth in (1, 2):  # the backend itself tries twice
        emulator.fail("cuMemAllocFromPoolAsync", nth, driver.OUT_OF_MEMORY)
    other = hamr.Buffer(N, "f4", "cuda_async", fill=1)
    emulator.stop_failing()
    assert counters("kept") == 0
    assert str(other[:2]) == "{1, 1}"
    assert np.array_equal(buffer.get_cuda_accessible(0).get(), RAMP)
    buffer.close()


def test_what_is_kept_while_it_is_read_into_goes(emulator):
    """Of memory that the driver writes to meanwhile, a temporary has some of both."""
    values = np.zeros(N, "f4")
    buffer, source = hamr.buffer(values).cached(), hamr.Buffer(N, "f4", "cuda", device=0, fill=1)
    source.synchronize()
    with driver.on(0):
        emulator.hold(driver.LEGACY)
    begun = emulator.calls("cuMemcpyDtoH_v2")

    def read():
        with driver.on(0):
            source.get(values)

    reader = threading.Thread(target=read)
    reader.start()
    while emulator.calls("cuMemcpyDtoH_v2") == begun:
        pass
    buffer.get_cuda_accessible(0).close()
    emulator.let_go()
    reader.join()
    assert buffer.get_cuda_accessible(0).get().tolist() == values.tolist() == [1] * N
    buffer.close()


def test_in_threads():
    buffer = cached()
    failures = []

    def reading():
        for _ in range(30):
            seen = buffer.get_cuda_accessible(0).get()
            if not (seen == seen[0]).all() and not np.array_equal(seen, RAMP):
                failures.append(seen)

    threads = [threading.Thread(target=reading) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        buffer.changed()
        buffer.cached(False).cached()
    for thread in threads:
        thread.join()
    assert failures == []
    buffer.fill(6)
    assert np.array_equal(buffer.get_cuda_accessible(0).get(), np.full(N, 6, "f4"))
    buffer.close()


FORKS = """
import os, sys
import numpy as np
import hamr
buffer = hamr.Buffer(3, "f4", fill=1).cached()
buffer.get_cuda_accessible(0)
assert hamr.stats()["spaces"]["cuda"]["kept"] == 12
sys.stdout.flush()
if os.fork() == 0:
    try:
        assert buffer.is_cached
        buffer.fill(2)
        buffer.changed()
        assert np.asarray(buffer).tolist() == [2, 2, 2]
        assert hamr.stats()["spaces"].get("cuda", {"kept": 0})["kept"] == 0
        try:
            buffer.get_cuda_accessible(0)
        except (hamr.Error, RuntimeError) as error:
            print(type(error).__name__)
        buffer.close()
        print("child done", flush=True)
    finally:
        os._exit(0)
os.wait()
assert hamr.stats()["spaces"]["cuda"]["kept"] == 12
assert np.asarray(buffer.get_cuda_accessible(0).get()).tolist() == [1, 1, 1]
"""


def test_a_forked_child_makes_its_own():
    assert "child done" in run_code(FORKS)
