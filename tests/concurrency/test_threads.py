"""Many threads at once: nothing lost, nothing stuck, nothing torn."""

import contextlib
import gc
import itertools
import sys
import threading

import numpy as np
import pytest

import hamr
from tests.support.processes import run_code, scaled


@pytest.fixture(autouse=True)
def fast_switching():
    """Threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def together(*works, patience=120):
    """Run each work in a thread of its own, started together; their exceptions are raised."""
    barrier, errors = threading.Barrier(len(works)), []

    def run(work):
        barrier.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience)
    assert not any(thread.is_alive() for thread in threads), "a thread is stuck"
    if errors:
        raise errors[0]


def test_no_append_is_lost():
    b = hamr.Buffer(0, "i8")
    count = scaled(5000, 100)

    def work(number):
        for i in range(count):
            b.append(number * count + i)

    together(*(lambda n=n: work(n) for n in range(8)))
    assert np.array_equal(np.sort(np.asarray(b)), np.arange(8 * count))


def test_appending_arrays_keeps_each_whole():
    b = hamr.Buffer(0, "i8")
    together(
        *(lambda n=n: [b.append(np.full(50, n)) for _ in range(scaled(500, 20))] for n in range(8))
    )
    pieces = np.asarray(b).reshape(-1, 50)
    assert (pieces == pieces[:, :1]).all()
    assert set(np.bincount(pieces[:, 0])) == {scaled(500, 20)}


def test_readers_of_a_buffer_that_is_resized():
    """Whatever a reader sees belongs together: type, shape, strides and memory."""
    b = hamr.Buffer(10, "i8", fill=7)
    stop = threading.Event()

    def write():
        for n in itertools.islice(itertools.cycle([10, 1, 100_000, 3]), scaled(3000, 200)):
            b.resize(n, 7)
            if n == 3:
                b.free()
                b.resize(5, 7)
        stop.set()

    def read():
        while not stop.is_set():
            for array in (
                np.asarray(b),
                np.asarray(memoryview(b)),
                np.asarray(b.get_host_accessible()),
                np.asarray(hamr.buffer(b)),
                np.asarray(b[:]),
                np.asarray(b[::-1]),
                np.asarray(b.copy()),
            ):
                assert array.dtype == np.int64
                assert (array == 7).all()

    together(write, read, read, read)


def test_element_types_without_a_format_while_resizing():
    b = hamr.Buffer(10, "bfloat16", fill=1)
    one = np.asarray(b).tobytes()[:2]
    stop = threading.Event()

    def write():
        for n in itertools.islice(itertools.cycle([10, 50_000]), scaled(1000, 50)):
            b.resize(n, 1)
        stop.set()

    def read():
        while not stop.is_set():
            raw = np.asarray(b).tobytes()
            assert raw == one * (len(raw) // 2)

    together(write, read, read)


def test_swaps_do_not_deadlock():
    buffers = [hamr.Buffer(n + 1, "i8", fill=n) for n in range(6)]

    def work(shift):
        for i in range(scaled(4000, 100)):
            buffers[i % 6].swap(buffers[(i + shift) % 6])
            buffers[i % 6].append(0)
            buffers[i % 6].resize(max(1, len(buffers[i % 6]) - 1))

    together(*(lambda s=s: work(s) for s in (0, 1, 2, 3, 5)))
    for b in buffers:
        array = np.asarray(b)
        assert len(array) == len(b)
        assert b.nbytes == array.nbytes


def test_creating_and_freeing():
    def work(number):
        kept = []
        for i in range(scaled(10_000, 200)):
            kept.append(np.asarray(hamr.Buffer(i % 500 + 1, "i4", number % 2, fill=number)))
            if len(kept) > 50:
                assert (kept.pop(i % 50) == number).all()

    hamr.Buffer(1)
    before = hamr.stats()["spaces"]["host"]["live"]
    together(*(lambda n=n: work(n) for n in range(8)))
    assert hamr.stats()["spaces"]["host"]["live"] == before


def test_sharing_one_object_from_many_threads():
    array = np.arange(1000)
    references = sys.getrefcount(array)

    def work():
        for _ in range(scaled(5000, 100)):
            assert np.asarray(hamr.buffer(array)[5:])[0] == 5

    together(*[work] * 8)
    assert sys.getrefcount(array) == references


def test_exceptions_stay_in_their_thread():
    b = hamr.Buffer(3, fill=1)
    readonly = hamr.buffer(b"123")
    failures = [
        (lambda: b[10], IndexError),
        (lambda: b.append(object()), TypeError),
        (lambda: readonly.fill(1), ValueError),
        (lambda: hamr.Buffer(3, allocator="cuda"), hamr.BackendUnavailable),
        (lambda: b.get_host_accessible().shape, None),
    ]

    def work(call, expected):
        for _ in range(scaled(2000, 50)):
            if expected is None:
                call()
                continue
            with pytest.raises(expected):
                call()

    together(*(lambda f=f: work(*f) for f in failures))


def test_the_first_call_from_many_threads():
    """The library is loaded once, whoever comes first."""
    for _ in range(3):
        run_code("""
import sys, threading
sys.setswitchinterval(1e-6)
import hamr
barrier, made, errors = threading.Barrier(16), [], []
def use(n):
    barrier.wait()
    try:
        b = hamr.Buffer(10, "i8", fill=n); b.append(n); made.append(b)
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=use, args=(n,)) for n in range(16)]
for t in threads: t.start()
for t in threads: t.join()
assert not errors, errors
assert sorted(b[10].item() for b in made) == list(range(16))
assert hamr.stats()["references"] == 16
""")


def test_a_long_call_lets_other_threads_run():
    """Another thread gets on while one fills: seen from inside calls, not by a clock."""
    large = hamr.Buffer(256 << 20, "u1", fill=0)
    inside, progress = [False], [0]
    done = threading.Event()

    def fill():
        for value in range(8):
            inside[0] = True
            large.fill(value)
            inside[0] = False
        done.set()

    def count():
        while not done.is_set():
            if inside[0]:
                progress[0] += 1

    together(fill, count)
    # Hundreds of thousands are usual. A call that kept the GIL would leave the few
    # bytecodes round it: some hundred steps, eight times.
    assert progress[0] > 20_000, progress


def test_an_interrupt_comes_through():
    """Ctrl-C raises KeyboardInterrupt between calls, and leaves hamr in order."""
    run_code("""
import os, signal, threading, time
import numpy as np, hamr
signal.signal(signal.SIGINT, signal.default_int_handler)
b = hamr.Buffer(1000, fill=1)
seen = 0
for work in (lambda: b.fill(1), lambda: np.asarray(hamr.Buffer(9)), lambda: b.resize(5000, 1),
             lambda: hamr.buffer(b"12")[1:], lambda: b.copy("cpp"), lambda: b.append(1)):
    for _ in range(5):
        try:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
            while True:
                work()
        except KeyboardInterrupt:
            seen += 1
        b.resize(1000)
        assert np.asarray(b).sum() == 1000
assert seen == 30
del work
host = hamr.stats()["spaces"]["host"]
assert (host["live"], host["adopted"], hamr.stats()["references"]) == (1, 0, 1), host
large = hamr.Buffer(256 << 20, "u1", fill=0)
try:
    threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        large.fill(1)
except KeyboardInterrupt:
    large.fill(2)
assert np.asarray(large)[-1] == 2
""")


# Finalisers, which may run wherever Python code does.


class Appends:
    """A cycle whose end changes a buffer."""

    def __init__(self, buffer):
        self.cycle, self.buffer = self, buffer

    def __del__(self):
        self.buffer.append(1)


@pytest.mark.parametrize("whose", ["own", "other"])
def test_no_change_of_a_finaliser_is_lost(whose):
    first, second = hamr.Buffer(0, "i4"), hamr.Buffer(0, "i4")
    count, threshold = scaled(3000, 300), gc.get_threshold()

    def work(own, other):
        for _ in range(count):
            Appends(own if whose == "own" else other)
            own.append(1)

    gc.collect()
    gc.set_threshold(5)
    try:
        together(lambda: work(first, second), lambda: work(second, first))
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert (len(first), len(second)) == (2 * count, 2 * count)
    assert np.asarray(first).all()


CHANGES = {
    "append": lambda b, other: b.append(1),
    "fill": lambda b, other: b.fill(2),
    "free": lambda b, other: b.free(),
    "set_stream": lambda b, other: b.set_stream(0),
    "set_transfer": lambda b, other: b.set_transfer("sync"),
    "swap": lambda b, other: b.swap(other),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_runs_inside_a_change_may_change_what_others_are_changing(name):
    """A profiler stands for finalisers and signals: it comes at every call of a C function."""
    buffers, barrier = [hamr.Buffer(3, fill=1) for _ in range(2)], threading.Barrier(2)
    change, inside = CHANGES[name], []

    def work(own, other):
        nested = False

        def profile(frame, event, arg):
            nonlocal nested
            if event == "c_call" and not nested:
                nested = True
                with contextlib.suppress(threading.BrokenBarrierError):
                    barrier.wait(2)
                inside.append(name)
                other.append(1)
                nested = False

        sys.setprofile(profile)
        try:
            change(own, other)
        finally:
            sys.setprofile(None)
            barrier.abort()

    together(lambda: work(*buffers), lambda: work(*buffers[::-1]), patience=20)
    assert inside
