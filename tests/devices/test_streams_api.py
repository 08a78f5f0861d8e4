"""Streams, events and devices as objects: what is taken for one, and what they ask of the core.

The core's functions are replaced by a record of their calls, so that no device is needed.
"""

import ctypes
import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import hamr
from tests.support.processes import scaled
from tests.support.recorded_core import EVENT, NEW, OF_THREAD, foreign

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
    ("device", "error"),
    [("0", ValueError), ("cpu", ValueError), (True, TypeError), (-2, ValueError)],
)
def test_what_is_no_device(core, device, error):
    for use in (lambda d: hamr.Stream(device=d), hamr.device, hamr.memory_info):
        with pytest.raises(error, match="device"):
            use(device)


def test_threads_that_share_a_handle_share_its_end(core):
    """The stream is not retired while any of them has it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for handle in range(100, 100 + scaled(2000, 200)):
            made, barrier = [], threading.Barrier(4)
            work = lambda: (barrier.wait(), made.append(hamr.Stream(handle)))  # noqa: B023, E731
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            while made:
                assert ("RetireStream", handle) not in core.retired
                made.pop()
            assert core.retired.pop() == ("RetireStream", handle)
            assert core.retired == []
    finally:
        sys.setswitchinterval(before)


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
    streams = [foreign(ptr=i + 3) for i in range(100)]
    gone = [weakref.ref(stream) for stream in streams]
    for stream in streams:
        buffer.set_stream(stream)
    del stream, streams
    gc.collect()
    assert [reference() is None for reference in gone] == [True] * 99 + [False]


def test_a_handle_keeps_its_stream(core):
    stream = foreign(ptr=77)
    gone = weakref.ref(stream)
    handle = hamr.Buffer(3, stream=stream).get_host_accessible()
    del stream
    gc.collect()
    assert gone() is not None
    del handle
    gc.collect()
    assert gone() is None
    assert core.retired == [("RetireStream", 77)]


def test_the_last_stream_of_a_handle_retires_it(core):
    streams = [hamr.Stream(foreign(ptr=78)) for _ in range(3)]
    while streams:
        assert core.retired == []
        streams.pop()
        gc.collect()
    assert core.retired == [("RetireStream", 78)]
