"""``record_memory``: one at a time, what it keeps of stacks, and an end that fails."""

import os
import threading

import pytest

import hamr
from hamr._diagnostics import memory_recording
from tests.support.processes import run_code

MANY_STACKS = """
import sys
from hamr import _native

def number_of(line):
    found = {}
    code = compile("\\n" * line + "number = stack_of(getframe())", "made", "exec")
    exec(code, {"stack_of": _native.stack_of, "getframe": sys._getframe}, found)
    return found["number"]

_native.record_stacks(True, 10)
found = [number_of(n // 2 if n % 2 else 1000) for n in range(200)]  # by one line
often, numbers = found[0], found[1::2]
assert set(found[::2]) == {often}, "one that is used again and again has another number"
assert len({often, *numbers}) == 101
kept = set(_native.recorded_stacks().values())
assert {often, *numbers[-9:]} <= kept
assert len(kept) <= 20, len(kept)
_native.record_stacks(False)
"""


def test_the_newest_stacks_are_kept():
    run_code(MANY_STACKS, env={**os.environ, "HAMR_CHECK": ""})


def test_one_record_at_a_time_of_two_threads(monkeypatch, tmp_path):
    """One is at its beginning while the other one begins."""
    begins, goes_on = threading.Event(), threading.Event()

    def check_writable(path):
        begins.set()
        assert goes_on.wait(30)

    monkeypatch.setattr(memory_recording, "check_writable", check_writable)
    record = hamr.record_memory(tmp_path / "x.json")
    first = threading.Thread(target=record.__enter__)
    first.start()
    assert begins.wait(30)
    try:
        with pytest.raises(RuntimeError, match="recorded already"), hamr.record_memory():
            pass
    finally:
        goes_on.set()
        first.join()
    record.__exit__(None, None, None)


def test_a_snapshot_that_cannot_be_taken_is_a_note_of_the_blocks_error(monkeypatch):
    def fails():
        raise MemoryError("no room")

    monkeypatch.setattr(memory_recording, "memory_snapshot", fails)
    with pytest.raises(KeyError, match="mine") as caught, hamr.record_memory():
        raise KeyError("mine")
    assert caught.value.__notes__ == ["and the record of memory was lost: no room"]
    with pytest.raises(MemoryError, match="no room"), hamr.record_memory():
        pass
    monkeypatch.undo()
    with hamr.record_memory() as record:
        hamr.Buffer(1024, "u1")
    assert len(record.snapshot.events) == 2
