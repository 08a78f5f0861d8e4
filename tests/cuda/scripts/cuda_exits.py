"""Ways for the interpreter to end while device memory is in use.

python -m tests.cuda.scripts.cuda_exits CASE
"""

import atexit
import sys
import threading
import time

import numpy as np

import hamr
from tests.cuda import driver

N = 1000
ALLOCATORS = ("cuda", "cuda_async", "cuda_uva", "cuda_host")


def everything():
    """Buffers with work pending on streams, and all that is made of buffers."""
    stream, foreign = hamr.Stream(device=0), driver.Stream()
    buffers = [hamr.Buffer(N, "f4", a, fill=1, stream=stream, transfer="async") for a in ALLOCATORS]
    copies = [b.copy("cuda_async") for b in buffers]
    array = driver.Array(np.zeros(N, "f4"), stream=foreign.handle)
    driver.write_late(foreign, array.ptr, N, 1)
    shared = hamr.buffer(array, stream=stream)
    handles = [b.get_cuda_accessible() for b in (*buffers, shared)]
    views = [b[::2] for b in buffers]
    return [buffers, copies, array, shared, handles, views, stream.record(), foreign, stream]


def globals_():
    """Everything in globals of this module and of others, and in cycles."""
    kept = everything()
    kept.append(kept)
    for module in (sys, np, hamr, hamr._native, threading, driver):
        module.kept = list(kept)
    globals()["kept"] = kept


def names():
    """What a script leaves: a library's stream, a buffer on it, and functions beside them."""
    globals()["stream"] = driver.Stream()
    globals()["buffer"] = hamr.Buffer(N, "f4", "cuda", fill=1, stream=globals()["stream"])
    globals()["pool"] = hamr.Buffer(N, "f4", "cuda_async", fill=1, stream=globals()["stream"])


def handlers():
    """Exit handlers that use the device, in both orders."""
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=2)

    def last():
        assert np.asarray(buffer.get_host_accessible()).sum() == 3 * N
        hamr.Buffer(N, "f4", "cuda", fill=1).copy("cuda_host")

    atexit.register(last)
    atexit.register(lambda: buffer.fill(3))


def daemons():
    """Daemon threads in the middle of calls."""

    def busy():
        while True:
            buffer = hamr.Buffer(1 << 16, "f4", "cuda_async", fill=1, transfer="async")
            np.asarray(buffer.copy("cuda_host"))

    for _ in range(3):
        threading.Thread(target=busy, daemon=True).start()
    time.sleep(0.2)


def statics():
    """Objects that nothing ever releases."""
    for x in everything():
        driver.ctypes.pythonapi.Py_IncRef(driver.ctypes.py_object(x))


def failures():
    """An exception ends the program while everything is in use."""
    kept = everything()
    sys.excepthook = lambda *_: None
    try:
        raise ZeroDivisionError
    except ZeroDivisionError as error:
        globals()["kept"] = [kept, error]


globals()[sys.argv[1]]()
