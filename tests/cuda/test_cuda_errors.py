"""A failure of any call to the driver: the right exception, nothing lost, and all goes on."""

import asyncio
import ctypes
import sys

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.cuda.driver import ILLEGAL_ADDRESS, INVALID_VALUE, OUT_OF_MEMORY
from tests.support.contents import on_host

NAMES = {
    INVALID_VALUE: "CUDA_ERROR_INVALID_VALUE",
    OUT_OF_MEMORY: "CUDA_ERROR_OUT_OF_MEMORY",
    ILLEGAL_ADDRESS: "CUDA_ERROR_ILLEGAL_ADDRESS",
}
N = 64
ROOM = (5 << 20) // 4  # elements of more memory than is mapped at first
LIVE = ("memory", "bytes", "streams", "events", "pools")


def ramp():
    return np.arange(N, dtype="f4")


class World:
    """What operations work on. Every operation leaves it as it found it, failed or not."""

    def __init__(self):
        self.stream, self.other = hamr.Stream(device=0), hamr.Stream(device=0)
        make = lambda a, s=None: hamr.Buffer(N, "f4", a, data=ramp(), stream=s)  # noqa: E731
        self.cuda, self.pool = make("cuda"), make("cuda_async", self.stream)
        self.managed, self.pinned = make("cuda_uva"), make("cuda_host")
        self.foreign = driver.Array(ramp(), stream=driver.LEGACY)
        self.event = self.stream.record()
        self.settle()

    def buffers(self):
        return [self.cuda, self.pool, self.managed, self.pinned]

    def settle(self):
        for buffer in self.buffers():
            buffer.synchronize()

    def assert_unchanged(self):
        for buffer in self.buffers():
            assert np.asarray(buffer.get_host_accessible()).tolist() == ramp().tolist()
        assert self.foreign.read().tolist() == ramp().tolist()


def check(found, expected):
    assert np.asarray(found).tolist() == np.asarray(expected).tolist()


def appended(buffer):
    """A change of the buffer itself, on a copy of it."""
    copied = buffer.copy()
    copied.append(buffer)
    check(on_host(copied), np.tile(ramp(), 2))


def grown(grow):
    """Memory that grows where it is, where no call fails."""
    buffer = hamr.Buffer(N, "f4", "cuda_vmm", data=ramp())
    place = buffer.ptr
    try:
        grow(buffer)
    finally:
        assert buffer.ptr == place
        check(on_host(buffer[:N]), ramp())


def fail_in_order(w):
    event = w.other.record()
    w.stream.wait(event)
    event.synchronize()
    assert event.done


def moved(buffer, to):
    copied = buffer.copy()
    copied.move(to)
    check(on_host(copied), ramp())


def strided(buffer):
    copied = buffer.copy()
    copied[::2] = buffer[1::2]
    expected = ramp()
    expected[::2] = ramp()[1::2]
    check(on_host(copied), expected)


def locked():
    """Page-locked memory of which no pool has any left."""
    hamr.trim()
    try:
        hamr.Buffer(driver.LARGE, "u1", "cuda_host")
    finally:
        try:
            hamr.trim()
        except hamr.Error:
            hamr.trim()
            raise


OPERATIONS = {
    # More than what the pool may have there: that takes no call.
    "create cuda": lambda w: hamr.Buffer(4 << 20, "f4", "cuda", stream=w.stream),
    "create cuda_async": lambda w: hamr.Buffer(N, "f4", "cuda_async", stream=w.stream),
    "create cuda_uva": lambda w: hamr.Buffer(N, "f4", "cuda_uva"),
    "create cuda_host": lambda w: locked(),
    "create cuda_vmm": lambda w: hamr.Buffer(N, "f4", "cuda_vmm"),
    "resize cuda_vmm": lambda w: grown(lambda b: b.resize(ROOM, 0)),
    "reserve cuda_vmm": lambda w: grown(lambda b: b.reserve(ROOM)),
    "append to cuda_vmm": lambda w: grown(lambda b: b.append(np.zeros(ROOM, "f4"))),
    "create filled": lambda w: check(on_host(hamr.Buffer(N, "f4", "cuda", fill=3)), np.full(N, 3)),
    "create filled by 16 bytes": lambda w: check(
        on_host(hamr.Buffer(N, "c16", "cuda_async", fill=3 + 1j)), np.full(N, 3 + 1j)
    ),
    "host to device": lambda w: check(on_host(hamr.Buffer(N, "f4", "cuda", data=ramp())), ramp()),
    "device to host": lambda w: check(w.pool.get(), ramp()),
    "device to pinned": lambda w: check(w.cuda.copy("cuda_host"), ramp()),
    "pinned to device": lambda w: check(on_host(w.pinned.copy("cuda")), ramp()),
    "device to device": lambda w: check(on_host(w.cuda.copy("cuda_async")), ramp()),
    "managed to device": lambda w: check(on_host(w.managed.copy("cuda_async")), ramp()),
    "between streams": lambda w: check(on_host(w.pool.copy("cuda")), ramp()),
    "convert": lambda w: check(on_host(w.pool.astype("i2")), ramp()),
    "reverse": lambda w: check(on_host(w.cuda[::-1].copy()), ramp()[::-1]),
    "append": lambda w: appended(w.pool),
    "strided": lambda w: strided(w.cuda),
    "move to host": lambda w: moved(w.pool, "malloc"),
    "move to managed": lambda w: moved(w.cuda, "cuda_uva"),
    "text": lambda w: str(w.pool),
    "item": lambda w: w.cuda[3].item(),
    "access on the host": lambda w: check(w.cuda.get_host_accessible(), ramp()),
    "access on the device": lambda w: check(on_host(w.pinned.get_cuda_accessible()), ramp()),
    "import": lambda w: check(on_host(hamr.buffer(w.foreign)), ramp()),
    "import on a stream": lambda w: check(on_host(hamr.buffer(w.foreign, stream=w.other)), ramp()),
    "import a pointer": lambda w: hamr.Buffer.from_pointer(w.foreign.ptr, N, "f4", "cuda"),
    "export": lambda w: w.pool.copy().__cuda_array_interface__,
    "stream": lambda w: hamr.Stream(device=0).synchronize(),
    "per-thread stream": lambda w: hamr.Buffer(N, "f4", "cuda_async", stream=driver.PER_THREAD),
    "event": fail_in_order,
    "await": lambda w: asyncio.run(awaited(w)),
    "idle": lambda w: (w.stream.idle, w.event.done),
    "synchronize": lambda w: w.pool.synchronize(),
    "device": lambda w: hamr.device(0).__enter__().__exit__(),
    "memory_info": lambda w: hamr.memory_info(0),
    "device_properties": lambda w: hamr.device_properties(0),
    "device_of": lambda w: hamr.device_of(w.foreign),
    "trim": lambda w: hamr.trim(),
}


async def awaited(w):
    copied = w.pool.copy()
    await copied.ready()
    await w.stream.record()


@pytest.fixture(scope="module")
def world():
    made = World() if driver.DEVICES and driver.emulator else None
    for run in OPERATIONS.values() if made else ():  # what is made once: kernels, pools, contexts
        run(made)
    yield made
    if made:
        made.settle()


def state(emulator, world):
    world.settle()
    hamr.trim()  # what is kept for reuse, as chunks of page-locked memory
    emulator.finish()
    return {what: emulator.live(what) for what in LIVE}


#: A release raises nothing: it is tested apart. Names of errors have an alternative,
#: and that a context cannot be popped which was pushed before does not happen.
UNTESTED = ("Free", "Destroy", "GetError", "cuCtxPop")


def faults(emulator, world, name):
    """Which calls of the driver an operation makes where nothing is pending, and how often each."""
    state(emulator, world)
    found = emulator.count_calls(lambda: OPERATIONS[name](world))
    return {call: n for call, n in found.items() if not any(x in call for x in UNTESTED)}


@pytest.fixture
def reported(capfd, monkeypatch):
    """What was said since the last question of failures that nobody could be told of by raising."""
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", lambda x: unraisable.append(str(x.exc_value)))

    def ask():
        text = capfd.readouterr().err + "".join(unraisable)
        unraisable.clear()
        return text

    return ask


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_call_of_each_operation_fails_once(emulator, world, name, reported):
    run = OPERATIONS[name]
    before = state(emulator, world)
    counts = faults(emulator, world, name)
    assert counts, f"{name} makes no call that could fail"
    for call, count in counts.items():
        for nth in range(1, min(count, 5) + 1):
            # Each code is not needed at each place.
            codes = (OUT_OF_MEMORY, INVALID_VALUE) if "Alloc" in call else CODES[nth % 2 :][:1]
            for code in codes:
                where = (name, call, nth, code)
                earlier = emulator.calls(call)
                emulator.fail(call, nth, code)
                error = error_of(lambda: run(world), where)
                emulator.stop_failing()
                released = NAMES[code] in reported()
                if emulator.calls(call) - earlier >= nth:
                    assert_right(error, call, code, released, where)
                else:  # a wait asks again until it is over: sooner, this time
                    assert nth > 1, where
                    assert error is None, (where, error)
                after = state(emulator, world)
                if after != before:
                    # Memory that the driver refused to take back is lost.
                    assert released, (where, before, after)
                    before = after
    world.assert_unchanged()
    run(world)


def error_of(run, where):
    try:
        run()
    except (hamr.Error, MemoryError) as error:
        error.__context__ = None  # frames would keep what the operation made
        return error.with_traceback(None)
    except AssertionError as error:
        pytest.fail(f"a wrong result instead of an error, {where}: {error}")
    return None


CODES = (INVALID_VALUE, ILLEGAL_ADDRESS)

#: Calls whose failure leaves another way to the same result, or costs nothing. (C asks
#: where memory is, and where it gets no answer the Go core asks again.)
ABSORBED = {
    "cuPointerGetAttributes", "cuDeviceGetUuid_v2", "cuCtxEnablePeerAccess", "cuModuleLoadData",
    "cuModuleGetFunction", "cuMemHostRegister_v2",
}  # fmt: skip


#: C asks whether the default stream is busy, and which device is current, too, and the core where
#: it gets no answer. A copy is not staged where no answer says that nothing is captured.
ASKED_AGAIN = {
    ("access on the host", "cuCtxGetCurrent", 1),
    ("export", "cuCtxGetCurrent", 1),
    ("export", "cuStreamQuery", 1),
    ("host to device", "cuCtxGetDevice", 1),
    ("append to cuda_vmm", "cuStreamIsCapturing", 2),  # the first is whether it may take long
    *(
        (f"{act} cuda_vmm", "cuCtxGetDevice", 1)
        for act in ("create", "resize", "reserve", "append to")
    ),
    ("create cuda", "cuCtxGetDevice", 1),
    ("create cuda_async", "cuCtxGetDevice", 1),
}


def assert_right(error, call, code, released, where):
    if error is None:
        # An allocation is tried again after the pools have given back what they keep.
        retried = code == OUT_OF_MEMORY or where[:3] in ASKED_AGAIN
        assert released or retried or call in ABSORBED, where
        return
    if isinstance(error, hamr.OutOfMemory):
        assert code == OUT_OF_MEMORY, where
        return
    assert isinstance(error, hamr.DeviceError), (where, error)
    assert (error.api, error.name, error.code) == ("cuda", NAMES[code], code), where
    assert NAMES[code] in str(error)
    assert call.removesuffix("_v2") in str(error), (where, str(error))


# Running out of memory.


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva", "cuda_host", "cuda_vmm"])
def test_out_of_memory_at_every_allocation(emulator, allocator):
    """An operation that allocates several times may fail at each."""
    call = {
        "cuda": "cuMemAlloc_v2", "cuda_async": "cuMemAllocFromPoolAsync",
        "cuda_uva": "cuMemAllocManaged", "cuda_host": "cuMemHostAlloc", "cuda_vmm": "cuMemCreate",
    }[allocator]  # fmt: skip
    hamr.trim()
    count = driver.LARGE // 4  # of which no pool has any left
    ramp = np.arange(count, dtype="f4")
    for operation in ("resize", "reserve", "append", "assign", "copy", "move"):
        source = hamr.Buffer(count, "f4", "malloc", data=ramp)
        buffer = source.copy(allocator)
        buffer.synchronize()
        place = buffer.ptr, buffer.capacity()
        emulator.fail(call, 0, OUT_OF_MEMORY)
        if allocator == "cuda_host":
            emulator.fail_locking(0, OUT_OF_MEMORY)
        with pytest.raises(hamr.OutOfMemory) as caught:
            {
                "resize": lambda: buffer.resize(10 * count, 1),  # noqa: B023
                "reserve": lambda: buffer.reserve(10 * count),  # noqa: B023
                "append": lambda: buffer.append(buffer),  # noqa: B023
                "assign": lambda: buffer.assign(np.zeros(10 * count)),  # noqa: B023
                "copy": lambda: buffer.copy(),  # noqa: B023
                "move": lambda: source.move(allocator),  # noqa: B023
            }[operation]()
        emulator.stop_failing()
        assert isinstance(caught.value, MemoryError)
        assert caught.value.size >= 4 * count
        assert allocator in str(caught.value)
        assert (buffer.ptr, buffer.capacity()) == place
        np.testing.assert_array_equal(on_host(buffer), ramp)
        np.testing.assert_array_equal(on_host(source), ramp)
        buffer.append(1)
        np.testing.assert_array_equal(on_host(buffer), [*ramp, 1])
        buffer.close()
        hamr.trim()


@pytest.mark.parametrize("nth", range(1, 12))
def test_a_device_that_fills_up(emulator, nth):
    """After nth allocations there is no more; giving some back helps."""
    kept = [hamr.Buffer(N, "f4", "cuda", data=ramp()) for _ in range(nth)]
    free, _ = hamr.memory_info(0)
    with pytest.raises(hamr.OutOfMemory):
        hamr.Buffer(free + (1 << 20), "u1", "cuda")
    with pytest.raises(hamr.OutOfMemory):
        kept[0].resize(free)
    for buffer in kept:
        check(on_host(buffer), ramp())
    assert hamr.Buffer(free // 2, "u1", "cuda").nbytes == free // 2


def test_what_the_pool_keeps_is_used_before_giving_up(emulator):
    free, _ = hamr.memory_info(0)
    size = int(free * 0.8)
    hamr.Buffer(size, "u1", "cuda_async").close()
    assert hamr.Buffer(size, "u1", "cuda").nbytes == size


# Late failures.


def test_a_failure_of_late_work_is_raised_where_it_is_waited_for(emulator):
    source = hamr.Buffer(N, "f4", "cuda", fill=1, transfer="async")
    source.synchronize()
    target = source.copy()
    emulator.fail("execute", 1, ILLEGAL_ADDRESS)
    with pytest.raises(hamr.DeviceError) as caught:
        target.synchronize()
    assert (caught.value.code, caught.value.name) == (ILLEGAL_ADDRESS, NAMES[ILLEGAL_ADDRESS])
    emulator.stop_failing()
    target.assign(source)
    check(on_host(target), np.ones(N))


@pytest.mark.parametrize(
    "read",
    [lambda b: np.asarray(b), lambda b: memoryview(b), lambda b: b.get_host_accessible(), str],
    ids=["asarray", "memoryview", "handle", "str"],
)
@pytest.mark.parametrize("allocator", ["cuda_host", "cuda_uva"])
def test_the_host_is_told_instead_of_reading_nonsense(emulator, allocator, read):
    source = hamr.Buffer(N, "f4", "cuda", fill=1)
    source.synchronize()
    copied = hamr.Buffer(N, "f4", allocator, fill=0, transfer="async")
    copied.synchronize()
    copied.assign(source)
    emulator.fail("execute", 1, ILLEGAL_ADDRESS)
    for call in emulator.entry_points:  # as a device does after a kernel's wrong access
        if call.startswith(("cuStream", "cuEvent", "cuMemcpy")):
            emulator.fail(call, 0, ILLEGAL_ADDRESS)
    with pytest.raises((hamr.DeviceError, BufferError), match="ILLEGAL_ADDRESS"):
        read(copied)
    emulator.stop_failing()
    copied.assign(source)
    check(copied, np.ones(N))


def test_codes_without_a_name(emulator):
    hamr.trim()
    emulator.fail("cuMemAlloc_v2", 1, 12345)
    with pytest.raises(hamr.DeviceError) as caught:
        hamr.Buffer(driver.LARGE, "u1", "cuda")
    assert caught.value.code == 12345
    assert "12345" in str(caught.value)


def test_the_context_is_restored_after_failures(emulator):
    driver.set_current(driver.context(0))
    buffer = hamr.Buffer(N, "f4", "cuda", fill=1)
    last = driver.DEVICES - 1
    far = lambda: hamr.Buffer(N, "f4", "cuda", fill=1, transfer="sync", device=last)  # noqa: E731
    calls = emulator.count_calls(lambda: far().assign(buffer))
    for call in calls.keys() - {"cuCtxPopCurrent_v2"}:
        for nth in (1, 2):
            emulator.fail(call, nth, INVALID_VALUE)
            error_of(lambda: far().assign(buffer), call)
            emulator.stop_failing()
            assert driver.current_context() == driver.context(0), call


def test_device_memory_is_no_argument_for_the_hosts_functions():
    """ctypes would pass the address on; a handle on the host is one, and waits."""
    strlen = ctypes.CDLL(None).strnlen
    b = hamr.Buffer(5, "u1", "cuda", fill=7)
    with pytest.raises(
        ctypes.ArgumentError, match=r"the host does not reach cuda memory: pass b\.get_host_"
    ):
        strlen(b, 5)
    assert strlen(b.get_host_accessible(), 5) == 5
    with pytest.raises(ctypes.ArgumentError, match="does not reach cuda memory"):
        strlen(b.get_cuda_accessible(), 5)
