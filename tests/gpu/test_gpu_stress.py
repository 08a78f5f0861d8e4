"""Moves of all kinds that overlap, on a real device, and Ctrl-C in the middle of long ones."""

import _thread
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import hamr
from tests.gpu import gpu_delays
from tests.support.processes import run_script, scaled

FOLDER = Path(__file__).parents[1] / "cuda" / "scripts"
STAGED = {"HAMR_COPY_CHUNK": "4096", "HAMR_COPY_THREADS": "8"}


@pytest.mark.parametrize("settings", [STAGED, {}], ids=["staged", "as it is"])
def test_every_byte_arrives(settings):
    output = run_script("stress_copies", "walk", 1, scaled(10_000), env=settings, folder=FOLDER)
    assert output.endswith("OK\n"), output[-4000:]


def up(buffer, values):
    buffer[...] = values


def down(buffer, values):
    assert np.array_equal(buffer.get(), values)


@pytest.mark.parametrize(("act", "nbytes"), [(down, 1 << 20), (down, 1 << 28), (up, 1 << 28)])
def test_ctrl_c_ends_a_copy_that_waits_for_a_kernel(cupy_library, act, nbytes):
    cupy, values = cupy_library.module, np.arange(nbytes // 8).view("u1")
    with cupy.cuda.Device(0):
        stream = gpu_delays.keep(cupy.cuda.Stream(non_blocking=True))
    buffer = hamr.Buffer(nbytes, "u1", "cuda", device=0, stream=stream.ptr)
    buffer[...] = values
    buffer.synchronize()
    gpu_delays.hold(cupy, stream, 2_000_000)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            act(buffer, values)
        assert not stream.done, "the call ended with the kernel that it waited for"
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    up(buffer, values)
    down(buffer, values)
