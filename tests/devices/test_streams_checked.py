"""Streams that do not exist, or are another device's than the memory: refused by name.

The core is replaced by a record that knows some streams.
"""

import re

import numpy as np
import pytest

import hamr
from hamr._base.memory_stream import stream_for_memory
from tests.support.recorded_core import OF_THREAD, foreign

NO_STREAM = -2

USES = {
    "constructor": lambda s: hamr.Buffer(3, stream=s),
    "from_pointer": lambda s: hamr.Buffer.from_pointer(4096, 0, stream=s),
    "buffer": lambda s: hamr.buffer(np.zeros(3), s),
    "set_stream": lambda s: hamr.Buffer(3).set_stream(s),
    "upstream": lambda s: hamr.buffer_float(1, hamr.stream(s), 3),
    "record": lambda s: hamr.Stream(s).record(),
    "event": hamr.Event,
    "wait": lambda s: hamr.Event().wait(s),
    "synchronize": lambda s: hamr.Stream(s).synchronize(),
    "idle": lambda s: hamr.Stream(s).idle,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (12345, r"stream is 12345 \(0x3039\): accepted is the handle of a stream that exists"),
        (foreign("CUstream", handle=12345), r"stream is <.*CUstream.*> \(0x3039\): accepted"),
    ],
    ids=["number", "object"],
)
def test_a_handle_that_is_no_streams(core, use, given, words):
    core.places[12345] = NO_STREAM
    with pytest.raises(ValueError, match=words):
        use(given)
    assert [c for c in core.calls if 12345 in c] == []
    assert set(core.asked) == {("StreamDevice", "cuda", 12345)}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_where_no_driver_can_tell_numbers_are_believed(core, use):
    use(12345)


def test_whom_the_driver_need_not_be_asked_about(core):
    own = hamr.Stream(device=1)
    for stream in (None, 0, 1, 2, own, int(own), foreign(ptr=9, device_id=2)):
        for use in USES.values():
            use(stream)
    assert core.asked == []


def test_a_stream_is_asked_about_once(core):
    core.places[9] = 2
    stream = hamr.Stream(9)
    assert stream.device == -1
    for _ in range(3):
        stream.synchronize()
        hamr.Buffer(3, stream=stream)
    assert core.asked == [("StreamDevice", "cuda", 9)]
    assert stream.device == 2
    assert {c[2] for c in core.calls} == {2}


def test_a_wrong_device_given_with_a_stream(core):
    core.places[9] = 2
    own = hamr.Stream(device=0)
    for given, words in [
        (9, r"stream is 9 \(0x9\) of device 2, and device is 1"),
        (int(own), rf"stream is {int(own)} \(.*\) of device 0, and device is 1"),
    ]:
        with pytest.raises(ValueError, match=words):
            hamr.Stream(given, device=1).synchronize()
    hamr.Stream(9, device=2).synchronize()


FORMS = {
    "own": lambda own: own,
    "number": lambda own: 9,
    "object": lambda own: foreign(ptr=10, device_id=1),
    "its number": int,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_stream_of_another_device(core, form):
    core.places[9] = 1
    own = hamr.Stream(device=1)
    stream = form(own)
    words = (
        rf"stream is .*{re.escape(hex(hamr.Stream(stream).ptr))}.* of device 1: "
        "accepted for memory of device 0"
    )
    for allocator in ("cuda", "cuda_async", "cuda_uva"):
        for place in ({"device": 0}, {}):  # which is the current one
            with pytest.raises(ValueError, match=words):
                hamr.Buffer(3, "f4", allocator, stream=stream, **place)
        with pytest.raises(ValueError, match=words):
            hamr.Buffer.from_pointer(4096, 3, "f4", allocator, stream=stream, device=0)
    # What belongs to no device may be used on any stream.
    for allocator in ("malloc", "cpp"):
        assert hamr.Buffer(3, "f4", allocator, stream=stream, device=-1).stream.device == 1
    buffer = hamr.buffer(np.zeros(3), stream)
    assert buffer.stream.device == 1
    buffer.set_stream(stream)


def test_the_per_thread_stream_is_the_memorys_devices(core):
    core.current = 1
    assert int(stream_for_memory(2, hamr.Allocator.cuda, 2)) == OF_THREAD + 2
    assert int(hamr.Buffer(3, stream=2).stream) == OF_THREAD + 1
