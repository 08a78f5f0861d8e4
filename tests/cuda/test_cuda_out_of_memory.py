"""Before hamr raises OutOfMemory, others are asked to give back what they do not use."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest

import hamr
from hamr.allocators import _core
from tests.cuda import driver
from tests.cuda.full_devices import COUNT, fill_device
from tests.support.contents import on_host

RAMP = np.arange(COUNT, dtype="f4")
WRITTEN = RAMP[::2][::-1]

pytestmark = pytest.mark.usefixtures("trimmed")


@pytest.fixture
def relief(emulator, register):
    """A device that is full until a callback is called."""
    asked = []

    def give_back(device, nbytes):
        asked.append((device, nbytes))
        emulator.stop_failing()
        return True

    register(give_back)
    return asked


def changed(buffer, change):
    change(buffer)
    return buffer


def lent(buffer, write):
    with buffer.on_cuda("rw") as handle:
        write(handle)
    return buffer


#: What takes memory, given a device buffer and a host buffer of RAMP, and what comes of it.
OPERATIONS = {
    "create": (lambda d, h: hamr.Buffer(COUNT, "f4", "cuda", fill=3), np.full(COUNT, 3)),
    "create cuda_async": (
        lambda d, h: hamr.Buffer(COUNT, "f4", "cuda_async", fill=3), np.full(COUNT, 3)),
    "create cuda_uva": (
        lambda d, h: hamr.Buffer(COUNT, "f4", "cuda_uva", fill=3), np.full(COUNT, 3)),
    "create cuda_host": (
        lambda d, h: hamr.Buffer(COUNT, "f4", "cuda_host", fill=3), np.full(COUNT, 3)),
    "empty_like": (lambda d, h: hamr.full_like(d, 3), np.full(COUNT, 3)),
    "from an array": (lambda d, h: hamr.Buffer(COUNT, "f4", "cuda", data=RAMP), RAMP),
    "copy": (lambda d, h: d.copy(), RAMP),
    "copy to a device": (lambda d, h: h.copy("cuda"), RAMP),
    "copy to pinned": (lambda d, h: d.copy("cuda_host"), RAMP),
    "convert": (lambda d, h: d.astype("i4"), RAMP),
    "reverse": (lambda d, h: d[::-1].copy(), RAMP[::-1]),
    "reshape": (lambda d, h: d[::2].reshape(2, -1).reshape(-1), RAMP[::2]),
    "resize": (lambda d, h: changed(d, lambda b: b.resize(2 * COUNT, 1))[:COUNT], RAMP),
    "reserve": (lambda d, h: changed(d, lambda b: b.reserve(2 * COUNT)), RAMP),
    "append": (lambda d, h: changed(d, lambda b: b.append(h)), np.tile(RAMP, 2)),
    "assign": (lambda d, h: changed(d, lambda b: b.assign(np.tile(RAMP, 2))), np.tile(RAMP, 2)),
    "move": (lambda d, h: changed(h, lambda b: b.move("cuda")), RAMP),
    "write strided": (
        lambda d, h: changed(d, lambda b: b[::2].__setitem__(..., WRITTEN.astype("f8")))[::2],
        WRITTEN),
    "access on the device": (lambda d, h: h.get_cuda_accessible(), RAMP),
    "lend on the device": (lambda d, h: lent(h, lambda handle: None), RAMP),
    "text": (lambda d, h: (str(d[::2]), d)[1], RAMP),
}  # fmt: skip


@pytest.mark.freed_again
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_tried_again(emulator, relief, name):
    device, host = hamr.Buffer(COUNT, "f4", "cuda", data=RAMP), hamr.Buffer(COUNT, "f4", data=RAMP)
    device.synchronize()
    run, expected = OPERATIONS[name]
    live = emulator.live("memory")
    fill_device(emulator)
    made = run(device, host)
    emulator.stop_failing()
    assert len(relief) <= 1
    assert (on_host(made) == expected).all()
    if name not in ("text", "reshape"):
        assert relief or emulator.live("memory") == live, "nothing was taken"
    assert all(number in (0, -1) and nbytes > 0 for number, nbytes in relief)


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_fails_as_ever_where_nobody_helps(emulator, register, name):
    asked = []
    register(lambda *arguments: asked.append(arguments))
    device, host = hamr.Buffer(COUNT, "f4", "cuda", data=RAMP), hamr.Buffer(COUNT, "f4", data=RAMP)
    device.synchronize()
    fill_device(emulator)
    run, expected = OPERATIONS[name]
    made = error = None
    try:
        made = run(device, host)
    except hamr.OutOfMemory as caught:
        error = caught
    emulator.stop_failing()
    if error is None:
        assert not asked
        assert (on_host(made) == expected).all()
        return
    asked_for, held, tried = str(error).splitlines()
    assert asked_for.startswith(f"out of memory: {error.size} bytes from allocator ")
    assert held.startswith("held on ")
    assert tried == "tried: what hamr itself keeps, 1 callback"
    assert [nbytes for _, nbytes in asked] == [error.size]
    assert (on_host(device) == RAMP).all()
    assert (on_host(host) == RAMP).all()


@pytest.mark.parametrize("helps", [True, False])
def test_what_was_written_is_not_lost(emulator, register, helps):
    """The way back takes memory, as well; where there is none the access is over all the same."""
    buffer = hamr.Buffer((2, COUNT), "f4", "cuda", fill=0)[:, ::2]
    asked = []

    def give_back(*arguments):
        asked.append(arguments)
        if helps:
            emulator.stop_failing()
        return helps

    register(give_back)
    try:
        with buffer.on_host("rw") as array:
            np.asarray(array)[...] = 5
            fill_device(emulator)
    except hamr.OutOfMemory:
        assert not helps
        assert asked
    else:
        assert (buffer.get() == 5).all()
    emulator.stop_failing()
    buffer.fill(7)  # nobody holds it any more
    assert (buffer.get() == 7).all()


def test_the_last_try_may_fail_as_well(emulator, register):
    asked = []
    register(lambda *arguments: asked.append(arguments) or True)
    fill_device(emulator)
    with pytest.raises(hamr.OutOfMemory, match="tried: what hamr itself keeps, 1 callback"):
        hamr.Buffer(COUNT, "f4", "cuda")
    assert asked == [(0, 4 * COUNT)]


def test_callbacks_are_removed(emulator):
    asked = []

    @hamr.on_out_of_memory
    def first(device, nbytes):
        asked.append(device)

    second = hamr.on_out_of_memory(lambda device, nbytes: asked.append("second"))
    fill_device(emulator)
    with pytest.raises(hamr.OutOfMemory, match="2 callbacks"):
        hamr.Buffer(COUNT, "f4", "cuda")
    first(7, 1)
    first.remove()
    first.remove()
    with pytest.raises(hamr.OutOfMemory, match=r"1 callback$"):
        hamr.Buffer(COUNT, "f4", "cuda")
    second.remove()
    with pytest.raises(hamr.OutOfMemory, match=r"keeps$"):
        hamr.Buffer(COUNT, "f4", "cuda")
    assert asked == [0, "second", 7, "second"]
    assert "first" in repr(first)
    with pytest.raises(TypeError, match="callback is 3: accepted is a function"):
        hamr.on_out_of_memory(3)


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_what_a_callback_raises_is_reported(emulator, register, monkeypatch, error):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda x: reported.append((x.exc_value, x.object)))

    def wrong(device, nbytes):
        raise error

    asked = []
    register(wrong)
    register(lambda *arguments: asked.append(arguments))
    fill_device(emulator)
    with pytest.raises(hamr.OutOfMemory, match="2 callbacks"):
        hamr.Buffer(COUNT, "f4", "cuda")
    assert reported == [(error, wrong)]
    assert asked


def test_a_callback_may_use_hamr(emulator, register):
    depth = []

    def use(device, nbytes):
        depth.append(nbytes)
        try:
            hamr.Buffer(COUNT, "f4", "cuda")
        except hamr.OutOfMemory as error:
            depth.append(str(error))
        hamr.trim()
        handle.remove()

    handle = register(use)
    fill_device(emulator)
    with pytest.raises(hamr.OutOfMemory):
        hamr.Buffer(COUNT, "f4", "cuda")
    assert depth[0] == 4 * COUNT
    assert len(depth) == 2
    assert "tried" not in depth[1]


def test_a_callback_may_close_what_is_being_changed(emulator, register):
    buffer = hamr.Buffer(COUNT, "f4", "cuda", fill=1)
    register(lambda *_: (emulator.stop_failing(), buffer.close(), True)[-1])
    fill_device(emulator)
    with pytest.raises(hamr.FreedBuffer):
        buffer.resize(4 * COUNT)


def test_threads_that_run_out_at_the_same_time(emulator, register):
    here = threading.Barrier(3, timeout=30)
    asked = []

    def together(device, nbytes):
        asked.append(threading.get_ident())
        here.wait()  # all are inside at once
        return False

    register(together)
    fill_device(emulator)
    errors = []

    def work():
        try:
            hamr.Buffer(COUNT, "f4", "cuda")
        except hamr.OutOfMemory as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == len(set(asked)) == 3


def test_who_runs_out_meanwhile_waits_for_what_another_thread_is_given_back(emulator, register):
    first, second = threading.Lock(), threading.Event()

    def give_back(device, nbytes):
        if not first.acquire(blocking=False):
            second.set()
            return False
        assert second.wait(30)
        emulator.stop_failing()
        return True

    register(give_back)
    fill_device(emulator)
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(hamr.Buffer(COUNT, "f4", "cuda", fill=3)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(on_host(buffer) == 3).all() for buffer in made] == [True, True]


class Cycle:
    """Which only the garbage collector ends."""

    def __init__(self, buffer):
        self.buffer, self.itself = buffer, self


@pytest.fixture
def uncollected():
    """Nothing is collected meanwhile unless somebody asks for it."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("callback", [False, True])
def test_garbage_is_collected_before_it_fails(emulator, register, uncollected, callback):
    """Also where a callback says in vain that it has given something back."""
    if callback:
        register(lambda *arguments: True)
    cycle = Cycle(hamr.Buffer(COUNT, "f4", "cuda", fill=1))
    fill_device(emulator)
    del cycle
    made = hamr.Buffer(COUNT, "f4", "cuda", fill=3)
    emulator.stop_failing()
    assert (on_host(made) == 3).all()


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
def test_garbage_is_collected_for_a_library(emulator, uncollected):
    cycle = Cycle(hamr.Buffer(COUNT, "f4", "cuda", fill=1))
    fill_device(emulator)
    del cycle
    address = _core.allocate(_core.NUMBA, 0, 4 * COUNT, 0)
    emulator.stop_failing()
    _core.free(address)


def test_the_host_can_be_full(register):
    asked = []
    register(lambda *arguments: asked.append(arguments))
    with pytest.raises(hamr.OutOfMemory, match=r"allocator malloc\nheld on the host.*\ntried"):
        hamr.Buffer(2**60, "u1", "malloc")
    assert asked == [(-1, 2**60)]
