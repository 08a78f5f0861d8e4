"""``start.elapsed_time(end)``: what it asks of the core, and what has no time."""

import gc
from types import SimpleNamespace

import pytest

import hamr
from tests.support.recorded_core import EVENT, TIMED, foreign


def test_the_time_between_two_events(core):
    stream = hamr.Stream(9, device=1)
    start, end = stream.record(timing=True), hamr.Event(stream, timing=True)
    assert core.calls == [("RecordTimedEvent", "cuda", 1, 9)] * 2
    assert (start.ptr, start.device) == (TIMED + 1, 1)
    found = start.elapsed_time(end)
    assert (type(found), found) == (float, 1.5)
    assert core.calls[-1] == ("Elapsed", "cuda", 1, TIMED + 1, TIMED + 1)
    del start
    gc.collect()
    assert core.calls[-1] == ("DestroyEvent", "cuda", 1, TIMED + 1)


def test_events_keep_no_time_unless_they_are_told_to(core):
    stream = hamr.Stream(9, device=0)
    plain, timed = stream.record(), stream.record(timing=True)
    assert core.calls == [("RecordEvent", "cuda", 0, 9), ("RecordTimedEvent", "cuda", 0, 9)]
    words = rf"hamr\.Event {EVENT:#x} .* keeps no time: accepted .*timing=True"
    for start, end in (plain, timed), (timed, plain), (plain, plain):
        with pytest.raises(ValueError, match=words):
            start.elapsed_time(end)
    assert len(core.calls) == 2


def test_what_is_not_done_yet(core):
    start, end = hamr.Event(timing=True), hamr.Event(timing=True)
    for busy in (1, 2):  # the second, then the first of them
        core.busy = 3 - busy
        with pytest.raises(RuntimeError, match=r"hamr\.Event .* is not done yet: write synchr"):
            start.elapsed_time(end)
        core.busy = 0
    assert [call[0] for call in core.calls if call[0] == "Elapsed"] == []


def test_events_of_two_devices(core):
    start, end = (hamr.Event(hamr.Stream(device=i), timing=True) for i in range(2))
    words = r"later is <hamr\.Event .* device 1>: accepted are events of cuda device 0, as <"
    with pytest.raises(ValueError, match=words):
        start.elapsed_time(end)


@pytest.mark.parametrize(
    "later", [None, 5, "x", hamr.Stream(), foreign("Event", ptr=5), SimpleNamespace(done=True)]
)
def test_what_is_no_event(core, later):
    with pytest.raises(TypeError, match=r"later is .*: accepted is a hamr\.Event"):
        hamr.Event(timing=True).elapsed_time(later)


def test_events_of_the_parent_process(core, monkeypatch):
    start, end = hamr.Event(timing=True), hamr.Event(timing=True)
    monkeypatch.setattr(hamr._native, "generation", lambda: 99)
    with pytest.raises(hamr.ForkError, match="before fork"):
        start.elapsed_time(end)


def test_timing_is_told_by_name(core, monkeypatch):
    ignored = []
    monkeypatch.setattr("sys.unraisablehook", ignored.append)
    stream = hamr.Stream(9)
    for make in (stream.record, lambda timing: hamr.Event(None, timing)):
        with pytest.raises(TypeError, match="positional argument"):
            make(True)
    gc.collect()
    assert ignored == []
