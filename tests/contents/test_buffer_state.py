"""What a buffer says of itself stays right through changes, threads and finalisers."""

import contextlib
import ctypes
import gc
import os
import threading

import numpy as np
import pytest

import hamr
from hamr._base import library


def test_source_protocol_ends_with_the_shared_memory():
    b = hamr.buffer(np.zeros(3))
    b.fill(1)
    assert b.source_protocol == "buffer"
    b.append(1)
    assert b.source_protocol is None


@pytest.mark.parametrize("change", [hamr.Buffer.set_transfer, None])
def test_stream_and_mode_set_during_an_operation_stay(change):
    b = hamr.Buffer(50_000_000, "int8", fill=0)
    for i in range(5):
        b.set_stream(0, "sync_host")
        filling = threading.Thread(target=b.fill, args=(i,))
        filling.start()
        if change:
            change(b, "async")
        else:
            b.set_stream(7, "async")
        filling.join()
        assert b.transfer == hamr.Transfer.async_
        assert int(b.stream) == (0 if change else 7)
        b.set_stream(0, "sync_host")


def test_shape_is_whole_though_a_finaliser_changes_the_buffer():
    shape = (1,) * 24 + (2,)
    b, others = hamr.Buffer(shape, "int8"), [hamr.Buffer(3, "int8")]

    def swap(phase, info):
        if phase == "start" and others:
            b.swap(others.pop())

    gc.collect()
    before = gc.get_threshold()
    gc.callbacks.append(swap)
    try:
        gc.set_threshold(1)
        seen = b.shape
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(swap)
    assert seen in (shape, (3,))


class Usage(ctypes.Structure):
    """C's struct mallinfo2."""

    _fields_ = [
        *((f"unused_{i}", ctypes.c_size_t) for i in range(7)),
        ("used", ctypes.c_size_t),
        ("free", ctypes.c_size_t),
        ("keepcost", ctypes.c_size_t),
    ]


C = ctypes.CDLL(None)
C.malloc.restype, C.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]


@pytest.mark.skipif(not hasattr(C, "mallinfo2"), reason="glibc before 2.33 counts less")
def test_memory_taken_over_without_elements_is_freed():
    C.mallinfo2.restype = Usage

    def take():
        for _ in range(20_000):
            hamr.Buffer.from_pointer(C.malloc(64), 0, "int8", take=True)

    take()
    before = C.mallinfo2().used
    take()
    assert C.mallinfo2().used - before < 20_000 * 16


def test_a_copy_that_cannot_be_loaded_is_a_fork_error_and_leaves_no_file(monkeypatch):
    def broken(path):
        raise ImportError("broken on purpose")

    def copies():
        names = []
        for f in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # the listing's own descriptor
                names.append(os.readlink(f"/proc/self/fd/{f}"))
        return sum("memfd:hamr" in name for name in names)

    monkeypatch.setattr(library, "_import", broken)
    before = copies()
    with pytest.raises(hamr.ForkError, match="broken on purpose"):
        library._import_copy()
    assert copies() == before
