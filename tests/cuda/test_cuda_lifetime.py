"""How long device memory lives: until its last use, and no longer."""

import gc
import json
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.processes import run_script, scaled

SCRIPTS = Path(__file__).resolve().parent / "scripts"
N = 1000


MOST_EVENTS = 64  # that hamr keeps of each device for reuse
elsewhere = {}
NOISE = 32 << 20  # bytes that a driver takes and gives back as it likes


def used():
    """Memory in use: what the emulator counts, or what a device has not free."""
    gc.collect()
    hamr.trim()
    if driver.emulator is None:
        free, total = driver.memory_info(0)
        return total - free, hamr.stats()["references"]
    driver.emulator.finish()
    others = driver.emulator.live("events") - MOST_EVENTS * driver.DEVICES
    elsewhere.setdefault("events", max(others, 0))  # which earlier tests' libraries hold
    assert others <= elsewhere["events"]
    return driver.emulator.live("memory"), hamr.stats()["references"]


def noise_of(allocator):
    """What may look like a leak of its memory.

    The real driver keeps up to 44 pages of 2 MiB of managed memory for a while.
    """
    return 4 * NOISE if getattr(allocator, "name", allocator) == "cuda_uva" else NOISE


def assert_nothing_left(before, noise=NOISE):
    memory, references = used()
    assert references == before[1]
    assert memory <= before[0] + (0 if driver.EMULATED else noise)


def live():
    gc.collect()
    spaces = hamr.stats()["spaces"]
    return {space: (row["live"], row["adopted"]) for space, row in spaces.items()}


# Exports outlive their buffers.


CHANGES = pytest.mark.parametrize(
    "change",
    [
        lambda b: b.close(), lambda b: b.free(), lambda b: b.resize(10**5, 9),
        lambda b: b.move("cuda_host"), lambda b: b.assign(np.zeros(10**5)),
        lambda b: b.swap(hamr.Buffer(3)),
    ],
    ids=["close", "free", "grow", "move", "assign", "swap"],
)  # fmt: skip


@CHANGES
def test_handles_and_views_outlive_changes_of_their_buffer(device_allocator, change):
    buffer = hamr.Buffer(N, "f4", device_allocator, fill=3)
    handle, view, shared = buffer.get_cuda_accessible(), buffer[::2], hamr.buffer(buffer)
    change(buffer)
    del buffer
    refill = [hamr.Buffer(N, "f4", device_allocator, fill=9) for _ in range(4)]
    assert driver.content(handle).tolist() == [3] * N
    assert driver.content(view).tolist() == [3] * (N // 2)
    assert driver.content(shared).tolist() == [3] * N
    assert len(refill) == 4


@CHANGES
def test_who_was_told_the_address_keeps_the_memory_with_the_buffer(device_allocator, change):
    """As CuPy does: it holds the object whose interface it has read."""
    buffer = hamr.Buffer(N, "f4", device_allocator, fill=3)
    told = [Exported(buffer), Exported(buffer.get_cuda_accessible())]
    change(buffer)
    told[1].buffer.close()
    del buffer
    refill = [hamr.Buffer(N, "f4", device_allocator, fill=9) for _ in range(4)]
    for exported in told:
        assert driver.content(exported).tolist() == [3] * N
    assert len(refill) == 4


def test_an_address_that_was_waited_for_is_of_memory_that_is_kept():
    """While the host waits for managed memory, another thread may give it up."""
    told = 0
    while told < scaled(100, 20):
        buffer = hamr.Buffer(N, "f4", "cuda_uva", fill=3)
        buffer.set_stream(hamr.Stream(device=0))
        ready = threading.Event()
        thread = threading.Thread(target=lambda b=buffer, e=ready: (e.wait(), b.free()))
        thread.start()
        ready.set()
        interface = buffer.__array_interface__
        thread.join()
        if interface["shape"] == (N,):
            told += 1
            assert driver.device_of(interface["data"][0]) == 0


@pytest.mark.parametrize("allocator", ["cuda_uva", "cuda_host"])
@pytest.mark.parametrize(
    "share", [np.asarray, memoryview, lambda b: np.asarray(b.get_host_accessible())]
)
def test_arrays_outlive_buffers(allocator, share):
    before = live()
    buffer = hamr.Buffer(N, "f4", allocator, fill=3)
    shared = share(buffer)
    buffer.close()
    refill = [hamr.Buffer(N, "f4", allocator, fill=9) for _ in range(4)]
    assert np.asarray(shared).tolist() == [3] * N
    del refill, shared, buffer
    assert live() == {**before, "cuda": before.get("cuda", (0, 0))}


def test_a_stream_may_go_before_what_was_made_on_it(device_allocator):
    """Memory is given back in the order of a stream that its users no longer have."""
    for keep in (
        lambda b: b.get_cuda_accessible(), lambda b: b[::2], lambda b: b.copy(),
        lambda b: hamr.buffer(b), lambda b: driver.content(b), lambda b: b.get_host_accessible(),
        lambda b: read_by_another(b), lambda b: read_by_another(b) and b,
    ):  # fmt: skip
        stream = hamr.Stream(device=0)
        buffer = hamr.Buffer(N, "f4", device_allocator, fill=3, stream=stream, transfer="async")
        kept = keep(buffer)
        del buffer, stream
        gc.collect()
        if isinstance(kept, hamr.Buffer):
            assert np.asarray(kept.get_host_accessible()).max() == 3
        del kept
        gc.collect()


def read_by_another(buffer):
    """A copy on another stream, which ends with the copy."""
    target = hamr.Buffer(N, "f4", "cuda", stream=hamr.Stream(device=0), transfer="async")
    target.assign(buffer)
    return True


def test_a_foreign_stream_may_go_before_what_was_made_on_it(device_allocator):
    for _ in range(10):
        stream = driver.Stream()
        buffer = hamr.Buffer(N, "f4", device_allocator, fill=1, stream=stream, transfer="async")
        target = hamr.Buffer(N, "f4", "cuda_async", fill=0)
        target.assign(buffer)
        handle = buffer.get_cuda_accessible()
        del stream, buffer
        gc.collect()
        del handle
        gc.collect()
        assert np.asarray(target.get_host_accessible()).tolist() == [1] * N


def test_a_later_stream_may_have_the_handle(emulator, monkeypatch, device_allocator):
    monkeypatch.setenv("HAMR_EMULATOR_REUSE", "1")
    first, array = driver.Stream(), driver.Array(np.zeros(N, "f4"))
    handle = first.handle
    driver.write_late(first, array.ptr, N, 1)
    del first
    again = driver.Stream()
    assert again.handle == handle
    assert again.idle()
    del again
    test_a_foreign_stream_may_go_before_what_was_made_on_it(device_allocator)


def test_a_stream_in_a_cycle_with_its_buffer_ends_after_it(device_allocator):
    """Python ends the objects of a cycle in any order, streams of other libraries first."""

    class Node:
        pass

    for _ in range(5):
        node = Node()
        node.itself, node.stream = node, driver.Stream()
        node.buffer = hamr.Buffer(N, "f4", device_allocator, fill=1, stream=node.stream)
        node.handle = node.buffer.get_cuda_accessible()
        node.copy = node.buffer.copy()
        del node
        gc.collect()


# Nothing is left behind.


class Exported:
    def __init__(self, buffer):
        self.__cuda_array_interface__ = buffer.__cuda_array_interface__
        self.buffer = buffer


STREAM = []


def hand_over(array):
    """From a foreign library to hamr, to another one, back to hamr, and to the host."""
    shared = hamr.buffer(array)
    copied = shared.copy("cuda_async")
    again = hamr.buffer(Exported(copied))
    handle = again.get_cuda_accessible()
    assert handle.ptr == copied.ptr
    return handle


def test_hand_overs_leave_memory_where_it_was():
    stream = driver.Stream()
    array = driver.Array(np.ones(N, "f4"), stream=stream.handle)
    for _ in range(50):
        hand_over(array)
    before = used()
    references = sys.getrefcount(array)
    for i in range(scaled(10**4 if driver.EMULATED else 10**5, 100)):
        handle = hand_over(array)
        if i % 1000 == 0:
            assert driver.content(handle).tolist() == [1] * N
    del handle
    assert_nothing_left(before)
    assert sys.getrefcount(array) == references


CYCLES = {
    "create": lambda a: hamr.Buffer(N, "f4", a, fill=1),
    "grow": lambda a: hamr.Buffer(3, "f4", a, fill=1).resize(N, 2),
    "append": lambda a: hamr.Buffer(3, "f4", a, fill=1).append(np.ones(N)),
    "move": lambda a: hamr.Buffer(N, "f4", a, fill=1).move("cuda_host"),
    "access": lambda a: hamr.Buffer(N, "f4", a, fill=1).get_host_accessible(),
    "temporary": lambda a: hamr.Buffer(N, "f4", a, fill=1).get_cuda_accessible(driver.DEVICES - 1),
    "strided": lambda a: hamr.Buffer(N, "f4", a, fill=1).__setitem__(np.s_[::3], 2),
    "convert": lambda a: hamr.Buffer(N, "f4", a, fill=1)[::-1].astype("c16"),
    "stream": lambda a: hamr.Buffer(N, "f4", a, fill=1, stream=hamr.Stream(device=0)).copy(),
    "closed stream": lambda a: hamr.Buffer(
        N, "f4", a, stream=driver.Stream()
    ).get_cuda_accessible(),
    "too much": lambda a: too_much(a),
    "too much to grow": lambda a: too_much(a, hamr.Buffer(N, "f4", a, fill=1)),
    "pickle": lambda a: hamr.Buffer(N, "f4", a, fill=1).__reduce__(),
    "taken": lambda a: hamr.Buffer.from_pointer(
        driver.allocate(4 * N, kind=a), N, "f4", a, take=True
    ),
}


def too_much(allocator, buffer=None):
    with pytest.raises(hamr.OutOfMemory):
        buffer.resize(1 << 58) if buffer is not None else hamr.Buffer(1 << 60, "u1", allocator)


@pytest.mark.parametrize("cycle", CYCLES.values(), ids=CYCLES)
@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva", "cuda_host"])
def test_nothing_leaks(allocator, cycle):
    if cycle is CYCLES["too much"] and allocator == "cuda_host" and not driver.EMULATED:
        allocator = "cuda"
    # As often before as after, and so often that a leak is more than the noise.
    managed = allocator == "cuda_uva" and not driver.EMULATED
    times = 100 if managed else 20
    for _ in range(times):
        cycle(allocator)
    before = used()
    for _ in range(times):
        cycle(allocator)
    assert_nothing_left(before, noise_of(allocator))


def test_threads_leave_nothing():
    errors = []

    def work():
        try:
            for _ in range(scaled(50, 5)):
                buffer = hamr.Buffer(N, "f4", "cuda_async", fill=1, stream=driver.PER_THREAD)
                copied = buffer.copy("cuda")
                copied.append(buffer)
                assert np.asarray(copied.get_host_accessible()).sum() == 2 * N
                held.append(copied)
                if len(held) > 10:
                    held.pop(0)
        except BaseException as error:
            errors.append(error)

    held = []
    run_threads(work)
    held.clear()
    before = used()
    run_threads(work)
    held.clear()
    assert errors == []
    assert_nothing_left(before)


def run_threads(work):
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def drop_in_threads(allocator, size):
    """Take memory here, and give it back in threads that never made a context current."""
    held = [hamr.Buffer(size, "f4", allocator, fill=1, transfer="async") for _ in range(16)]
    held += [b.get_host_accessible() for b in held] + [b[1:] for b in held]
    threads = [threading.Thread(target=held.pop) for _ in range(len(held))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_dropping_in_a_thread_without_a_context(cuda_allocator):
    # A first round, since a driver loads modules and maps pages at their first use, and keeps
    # them. On a device all of it lost would be 512 MiB, much more than what is let pass.
    size, rounds = (N, 2) if driver.EMULATED else (1 << 20, 8)
    drop_in_threads(cuda_allocator, size)
    before, counted = used(), live()
    for _ in range(rounds):
        drop_in_threads(cuda_allocator, size)
    assert live() == counted
    assert_nothing_left(before, noise_of(cuda_allocator))


def test_cycles_are_collected():
    class Mine(hamr.Buffer):
        pass

    before = live()
    for _ in range(3):
        array = driver.Array(np.ones(N, "f4"))
        array.buffer = hamr.buffer(array)
        array.handle = array.buffer.get_cuda_accessible()
        own = Mine(N, "f4", "cuda")
        own.itself = own
    del array, own
    assert live() == {**before, "cuda": before.get("cuda", (0, 0))}


# The end of the interpreter.


@pytest.mark.parametrize(
    "case", ["globals_", "names", "handlers", "daemons", "statics", "failures"]
)
def test_at_the_end_of_the_interpreter(case, tmp_path):
    """Each case is a function of scripts/cuda_exits.py, which says what it shows."""
    report = tmp_path / "report"
    for _ in range(2):
        env = {"HAMR_EMULATOR_REPORT": str(report)}
        output = run_script("cuda_exits", case, env=env, folder=SCRIPTS)
        assert output == "", output
    if driver.EMULATED:
        reports = [json.loads(line) for line in report.read_text().splitlines()]
        assert len(reports) == 2
        assert [r["violations"] for r in reports] == [[], []]
