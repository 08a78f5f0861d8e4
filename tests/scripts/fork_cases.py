"""One situation round a fork: python -m tests.scripts.fork_cases CASE."""

import gc
import importlib
import os
import signal
import sys
import threading
import time

import numpy as np

import hamr
from hamr import _native
from hamr._base import library
from tests.scripts import forking


def off():
    """Without the mechanism, children hang in the library that they inherited."""
    buffers = [hamr.Buffer(10, fill=i) for i in range(10)]
    raw = library.load()
    # What a build without it would be: the child goes on with the parent's library.
    os.register_at_fork(after_in_child=lambda: _native.bind(raw, raw.Table()))

    def child():
        for b in buffers * 20_000:
            b.resize(1000, 1)
            b.resize(10)

    results = [forking.outcome(*forking.start(child), patience=3) for _ in range(3)]
    print("hung:", sum(r.startswith("hung") for r in results))


def dropped_before_the_hooks():
    """Objects of other threads, and what earlier hooks drop, go before Python's hooks run."""
    stop = threading.Event()
    kept: list = []

    def busy():
        local = threading.local()
        while not stop.is_set():
            local.buffers = [hamr.Buffer(64, fill=1) for _ in range(20)]
            local.big = hamr.Buffer(1 << 21, "uint8", fill=1)

    threads = [threading.Thread(target=busy) for _ in range(4)]
    for t in threads:
        t.start()
    try:
        for _ in range(120):
            kept[:] = [hamr.Buffer(100, fill=2) for _ in range(20)]
            forking.run(lambda: hamr.Buffer(10, fill=1).resize(20, 3), patience=20)
    finally:
        stop.set()
        for t in threads:
            t.join()


def reads_only():
    """Reading and sharing what the parent made needs no library."""
    own, cpp = hamr.Buffer(100, fill=2), hamr.Buffer(100, "f4", "cpp", fill=3)
    adopted, handle = hamr.buffer(np.arange(5)), own.get_host_accessible()

    def child():
        for x, total in ((own, 200), (cpp, 300), (adopted, 10), (handle, 200), (own[::2], 100)):
            assert np.asarray(x).sum() == total
            assert memoryview(x).nbytes
            assert x.__array_interface__["version"] == 3
            assert x.shape
            assert x.nbytes
            assert x.ptr
            assert len(x)
        np.asarray(own)[0] = 9
        assert np.asarray(handle)[0] == 9
        own.close()
        cpp.free()
        assert not _native.bound()
        assert not forking.copies()

    forking.run(child)
    assert np.asarray(own)[0] == 2


def before_use():
    """A child of a parent that never used hamr loads the library as usual."""
    assert not forking.original()

    def child():
        assert np.asarray(hamr.Buffer(10, fill=1)).sum() == 10
        assert forking.original()
        assert not forking.copies()

    forking.run(child)
    hamr.Buffer(10, fill=1)

    def later():
        hamr.Buffer(10, fill=1)
        assert len(forking.copies()) == 1

    forking.run(later)


def generations():
    """Each generation uses a copy of its own, and memory of all before it."""
    kept = [hamr.Buffer(10, "f8", "cpp", fill=0), hamr.Buffer(10, fill=0)]

    def child(level, seen):
        kept.append(hamr.Buffer(10, "f8", ("malloc", "cpp")[level % 2], fill=level))
        mine = forking.copies() - seen
        assert len(mine) == 1, (level, mine, seen)
        if level < 5:
            forking.run(lambda: child(level + 1, seen | mine))
        for i, b in enumerate(kept):
            expected = max(0, i - 1)
            assert np.asarray(b).sum() == 10 * expected
            b.append(expected)
            assert np.asarray(b).sum() == 11 * expected
        kept.clear()
        del b
        assert hamr.stats()["references"] == 0, hamr.stats()
        assert _native.generation() == level + 1, _native.generation()

    forking.run(lambda: child(1, set()))
    assert not forking.copies()


def idle_generations():
    """Memory is freed by a grandchild although the child between never used hamr."""
    kept = [hamr.Buffer(40 << 20, "u1", a, fill=1) for a in ("cpp", "malloc")]

    def mapped():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    def grandchild():
        before = mapped()
        kept.clear()
        assert not _native.bound()
        assert before - mapped() > 79 << 20, "the parent's memory was not freed"

    forking.run(lambda: forking.run(grandchild))
    forking.run(lambda: (hamr.Buffer(3, fill=1), forking.run(grandchild)))


def owners():
    """Dropping adopted memory in a child lets go of its owner there."""

    class Owner(bytearray):
        pass

    a, b, c = Owner(80), np.arange(10), Owner(80)
    counts = [sys.getrefcount(x) for x in (a, b, c)]
    pointer = hamr.buffer(b).ptr
    kept = [hamr.buffer(a), hamr.buffer(b), hamr.Buffer.from_pointer(pointer, 10, "i8", owner=c)]
    kept += [kept[1][2:], kept[0].get_host_accessible(), memoryview(kept[2])]

    def child(used):
        if used:
            for x in kept[:3]:
                str(x)
        kept.clear()
        gc.collect()
        if used:
            del x
        assert [sys.getrefcount(x) for x in (a, b, c)] == counts
        a.append(1)

    forking.run(lambda: child(True))
    forking.run(lambda: child(False))


def while_loading():
    """A fork while another thread loads the library, and holds its lock."""
    load, entered, leave = library._import, threading.Event(), threading.Event()

    def slowly(path):
        module = load(path)
        entered.set()
        leave.wait(60)
        return module

    library._import = slowly
    thread = threading.Thread(target=lambda: hamr.Buffer(10, fill=1))
    thread.start()
    assert entered.wait(60)

    def child():
        library._import = load
        assert np.asarray(hamr.Buffer(10, fill=2)).sum() == 20
        assert len(forking.copies()) == 1, "the parent's runtime was used"

    forking.run(child, 20)
    leave.set()
    thread.join()
    assert np.asarray(hamr.Buffer(10, fill=2)).sum() == 20


def while_filling():
    """A fork while another thread is inside a long call, holding the buffer's lock."""
    large, calls, stop = hamr.Buffer(512 << 20, "u1", fill=1), [0], threading.Event()

    def work():
        while not stop.is_set():
            calls[0] += 1
            large.fill(calls[0] & 127)

    thread = threading.Thread(target=work)
    thread.start()
    during = 0

    def child():
        small = large[:10]
        small.fill(5)
        assert np.asarray(small).sum() == 50
        large.resize(10)
        large.append(np.asarray(small))
        assert len(large) == 20

    for _ in range(10):
        time.sleep(0.01)
        during += large._changing
        forking.run(child)
    stop.set()
    thread.join()
    assert during, "no fork was during a call"
    assert len(large) == 512 << 20


def threads_in_child():
    """Threads of a child that are the first to use the library, and one buffer."""
    kept = [hamr.Buffer(1000, fill=1), hamr.buffer(np.ones(1000))]

    def child():
        barrier, errors = threading.Barrier(8), []

        def use():
            try:
                barrier.wait()
                for b in kept:
                    assert "{1, 1," in str(b), str(b)
                    kept[0].append(1)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=use) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not errors, errors
        assert len(forking.copies()) == 1
        assert len(kept[0]) == 1016
        kept.clear()
        assert hamr.stats()["references"] == 0
        host = hamr.stats()["spaces"]["host"]
        assert host["live"] == host["adopted"] == 0, host

    sys.setswitchinterval(1e-5)
    for _ in range(10):
        forking.run(child)


def second_import():
    """hamr removed from sys.modules and imported again, in a parent and in its child."""
    old = hamr.Buffer(10, fill=1)

    def again():
        for name in [n for n in sys.modules if n.partition(".")[0] == "hamr"]:
            del sys.modules[name]
        return importlib.import_module("hamr")

    def child():
        assert again().Buffer(10, fill=2).item is not None
        old.append(3)
        other = again()
        shared = other.buffer(old)
        shared.fill(4)
        assert np.asarray(old).sum() == 44
        assert len(forking.copies()) == 1

    forking.run(child, 20)
    again()
    forking.run(child, 20)
    old.append(1)
    assert np.asarray(old).sum() == 11


def handler_while_loading():
    """A signal handler that uses hamr while its thread loads the library."""
    load, made = library._import, []

    def interrupted(path):
        if not made:
            os.kill(os.getpid(), signal.SIGUSR1)
        module = load(path)
        assert made
        return module

    library._import = interrupted
    signal.signal(
        signal.SIGUSR1, lambda *_: made or made.append(0) or made.append(hamr.Buffer(10, fill=1))
    )

    def use():
        made.clear()
        b = hamr.Buffer(10, fill=2)
        b.append(made[1])
        made[1].append(b)
        assert np.asarray(b).sum() == 30
        assert np.asarray(made[1]).sum() == 40
        made.clear()
        del b
        assert hamr.stats()["references"] == 0

    use()
    forking.run(use, 20)


globals()[sys.argv[1]]()
