"""HAMR_CHECK: writes to freed memory are found and told, and nothing else is."""

import os

import pytest

import hamr
from tests.support.processes import run_code

START = """
import ctypes, gc, os, random, sys, threading, time, warnings
import hamr

def stale(size, allocator="malloc"):
    buffer = hamr.Buffer(size, "u1", allocator, fill=1)
    address = buffer.ptr
    buffer.close()
    return address
"""


def checked(code, **settings):
    return run_code(START + code, env={"HAMR_CHECK": "1", **settings})


@pytest.mark.skipif(bool(os.environ.get("HAMR_CHECK")), reason="HAMR_CHECK is set for all")
def test_nothing_is_checked_unless_it_is_asked_for():
    with pytest.raises(RuntimeError, match="memory is not checked here: set HAMR_CHECK=1"):
        hamr.check_memory()


@pytest.mark.parametrize("allocator", ["malloc", "cpp"])
@pytest.mark.parametrize("size", [1, 100, 5_000_000])
def test_a_write_is_found_with_both_stacks(allocator, size):
    checked(
        f"""
def taken():
    return hamr.Buffer({size}, "u1", {allocator!r}, fill=1)

def given_back(buffer):
    buffer.close()

buffer = taken()
address = buffer.ptr
given_back(buffer)
assert hamr.check_memory() == []
buffer = taken()
address = buffer.ptr
given_back(buffer)
ctypes.memset(address + {size - 1}, 7, 1)
with warnings.catch_warnings(record=True) as told:
    (found,) = hamr.check_memory()
assert [each.message for each in told] == [found]
assert isinstance(found, hamr.MemoryMisuse) and isinstance(found, RuntimeWarning)
assert (found.library, found.allocator, found.device) == ("hamr", {allocator!r}, -1)
assert (found.address, found.size) == (address, {size})
assert (found.offset, found.written, found.value) == ({size - 1}, 1, 7)
assert "taken" in [frame["name"] for frame in found.allocated["stack"]]
assert "given_back" in [frame["name"] for frame in found.freed["stack"]]
assert found.allocated["thread"] == found.freed["thread"] == threading.get_native_id()
assert found.allocated["time"] <= found.freed["time"]
assert "in taken" in str(found) and "in given_back" in str(found)
assert hamr.check_memory() == []
"""
    )


def test_it_is_told_without_being_asked():
    checked(
        """
told = []
warnings.showwarning = lambda message, *_: told.append(message)
ctypes.memset(stale(1000), 7, 3)
for _ in range(20):  # there is more than is kept, so that the oldest is looked at
    stale(1000)
end = time.monotonic() + 60
while not told and time.monotonic() < end:
    time.sleep(0.01)
assert [each.written for each in told] == [3]
""",
        HAMR_CHECK_BYTES="4000",
    )


def test_it_is_told_at_exit():
    assert "3 of 1000 bytes" in checked("ctypes.memset(stale(1000), 7, 3)")


def test_check_memory_raises_where_it_is_to():
    run_code(
        START
        + """
for n in 3, 4:
    ctypes.memset(stale(1000 * n), 7, n)
try:
    hamr.check_memory()
except hamr.MemoryMisuse as error:
    assert (error.size, error.written) == (3000, 3)
    assert "4 of 4000 bytes" in error.__notes__[0]
else:
    raise AssertionError
assert hamr.check_memory() == []
""",
        env={"HAMR_CHECK": "raise"},
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"HAMR_CHECK": "yes"}, "HAMR_CHECK is 'yes': accepted are 0, 1 and raise"),
        ({"HAMR_CHECK_BYTES": "much"}, "HAMR_CHECK_BYTES is 'much': accepted are a number"),
    ],
)
def test_settings_that_are_not_right(settings, said):
    assert said in checked("assert stale(10)", **settings)


def test_off_by_zero():
    checked("import pytest\nwith pytest.raises(RuntimeError): hamr.check_memory()", HAMR_CHECK="0")


def test_recording_and_checking_do_not_disturb_each_other():
    checked(
        """
before = stale(1000)
with hamr.record_memory() as record:
    during = stale(2000)
after = stale(3000)
assert [e["stack"] != [] for e in record.snapshot.events if e["action"] == "alloc"] == [True]
for address in before, during, after:
    ctypes.memset(address, 7, 1)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    found = hamr.check_memory()
assert [each.size for each in found] == [1000, 2000, 3000]
assert all(each.allocated["stack"] and each.freed["stack"] for each in found)
"""
    )


def test_a_forked_child_is_not_checked():
    checked(
        """
address = stale(1000)
if os.fork() == 0:
    try:
        hamr.check_memory()
    except RuntimeError:
        hamr.ones(10).close()
        os._exit(0)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
assert hamr.check_memory() == []
"""
    )


def test_a_walk_without_a_fault_tells_of_none():
    checked(
        """
import numpy as np
warnings.simplefilter("error")

def walk(seed):
    numbers, mine = random.Random(seed), []
    for step in range(400):
        if mine and numbers.random() < 0.5:
            buffer, expected = mine.pop(numbers.randrange(len(mine)))
            assert (buffer.get() == expected).all()
        else:
            expected = np.full(numbers.choice([1, 10, 1000, 100_000]), step % 100, "u1")
            buffer = hamr.array(expected)
            if numbers.random() < 0.3:
                buffer = buffer.copy()
            buffer[0] = expected[0] = 5
            mine.append((buffer, expected))

threads = [threading.Thread(target=walk, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
for _ in range(20):
    assert hamr.check_memory() == []
for thread in threads:
    thread.join()
assert hamr.check_memory() == []
""",
        HAMR_CHECK_BYTES="300KB",
    )


@pytest.mark.parametrize("call", ["check_memory", "trim"])
def test_a_look_returns_though_other_threads_free_memory(call):
    """What is freed later is not waited for, however much it is."""
    checked(
        f"""
ENOUGH = 30_000
freed, over = [0] * 4, threading.Event()

def free(number):
    while freed[number] < ENOUGH and not over.is_set():
        hamr.Buffer(300_000, "u1", "malloc").close()
        freed[number] += 1

threads = [threading.Thread(target=free, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for _ in range(3):
    hamr.{call}()
over.set()
assert max(freed) < ENOUGH, freed
for thread in threads:
    thread.join()
""",
        HAMR_CHECK_BYTES="30MB",
    )


def test_the_programs_filters_hold():
    """Each is told where they say so, also of the same line; none where they do not."""
    code = """
for _ in range(2):
    ctypes.memset(stale(1000), 7, 3)
    assert len(hamr.check_memory()) == 1
"""
    for filters, times in (("default", 2), ("ignore", 0), ("error", 2)):
        checked(
            f"""
import contextlib, io
said = io.StringIO()
warnings.simplefilter({filters!r})
with contextlib.redirect_stderr(said):
    exec({code!r})
assert said.getvalue().count("were written after") == {times}, said.getvalue()
"""
        )


@pytest.mark.parametrize("allocator", ["malloc", "shared"])
def test_what_others_have_goes_on(allocator):
    """A handle keeps the elements, and a forked child does, whoever has closed the buffer."""
    checked(
        f"""
buffer = hamr.Buffer(1000, "f4", {allocator!r}, fill=3)
near, far = os.pipe()
child = os.fork()
if child == 0:
    os.close(far)
    os.read(near, 1)
    os._exit(0 if (buffer.get() == 3).all() else 1)
with buffer.share() as handle:
    buffer.close()
    assert hamr.check_memory() == []
    opened = hamr.open_shared(handle)
assert hamr.check_memory() == []
assert (opened.get() == 3).all()
os.close(far)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""
    )


def test_a_check_may_end_while_its_thread_is_about_to_look():
    checked("""
found, failed = hamr._native.found_misuse, []
threading.excepthook = failed.append

def late():
    hamr._native.stop_checking()
    return found()

hamr._native.found_misuse = late
(watching,) = (thread for thread in threading.enumerate() if thread.name == "hamr check")
watching.join(20)
assert not watching.is_alive() and not failed, failed
""")
