"""Ways for the interpreter to end while hamr's memory is in use.

python -m tests.scripts.exits CASE
"""

import atexit
import ctypes
import os
import sys
import threading
import time

import numpy as np

import hamr


def handlers():
    """Exit handlers that use arrays, in both orders, and make new buffers."""
    b = hamr.Buffer(1000, fill=2)
    array = np.asarray(b)

    def last():
        assert array.sum() == 2000
        assert np.asarray(hamr.Buffer(10, fill=1)).sum() == 10
        b.append(1)
        print("ended well")

    atexit.register(last)
    atexit.register(lambda: b.resize(500))


def globals_():
    """Everything in globals of this module and of others, and in cycles."""
    b = hamr.Buffer(1000, fill=2)
    names = {
        "b": b,
        "h": b.get_host_accessible(),
        "a": np.asarray(b),
        "m": memoryview(b),
        "v": b[1:],
    }
    names["adopted"] = hamr.buffer(names["a"])
    names["tensor"] = hamr.from_dlpack(names["a"])
    names["cycle"] = [names]
    globals().update(names)
    for module in (sys, np, hamr, hamr._native, threading):
        module.kept = dict(names)
    sys.modules["kept"] = names["adopted"]


def statics():
    """Arrays that nothing ever releases: C holds them."""
    for x in (
        hamr.Buffer(10),
        hamr.buffer(np.ones(9)),
        hamr.from_dlpack(np.ones(9)),
        np.asarray(hamr.Buffer(9)),
        memoryview(hamr.Buffer(3)),
    ):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))


def daemons():
    """Daemon threads inside short and long calls, waking while the interpreter goes."""

    def long(b):
        while True:
            b.fill(3)

    def short():
        while True:
            hamr.Buffer(3, fill=1).append(np.ones(3))
            hamr.from_dlpack(np.ones(3))

    def large():
        while True:
            hamr.Buffer(5 << 20, "u1", fill=1)

    for _ in range(4):
        threading.Thread(target=long, args=(hamr.Buffer(4 << 20, fill=1),), daemon=True).start()
        threading.Thread(target=short, daemon=True).start()
        threading.Thread(target=large, daemon=True).start()
    time.sleep(0.2)
    globals()["kept"] = Late()


class Late:
    """Lets other threads run in the middle of the interpreter's end."""

    def __del__(self, sleep=time.sleep):
        sleep(0.3)


def late():
    """A finaliser that uses hamr while modules are taken apart."""

    class Last:
        def __init__(self):
            self.buffer, self.array = hamr.Buffer(10, fill=1), np.asarray(hamr.Buffer(10, fill=2))

        def __del__(self, os=os, view=memoryview):
            assert self.array[9] == 2
            # What is written in Python is gone by now, as anybody's.
            assert view(self.buffer)[9] == 1
            self.buffer._close()
            os.write(1, b"ended well\n")

    globals()["kept"] = Last()


def threads():
    """Threads that the interpreter waits for, using hamr to the last."""

    def work():
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            np.asarray(hamr.Buffer(100, fill=1)).sum()

    for _ in range(4):
        threading.Thread(target=work).start()


globals()[sys.argv[1]]()
