"""Ways for the interpreter to end while others hold DLPack tensors.

python -m tests.scripts.dlpack_exits CASE
"""

import atexit
import ctypes
import os
import sys
import threading

import numpy as np

import hamr
from tests.support import dlpack_structs as dl


def tensor(size=1000):
    return dl.consume(hamr.Buffer(size, "u1", fill=1).__dlpack__(max_version=(1, 0)))


def say(write=os.write):
    write(1, b"ended well\n")


def handlers():
    """Exit handlers, before and after hamr's own, that delete and make tensors."""
    first, second = tensor(), tensor(5 << 20)
    array, capsule = np.from_dlpack(hamr.Buffer(10, fill=1)), hamr.Buffer(9).__dlpack__()

    def last():
        first.delete()
        dl.delete_on_thread(second)
        held.clear()
        assert np.from_dlpack(hamr.Buffer(10, fill=1)).sum() == 10
        say()

    held = [array, capsule]
    del array, capsule
    atexit.unregister(hamr._native.end_owners)
    atexit.register(last)
    atexit.register(hamr._native.end_owners)
    atexit.register(lambda: dl.delete_on_thread(tensor()))


class Late:
    """Deletes while modules are taken apart, with the lock and without."""

    def __init__(self):
        self.tensors = [tensor() for _ in range(3)]
        self.calls = [
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.tensors[0].deleter),
            ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.tensors[1].deleter),
        ]

    def __del__(self, on_thread=dl.delete_on_thread, say=say):
        for call, made in zip(self.calls, self.tensors, strict=False):
            call(made.address)
        say()


def teardown():
    """Capsules and arrays in the globals of this module and others, and in cycles."""
    buffer = hamr.Buffer(1000, fill=2)
    names = {
        "array": np.from_dlpack(buffer),
        "unused": buffer.__dlpack__(),
        "adopted": hamr.buffer(np.from_dlpack(buffer)),
    }
    names["cycle"] = [names]
    for module in (sys, np, hamr, hamr._native, threading):
        module.kept = {**names, "capsule": buffer.__dlpack__(max_version=(1, 0))}
    globals().update(names)
    globals()["late"] = Late()


def threads():
    """C's threads and Python's that delete all the time, while nobody waits for them."""
    ready = threading.Event()

    def work():
        while True:
            tensors = [tensor() for _ in range(20)]
            ready.set()
            for made in tensors:
                made.delete()

    def large():
        while True:
            dl.delete_on_thread(tensor(5 << 20))

    for target in (work, work, large):
        threading.Thread(target=target, daemon=True).start()
    ready.wait()
    waiting = [tensor() for _ in range(50)]
    atexit.register(lambda: [dl.delete_on_thread(made, wait=False) for made in waiting])
    atexit.register(say)


def after():
    """C calls deleters when the interpreter has ended; what they hold is readable until then."""
    for _ in range(20):
        dl.delete_after_the_end(tensor())
        dl.delete_after_the_end(dl.consume(hamr.buffer(np.ones(9)).__dlpack__()))
    atexit.register(say)


globals()[sys.argv[1]]()
