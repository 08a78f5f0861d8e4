"""Streams, events and devices as objects: what is taken for one, and what they ask of the core.

The core's functions are replaced by a record of their calls, so that no device is needed.
"""

import asyncio
import ctypes
import gc
import os
import signal
import weakref
from importlib import import_module

import numpy as np
import pytest

import hamr

MODULES = [import_module(f"hamr.{name}") for name in ("stream", "event", "place", "waiting")]
NEW, EVENT, OF_THREAD = 0x100, 0x200, 0x300


class Core:
    """Answers the calls that streams, events and devices make, and remembers them."""

    def __init__(self):
        self.calls = []
        self.current = 0
        self.busy = 0  # how often work is not over yet

    def __call__(self, name, *arguments):
        self.calls.append((name, *arguments))
        return getattr(self, name)(*arguments)

    def finish(self, generation, name, *arguments):
        assert generation == hamr._native.generation()
        self.calls.append((name, *arguments))

    def over(self, *arguments):
        self.busy -= 1
        return self.busy < 0

    StreamIdle = WaitStream = EventDone = WaitEvent = over

    def CurrentDevice(self, backend):  # noqa: N802
        return self.current

    def DeviceCount(self, backend):  # noqa: N802
        return 3

    def Activate(self, backend, device):  # noqa: N802
        before, self.current = self.current, device
        return before

    def Restore(self, backend, before):  # noqa: N802
        self.current = before

    def NewStream(self, backend, device):  # noqa: N802
        return NEW + device

    def ResolveStream(self, backend, device, stream):  # noqa: N802
        return OF_THREAD + device

    def RecordEvent(self, backend, device, stream):  # noqa: N802
        return EVENT + device

    def StreamWaitEvent(self, backend, device, stream, event):  # noqa: N802
        return 0

    def CanAccess(self, backend, user, owner):  # noqa: N802
        return 2 not in (user, owner)

    def EnablePeer(self, backend, user, owner):  # noqa: N802
        return 0

    def MemoryInfo(self, backend, device):  # noqa: N802
        return "10 30"

    def Describe(self, backend, device):  # noqa: N802
        return '[["name", "Tester"], ["driver", "13.0"]]'

    def Locate(self, address):  # noqa: N802
        return '{"allocator": "cuda", "device": 2, "base": 4096, "size": 64}'


@pytest.fixture
def core(monkeypatch):
    made = Core()
    for module in MODULES:
        monkeypatch.setattr(module, "call", made)
    for cls in (hamr.Stream, hamr.Event):
        monkeypatch.setattr(cls.__del__, "__defaults__", (made.finish,))
    yield made
    gc.collect()  # what the test made ends while its core is there


def foreign(kind="Stream", **attributes):
    """An object of another library."""
    return type(kind, (), attributes)()


# What is a stream.


def test_the_default_stream_needs_no_core(core):
    stream = hamr.Stream()
    assert (int(stream), stream.ptr, stream.device) == (0, 0, -1)
    assert stream.__cuda_stream__() == (0, 0)
    assert hamr.Stream.from_any(None) == stream
    assert core.calls == []


def test_a_new_stream_ends_with_the_object(core):
    stream = hamr.Stream(device=1)
    assert (stream.ptr, stream.device) == (NEW + 1, 1)
    assert stream.__cuda_stream__() == (0, NEW + 1)
    assert core.calls == [("NewStream", "cuda", 1)]
    shared = hamr.Stream(stream)
    del stream
    gc.collect()
    assert len(core.calls) == 1
    del shared
    gc.collect()
    assert core.calls[1:] == [("DestroyStream", "cuda", 1, NEW + 1)]


def test_a_new_stream_on_the_current_device(core):
    core.current = 2
    assert hamr.Stream(device=-1).device == 2


def test_a_shared_stream_is_not_destroyed(core):
    del core.calls[:]
    hamr.Stream(foreign(ptr=9))
    hamr.Stream(9, device=1)
    gc.collect()
    assert core.calls == []


@pytest.mark.parametrize(
    ("stream", "device"),
    [
        (foreign(ptr=9, device_id=1), 1),
        (foreign(ptr=9, device_id=-1), -1),
        (foreign(cuda_stream=9, device=foreign("device", index=2)), 2),
        (foreign(cuda_stream=9, device_index=1), 1),
        (foreign(handle=ctypes.c_void_p(9)), -1),
        (foreign(__cuda_stream__=(0, 9)), -1),
        (foreign(__cuda_stream__=lambda self: (0, 9), device=foreign(device_id=1)), 1),
        (foreign(__cuda_stream__=lambda self: (0, foreign("CUstream", __int__=lambda s: 9))), -1),
        (foreign(ptr=np.uint64(9)), -1),
    ],
)
def test_streams_of_other_libraries_say_where_they_are(core, stream, device):
    made = hamr.Stream.from_any(stream)
    assert (made.ptr, made.device) == (9, device)
    assert hamr.Stream(stream, device=0).device == 0


def test_numbas_default_stream():
    assert hamr.Stream(foreign(handle=ctypes.c_void_p(0))).ptr == 0


def test_a_foreign_stream_is_kept_alive():
    stream = foreign(ptr=9)
    alive = weakref.ref(stream)
    made = hamr.Stream(stream)
    del stream
    gc.collect()
    assert alive() is not None
    del made
    gc.collect()
    assert alive() is None


def test_the_per_thread_stream_is_resolved_at_once(core):
    core.current = 1
    for given in (2, foreign(ptr=2)):
        assert (hamr.Stream(given).ptr, hamr.Stream(given).device) == (OF_THREAD + 1, 1)
    assert hamr.Stream(2, device=2).ptr == OF_THREAD + 2
    assert hamr.Stream(foreign(ptr=2, device_id=0)).ptr == OF_THREAD
    assert int(hamr.Buffer(3, stream=2).stream) == OF_THREAD + 1
    assert int(hamr.buffer(np.zeros(3), 2).stream) == OF_THREAD + 1
    buffer = hamr.Buffer(3)
    buffer.set_stream(2)
    assert int(buffer.stream) == OF_THREAD + 1


@pytest.mark.parametrize(
    ("stream", "error", "words"),
    [
        ("x", TypeError, "stream.*'x'"),
        (1.5, TypeError, r"stream.*1\.5"),
        (True, TypeError, "stream.*True"),
        (np.zeros(3), TypeError, "stream"),
        (foreign("Event", ptr=9), TypeError, "stream.*Event"),
        (foreign(ptr="x"), TypeError, "stream"),
        (foreign(ptr=True), TypeError, "stream"),
        (foreign(ptr=-9), ValueError, "stream"),
        (foreign(__cuda_stream__=9), TypeError, "__cuda_stream__ 9"),
        (foreign(__cuda_stream__=(0,)), TypeError, r"__cuda_stream__ \(0,\)"),
        (foreign(__cuda_stream__=(1, 9)), ValueError, "version 0"),
        (-1, ValueError, "stream.*-1"),
        (2**64, ValueError, f"stream.*{2**64}"),
    ],
)
def test_what_is_no_stream(core, stream, error, words):
    for use in (hamr.Stream, hamr.Stream.from_any, lambda s: hamr.Buffer(3, stream=s)):
        with pytest.raises(error, match=words):
            use(stream)
    assert core.calls == []


@pytest.mark.parametrize(
    ("device", "error"), [("0", TypeError), (True, TypeError), (-2, ValueError)]
)
def test_what_is_no_device(core, device, error):
    for use in (lambda d: hamr.Stream(device=d), hamr.device, hamr.memory_info):
        with pytest.raises(error, match="device"):
            use(device)


# Waiting.


def test_blocking_is_in_slices(core):
    core.busy = 3
    hamr.Stream(9, device=1).synchronize()
    assert core.calls == [("WaitStream", "cuda", 1, 9, 50)] * 4


@pytest.mark.parametrize(
    "wait", [lambda: hamr.Stream(9).synchronize(), lambda: hamr.Event().wait()]
)
def test_ctrl_c_ends_a_wait(core, monkeypatch, wait):
    core.busy = 10**9

    def interrupted(*arguments):
        if core.busy == 10**9 - 3:
            signal.raise_signal(signal.SIGINT)
        return Core.over(core)

    monkeypatch.setattr(core, "WaitStream", interrupted, raising=False)
    monkeypatch.setattr(core, "WaitEvent", interrupted, raising=False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            wait()
    finally:
        signal.signal(signal.SIGINT, before)


def test_idle_and_done(core):
    core.busy = 2
    stream = hamr.Stream(9)
    assert [stream.idle, stream.done, stream.idle] == [False, False, True]


def test_awaiting_lets_others_run(core):
    steps = []

    async def other():
        while core.busy >= 0:
            steps.append(core.busy)
            await asyncio.sleep(0)

    async def main():
        for waited in (hamr.Stream(9), hamr.Stream(9).record()):
            core.busy = 3
            del steps[:]
            await asyncio.gather(waited_for(waited), other())
            assert len(set(steps)) >= 3

    async def waited_for(x):
        await x

    asyncio.run(main())


def test_a_host_buffer_is_ready():
    async def main():
        buffer = hamr.Buffer(3, fill=1)
        assert await buffer.ready() is None

    asyncio.run(main())
    buffer = hamr.Buffer(3)
    assert buffer.synchronize() is None
    buffer.close()
    with pytest.raises(hamr.FreedBuffer):
        buffer.ready()


# Events.


def test_an_event_stands_for_a_streams_work(core):
    core.current = 1
    event = hamr.Stream(9).record()
    assert core.calls[-1] == ("RecordEvent", "cuda", 1, 9)
    assert (event.ptr, event.device) == (EVENT + 1, 1)
    core.current = 0
    assert event.done
    assert core.calls[-1] == ("EventDone", "cuda", 1, EVENT + 1)
    event.wait()
    event.synchronize()
    assert core.calls[-2:] == [("WaitEvent", "cuda", 1, EVENT + 1, 50)] * 2
    event.wait(hamr.Stream(7, device=2))
    event.wait(foreign(ptr=7, device_id=2))
    hamr.Stream(7, device=2).wait(event)
    assert core.calls[-3:] == [("StreamWaitEvent", "cuda", 2, 7, EVENT + 1)] * 3
    del event
    gc.collect()
    assert core.calls[-1] == ("DestroyEvent", "cuda", 1, EVENT + 1)
    assert hamr.Event(foreign(ptr=9)).ptr == EVENT


@pytest.mark.parametrize(
    "event",
    [
        foreign("Event", ptr=5),
        foreign("Event", cuda_event=5),
        foreign("Event", handle=ctypes.c_void_p(5)),
    ],
)
def test_events_of_other_libraries(core, event):
    hamr.Stream(7).wait(event)
    assert core.calls == [("StreamWaitEvent", "cuda", -1, 7, 5)]


def test_an_event_that_was_never_recorded_is_not_waited_for(core):
    hamr.Stream(7).wait(foreign("Event", cuda_event=0))
    assert core.calls == []


@pytest.mark.parametrize(
    "event", [None, 5, "x", np.zeros(3), hamr.Buffer(1), hamr.Stream(5), foreign(ptr=5)]
)
def test_what_is_no_event(core, event):
    with pytest.raises(TypeError, match="event"):
        hamr.Stream(7).wait(event)
    assert core.calls == []


# Buffers keep the stream objects they were given.


def kept(make):
    stream = foreign(ptr=9)
    alive = weakref.ref(stream)
    made = make(stream)
    del stream
    gc.collect()
    assert alive() is not None
    assert made.stream.ptr == 9
    del made
    gc.collect()
    assert alive() is None


def with_stream(stream):
    buffer = hamr.Buffer(3)
    buffer.set_stream(stream)
    return buffer


@pytest.mark.parametrize(
    "make",
    [
        lambda s: hamr.Buffer(3, stream=s),
        lambda s: hamr.buffer(np.zeros(3), s),
        lambda s: hamr.buffer(hamr.Buffer(3), s),
        lambda s: hamr.Buffer.from_pointer(hamr.Buffer(3).ptr, 3, stream=s),
        with_stream,
        lambda s: hamr.Buffer(3, stream=s)[1:],
        lambda s: hamr.Buffer(3, stream=s).copy(),
        lambda s: hamr.Buffer(3, stream=s).astype("f4"),
        lambda s: hamr.buffer_float(1, s, 3),
    ],
)
def test_buffers_keep_their_stream(make):
    kept(make)


def test_swapped_buffers_keep_each_others_stream():
    def make(stream):
        buffer, other = hamr.Buffer(3, stream=stream), hamr.Buffer(4)
        other.swap(buffer)
        return other

    kept(make)


def test_the_stream_of_a_buffer_is_the_object_given():
    stream = hamr.Stream(9)
    buffer = hamr.Buffer(3, stream=stream)
    assert buffer.stream is stream
    buffer.resize(1000)
    assert buffer.stream is stream
    other = hamr.Stream(8)
    buffer.set_stream(other)
    assert buffer.stream is other
    buffer.set_stream(stream)
    assert buffer.stream is stream
    buffer.set_stream(None)
    assert buffer.stream == hamr.Stream()


def test_streams_do_not_pile_up():
    buffer = hamr.Buffer(3)
    for i in range(100):
        buffer.set_stream(foreign(ptr=i + 3))
    assert len(buffer._streams) <= 10
    same = foreign(ptr=7)
    for _ in range(5):
        buffer.set_stream(same)
        buffer.set_stream(None)
    assert len(buffer._streams) <= 10


# Devices.


def test_device_blocks_nest(core):
    one = hamr.device(1)
    assert (one.index, [5, 6][one], repr(one)) == (1, 6, "hamr.device(1)")
    with one as entered:
        assert entered is one
        assert hamr.current_device() == hamr.device().index == 1
        with hamr.device(2), one, one:
            assert hamr.current_device() == 1
        assert hamr.current_device() == 1
    assert hamr.current_device() == 0
    assert hamr.device(1) == one != hamr.device(2)
    with pytest.raises(ZeroDivisionError), one:
        1 / 0  # noqa: B018
    assert hamr.current_device() == 0
    with pytest.raises(RuntimeError, match="thread"):
        one.__exit__()


def test_a_device_that_is_not_there(core):
    with pytest.raises(ValueError, match=r"3.*0 \.\.\. 2"):
        hamr.device(3)


def test_upstreams_names(core):
    with hamr.activate_cuda_device(2) as two:
        assert isinstance(two, hamr.device)
        assert hamr.get_active_cuda_device() == 2
    hamr.set_active_cuda_device(1)
    assert hamr.get_active_cuda_device() == 1
    assert hamr.get_cuda_device(4096) == 2
    assert hamr.access_cuda_peer.enable(0, 1) is True
    assert core.calls[-4:] == [
        ("CanAccess", "cuda", 0, 1), ("EnablePeer", "cuda", 0, 1),
        ("CanAccess", "cuda", 1, 0), ("EnablePeer", "cuda", 1, 0),
    ]  # fmt: skip
    del core.calls[:]
    assert hamr.access_cuda_peer.enable(1, 0, False) is True
    assert [c for c in core.calls if c[0] == "EnablePeer"] == [("EnablePeer", "cuda", 1, 0)]
    assert hamr.access_cuda_peer.enable(0, 2) is False


def test_peer_access(core):
    assert hamr.peer_access(0, 1) is True
    assert hamr.peer_access(hamr.device(1), 0) is True
    assert hamr.peer_access(2, 2) is True
    assert hamr.peer_access(0, 2) is False
    assert ("EnablePeer", "cuda", 0, 2) not in core.calls


def test_what_is_known_of_a_device(core):
    info = hamr.memory_info(1)
    assert (info.free, info.total, tuple(info)) == (10, 30, (10, 30))
    assert repr(info) == "MemoryInfo(free=10, total=30)"
    assert core.calls == [("MemoryInfo", "cuda", 1)]
    hamr.memory_info()
    assert core.calls[-1] == ("MemoryInfo", "cuda", -1)
    assert hamr.device_properties(hamr.device(2)) == {"name": "Tester", "driver": "13.0"}
    assert core.calls[-1] == ("Describe", "cuda", 2)


def cuda_array(data):
    return foreign("Array", __cuda_array_interface__={"data": data})


def test_whose_memory_an_object_is(core):
    assert hamr.device_of(4096) == hamr.device_of(np.uint64(4096)) == 2
    assert hamr.device_of(cuda_array((4096, False))) == 2
    for host in (hamr.Buffer(3), hamr.Buffer(3).pointer(), np.zeros(3), b"abc", memoryview(b"x")):
        assert hamr.device_of(host) == -1
    core.current = 1
    assert hamr.device_of(hamr.Stream()) == 1
    assert hamr.device_of(hamr.Stream(device=2)) == 2
    assert hamr.device_of(hamr.Stream(9).record()) == 1
    assert hamr.device_of(foreign(ptr=9, device_id=0)) == 0


@pytest.mark.parametrize(
    ("x", "error"),
    [
        (None, TypeError), ("x", TypeError), (1.5, TypeError), (True, TypeError), ([1], TypeError),
        (hamr.Buffer, TypeError), (object(), TypeError), (-1, ValueError), (2**64, ValueError),
        (cuda_array(None), TypeError), (cuda_array((True, False)), TypeError),
    ],
)  # fmt: skip
def test_what_is_nowhere(core, x, error):
    with pytest.raises(error, match="x is"):
        hamr.device_of(x)


# Without a driver, and after a fork.

CUDA = hamr.backends().get("cuda", {"available": False})["available"]


@pytest.mark.skipif(CUDA, reason="there is a CUDA driver here")
@pytest.mark.parametrize(
    "use",
    [
        lambda: hamr.Stream(device=0), lambda: hamr.Stream(2), lambda: hamr.Stream().idle,
        lambda: hamr.Stream().synchronize(), hamr.Event, hamr.current_device, hamr.device,
        lambda: hamr.device(0), lambda: hamr.peer_access(0, 0), hamr.memory_info,
        hamr.device_properties, hamr.get_active_cuda_device, lambda: hamr.Stream(2**63).record(),
        lambda: hamr.Stream(5).wait(foreign("Event", ptr=5)),
    ],
)  # fmt: skip
def test_without_a_driver(use):
    with pytest.raises(hamr.BackendUnavailable, match="cuda") as caught:
        use()
    assert "libcuda.so.1" in caught.value.tried


@pytest.mark.skipif(CUDA, reason="there is a CUDA driver here")
def test_without_a_driver_all_memory_is_the_hosts():
    assert hamr.device_of(hamr.Buffer(3).ptr) == -1


def test_streams_and_events_of_a_parent(core):
    stream, shared, event = hamr.Stream(device=1), hamr.Stream(9), hamr.Stream(9).record()
    block = hamr.device(1)
    block.__enter__()
    uses = {
        "idle": lambda: stream.idle,
        "record": stream.record,
        "synchronize": shared.synchronize,
        "wait": lambda: hamr.Stream().wait(event),
        "done": lambda: event.done,
        "event wait": event.wait,
        "buffer": lambda: hamr.Buffer(3, stream=stream),
        "set_stream": lambda: hamr.Buffer(3).set_stream(shared),
        "protocol": stream.__cuda_stream__,
        "wrap": lambda: hamr.Stream(stream),
        "await": lambda: stream.__await__(),
    }
    child = os.fork()
    if child == 0:
        status = 1
        try:
            del core.calls[:]
            works = []
            for name, use in uses.items():
                try:
                    use()
                    works.append(name)
                except hamr.ForkError:
                    pass
            assert works == [], works
            assert int(stream) == NEW + 1
            assert hamr.Stream() == hamr.Stream()
            block.__exit__()
            assert core.calls == []
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    block.__exit__()
