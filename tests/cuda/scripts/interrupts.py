"""Calls that wait for a stream which stands still, and signals: interrupts.py KIND.

A signal comes while a call waits. If that does not end the call, the stream goes on in the end, and
the call, and what is compared then tells.
"""

import _thread
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import hamr
from tests.cuda import driver

#: Bytes: many chunks of HAMR_COPY_CHUNK, and enough to be worth asking whether it takes long.
N = 2 << 20
BLOCK = 512
AFTER, PATIENCE = 0.03, 10  #: seconds

emulator = driver.emulator
STAGED = os.environ["HAMR_COPY_THREADS"] != "0"
stream = hamr.Stream(device=0)
values = np.random.default_rng(1).integers(0, 255, N, dtype="u1")
others = np.random.default_rng(2).integers(0, 255, N, dtype="u1")


def device(content=values, transfer="async"):
    made = hamr.Buffer(content.size, "u1", "cuda", device=0, stream=stream, transfer=transfer)
    made[...] = content
    made.synchronize()
    return made


def host():
    return hamr.Buffer(N, "u1", "malloc", fill=3)


@contextmanager
def still(act=_thread.interrupt_main):
    """The stream stands still; after some seconds something happens, and after many it goes on."""
    with driver.on(0):
        emulator.hold(int(stream))
    ready, late, over = threading.Event(), threading.Event(), threading.Event()

    def happen():
        ready.wait()
        time.sleep(AFTER)
        act()
        if not over.wait(PATIENCE):
            late.set()
            emulator.let_go()

    other = threading.Thread(target=happen, daemon=True)
    other.start()
    ready.set()
    try:
        yield late
    finally:
        over.set()
        emulator.let_go()
        other.join()


def written(buffer, transfer="async"):
    """What another thread's host memory becomes of a buffer on the device."""
    target = host()
    target.set_transfer(transfer)
    target[...] = buffer


def end_of_access(buffer):
    with buffer.on_host("w") as array:
        array[...] = others


def read_access(buffer):
    with buffer.on_host("r") as array:
        array.sum()


def appended(buffer):
    host().append(buffer)


def behind(buffer):
    """A little that is printed of what is known to be pending."""
    buffer.fill(1)
    str(buffer)


def blocks(to, of):
    """All bytes, as blocks in another order."""
    order = np.random.default_rng(3).permutation(N // BLOCK)
    shape = N // BLOCK, BLOCK
    hamr.copy_blocks(to.reshape(shape), order, of.reshape(shape), order)


#: What waits for the stream of a buffer.
DOWN = {
    "get": lambda b: b.get(),
    "get into": lambda b: b.get(np.empty(N, "u1")),
    "get converted": lambda b: b.get(np.empty(N, "i4")),
    "get_host_accessible": lambda b: b.get_host_accessible(),
    "a small temporary": lambda b: b[: 64 << 10].get_host_accessible(),
    "strided": lambda b: b[::3].get(),
    "copy": lambda b: b.copy("malloc"),
    "move": lambda b: b.move("malloc"),
    "write": written,
    "append": appended,
    "assign": lambda b: host().assign(b),
    "set": lambda b: host().set(b, 0),
    "on_host": read_access,
    "copy_many": lambda b: hamr.copy_many([host(), host()], [b, b]),
    "copy_blocks": lambda b: blocks(np.empty(N, "u1"), b),
    "print": behind,
    "synchronize": lambda b: b.synchronize(),
}
UP = {
    "setitem": lambda b: b.__setitem__(..., others),
    "part": lambda b: b.__setitem__(slice(1, None), others[1:]),
    "end of an access": end_of_access,
    "copy_many": lambda b: hamr.copy_many([b, device()], [others, others]),
    "copy_blocks": lambda b: blocks(b, others),
}


def ends(name, act, buffer):
    """Ctrl-C ends a call."""
    try:
        with still() as late:
            act(buffer)
    except KeyboardInterrupt:
        assert not late.is_set(), f"{name} ended with what it waited for"
    else:
        raise AssertionError(f"{name} was not interrupted")


def interrupts():
    """Every call that waits ends with Ctrl-C; afterwards everything is in order."""
    for name, act in DOWN.items():
        buffer = device()
        ends(name, act, buffer)
        buffer.synchronize()
        if name != "print":
            assert np.array_equal(buffer.get(), values), name
        act(buffer)
    # The driver's own copy of ordinary memory does not wait for the stream, as the emulator has it.
    for name, act in UP.items() if STAGED else ():
        buffer = device()
        ends(name, act, buffer)
        buffer[...] = values
        assert np.array_equal(buffer.get(), values), name
        act(buffer)
        buffer.synchronize()
        assert np.array_equal(buffer.get()[1:], others[1:]), name
    if STAGED:
        ends("strided", lambda b: b.__setitem__(slice(None, None, 2), others[::2]), device())
    ends("a device's copy", lambda b: b.__setitem__(..., device(others)), device(transfer="sync"))


def handled():
    """A handler that returns lets the call go on: it does what it does without."""
    for name, act in {**DOWN, **UP}.items():
        calls = []
        signal.signal(signal.SIGUSR1, lambda *_, calls=calls: (calls.append(1), emulator.let_go()))
        buffer = device()
        with still(act=lambda: os.kill(os.getpid(), signal.SIGUSR1)) as late:
            act(buffer)
            assert not late.is_set(), name
        assert calls, name
        buffer.synchronize()
        if name in UP:
            assert np.array_equal(buffer.get()[1:], others[1:]), name
        elif name == "move":
            assert np.array_equal(np.asarray(buffer), values), name


def changes():
    """A handler may use the buffer that a call is changing, but not change it."""
    buffer, seen = device(), []

    def handler(*_):
        try:
            buffer.append(values)
        except RuntimeError as error:
            seen.append(str(error))
        seen.append(buffer.shape)
        emulator.let_go()

    signal.signal(signal.SIGUSR1, handler)
    with still(act=lambda: os.kill(os.getpid(), signal.SIGUSR1)):
        buffer.move("malloc")
    assert "in the middle of a change" in seen[0], seen
    assert seen[1:] == [(N,)], seen
    assert np.array_equal(np.asarray(buffer), values)
    buffer.append(others)


def forks():
    """In a child that a handler forks, the call fails; the parent's goes on."""
    for name, act in {**DOWN, **UP}.items():
        if name == "print":
            continue
        forked = []

        def handler(*_, forked=forked):
            forked.append(os.fork())
            if forked[0]:
                forked.append(os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]))
                emulator.let_go()

        signal.signal(signal.SIGUSR1, handler)
        buffer = device()
        status = 1
        try:
            with still(act=lambda: os.kill(os.getpid(), signal.SIGUSR1)):
                act(buffer)
            status = 0
        except hamr.ForkError:
            status = 7
        finally:
            if forked == [0]:
                os._exit(status)
        assert forked[1:] == [7], (name, forked)


def threads():
    """Another thread than the main one is not interrupted, nor slower."""
    buffer, got = device(), []
    worker = threading.Thread(target=lambda: got.append(buffer.get()))
    with still(act=emulator.let_go) as late:
        worker.start()
        worker.join()
        assert not late.is_set()
    assert np.array_equal(got[0], values)


def main():
    """Run what the command line says."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before = hamr.stats()
    {
        "interrupts": interrupts,
        "handled": handled,
        "changes": changes,
        "forks": forks,
        "threads": threads,
    }[sys.argv[1]]()
    emulator.finish()
    now = hamr.stats()
    for name, row in now.items():
        if isinstance(row, dict) and "live" in row:
            assert row["live"] == before.get(name, {"live": 0})["live"], (name, row)
    hamr.trim()
    assert emulator.violations() == []
    print("OK")


main()
