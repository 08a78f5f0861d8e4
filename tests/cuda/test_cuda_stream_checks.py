"""Made-up streams and those of another device: refused before anything is done."""

import itertools
from functools import partial

import numpy as np
import pytest

import hamr
from hamr._buffer.constructing import construct
from tests.cuda import driver

N = 1000

USES = {
    "constructor": lambda s: hamr.Buffer(N, "f4", "cuda_async", stream=s, device=0),
    "host memory": lambda s: hamr.Buffer(N, "f4", stream=s),
    "buffer": lambda s: hamr.buffer(driver.Array(np.zeros(N, "f4")), stream=s),
    "set_stream": lambda s: hamr.Buffer(N, "f4", "cuda", device=0).set_stream(s),
    "event": hamr.Event,
    "synchronize": lambda s: hamr.Stream(s).synchronize(),
}
ON_A_DEVICE = [name for name in USES if name in ("constructor", "buffer", "set_stream")]

#: A real driver would follow them: no memory is mapped there.
MADE_UP = [3, 9, 12345, 0xFFFF, *([] if driver.EMULATED else [0xDEAD0000, 2**62, 2**64 - 1])]


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("number", MADE_UP)
def test_a_made_up_number(use, number):
    hamr.Buffer(1, "f4", "cuda")  # there is a context
    with pytest.raises(ValueError, match=rf"stream is {number} \({number:#x}\): accepted"):
        use(number)


def test_what_the_driver_knows_nothing_of(emulator):
    with pytest.raises(ValueError, match=r"stream is 3735879680 \(0xdead0000\): accepted"):
        hamr.Buffer(N, "f4", "cuda", stream=0xDEAD0000)
    assert emulator.violations() == ["cuStreamGetCtx: unknown stream 0xdead0000"]
    emulator.reset()


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_every_stream_of_the_device(use):
    foreign, own = driver.Stream(), hamr.Stream(device=0)
    for stream in (None, 0, 1, 2, own, own.ptr, foreign, foreign.handle):
        use(stream)


@pytest.mark.multigpu
@pytest.mark.parametrize("use", [USES[name] for name in ON_A_DEVICE], ids=ON_A_DEVICE)
def test_a_stream_of_another_device(use):
    foreign, own = driver.Stream(1), hamr.Stream(device=1)
    for stream in (own, own.ptr, foreign, foreign.handle):
        value = hamr.Stream(stream).ptr
        with pytest.raises(ValueError, match=rf"stream is .*{value:#x}.* of device 1: accepted"):
            use(stream)


@pytest.mark.multigpu
def test_a_refused_stream_leaves_a_buffer_as_it_was():
    stream = hamr.Stream(device=0)
    buffer = hamr.Buffer(N, "f4", "cuda", fill=3, stream=stream, device=0)
    for wrong in (hamr.Stream(device=1), 12345):
        with pytest.raises(ValueError, match="stream is"):
            buffer.set_stream(wrong, "sync")
    assert buffer.stream is stream
    assert buffer.transfer == hamr.Transfer.sync_host
    assert driver.content(buffer).tolist() == [3] * N


@pytest.mark.multigpu
def test_memory_at_an_address_is_where_it_is():
    array = driver.Array(np.zeros(N, "f4"), device=1)
    place = array.ptr, N, "f4", "cuda"
    with pytest.raises(ValueError, match="of device 0: accepted for memory of device 1"):
        hamr.Buffer.from_pointer(*place, owner=array, stream=hamr.Stream(device=0))
    right = hamr.Stream(device=1)
    assert hamr.Buffer.from_pointer(*place, owner=array, stream=right).stream is right


@pytest.mark.multigpu
def test_memory_of_no_device_takes_a_stream_of_any():
    for device in range(2):
        stream = hamr.Stream(device=device)
        for allocator in ("malloc", "cuda_host"):
            buffer = hamr.Buffer(N, "f4", allocator, fill=device, stream=stream)
            reached = buffer.get_cuda_accessible(device)
            assert driver.content(reached).tolist() == [device] * N


@pytest.mark.multigpu
def test_the_current_device_decides():
    stream = hamr.Stream(device=1)
    with pytest.raises(ValueError, match="of device 1: accepted for memory of device 0"):
        hamr.Buffer(N, "f4", "cuda", stream=stream)
    with hamr.device(1):
        assert hamr.Buffer(N, "f4", "cuda", stream=stream, fill=2).device == 1


def test_both_constructors_take_the_same_streams():
    """C takes those that hamr has made, and leaves the others to Python."""
    foreign = driver.Stream()
    other = [hamr.Stream(device=1)] if driver.DEVICES > 1 else []
    streams = [
        None, hamr.Stream(), hamr.Stream(device=0), *other, foreign.handle, foreign,
        hamr.Stream(foreign.handle), 0, 1, 2, -1, "s", object(),
    ]  # fmt: skip
    allocators = [None, "cuda", "cuda_async", "cuda_uva", "cuda_host", "malloc", "hip", "bad"]
    devices = [{}, {"device": 0}, {"device": "cuda"}, {"device": None}, {"device": 1}]

    def outcome(make, stream, allocator, more):
        named = dict(shape=3, dtype="f4", allocator=allocator, stream=stream, **more)
        try:
            made = make(**named)
        except Exception as error:
            return type(error), str(error)
        same, elements = made.stream is stream, str(made) if "fill" in more else None
        return made.allocator, made.device, made.transfer, int(made.stream), same, elements

    for stream, allocator, place in itertools.product(streams, allocators, devices):
        for more in (place, {**place, "fill": 3}):
            arguments = stream, allocator, more
            assert outcome(hamr.Buffer, *arguments) == outcome(
                partial(construct, hamr.Buffer), *arguments
            ), arguments
