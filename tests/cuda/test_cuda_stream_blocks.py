"""``with stream:`` and memory of devices: which of it takes the stream, and its order."""

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.contents import on_host

N = 1000


class ByDLPack:
    """An array that has DLPack alone, and tells the stream that it was asked to be ready on."""

    def __init__(self, content, device=0):
        self.array = hamr.buffer(driver.Array(content, device))
        self.asked = []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **arguments):
        self.asked.append(stream)
        return self.array.__dlpack__(stream=stream, **arguments)


def test_new_memory(cuda_allocator):
    stream = hamr.Stream(device=0)
    with stream:
        made = hamr.Buffer(N, "f4", cuda_allocator, fill=3)
        host = hamr.Buffer(N, "f4", fill=3)
    assert made.stream is stream
    assert host.stream is stream
    assert on_host(made).tolist() == [3] * N
    assert hamr.Buffer(N, "f4", cuda_allocator).stream.ptr == 0


def test_what_others_made():
    stream = hamr.Stream(device=0)
    array, tensor = driver.Array(np.arange(N, dtype="f4")), ByDLPack(np.arange(N, dtype="f4"))
    with stream:
        made = [
            hamr.buffer(array),
            hamr.buffer(tensor),
            hamr.from_dlpack(tensor),
            hamr.from_dlpack(tensor.array.__dlpack__(stream=1)),
            hamr.buffer(tensor.array.__dlpack__(stream=1)),
            hamr.Buffer.from_pointer(array.ptr, N, "f4", "cuda", owner=array),
        ]
    assert [b.stream is stream for b in made] == [True] * len(made)
    assert tensor.asked == [stream.ptr] * 2
    for b in made:
        assert on_host(b).tolist() == list(range(N))


@pytest.mark.races
def test_a_buffer_inside_is_in_the_streams_order(emulator):
    """What other libraries have on the stream is waited for; a buffer from outside does not."""
    stream = driver.Stream()
    array = driver.Array(np.zeros(N, "f4"))
    outside = hamr.buffer(array)
    driver.write_late(stream, array.ptr, N, 3)
    with hamr.stream(stream):
        inside = hamr.buffer(array)
        assert on_host(outside).tolist() == [0] * N
        assert on_host(inside).tolist() == [3] * N


def test_a_stream_that_ends_with_its_block_and_an_exception():
    with pytest.raises(ZeroDivisionError), hamr.Stream(device=0):
        1 / 0  # noqa: B018
    assert hamr.Buffer(N, "f4", "cuda").stream.ptr == 0


def test_the_default_stream_as_a_block():
    with hamr.Stream(device=0), hamr.Stream() as stream:
        assert hamr.Buffer(N, "f4", "cuda").stream is stream


@pytest.mark.multigpu
def test_memory_of_another_device_does_not_take_it(device_allocator):
    stream = hamr.Stream(device=1)
    arrays = [driver.Array(np.arange(N, dtype="f4"), device) for device in range(2)]
    tensors = [ByDLPack(np.arange(N, dtype="f4"), device) for device in range(2)]
    with stream:
        assert hamr.Buffer(N, "f4", device_allocator).stream.ptr == 0
        assert hamr.Buffer(N, "f4", device_allocator, device=0).stream.ptr == 0
        assert hamr.Buffer(N, "f4", device_allocator, device=1).stream is stream
        assert [hamr.buffer(a).stream.ptr for a in arrays] == [0, stream.ptr]
        assert [hamr.buffer(t).stream.ptr for t in tensors] == [0, stream.ptr]
        assert [hamr.from_dlpack(t).stream.ptr for t in tensors] == [0, stream.ptr]
        capsules = [t.array.__dlpack__(stream=1) for t in tensors]
        assert [hamr.from_dlpack(c).stream.ptr for c in capsules] == [0, stream.ptr]
        pointers = [hamr.Buffer.from_pointer(a.ptr, N, "f4", "cuda") for a in arrays]
        assert [p.stream.ptr for p in pointers] == [0, stream.ptr]
        with hamr.device(1):
            made = hamr.Buffer(N, "f4", device_allocator, fill=2)
            assert made.stream is stream
    assert on_host(made).tolist() == [2] * N


@pytest.mark.multigpu
def test_each_device_has_an_innermost_stream():
    streams = [hamr.Stream(device=device) for device in range(2)]
    with streams[0], streams[1]:
        assert [hamr.Buffer(N, "f4", "cuda", device=i).stream for i in range(2)] == streams
        host = hamr.Buffer(N, "f4", fill=4)
        assert host.stream is streams[1]
        with hamr.Stream():
            assert hamr.Buffer(N, "f4", "cuda", device=0).stream.ptr == 0
    for device in range(2):
        copied = host.copy("cuda", device=device)
        assert on_host(copied).tolist() == [4] * N


def test_what_cannot_be_shared_says_so_as_outside():
    for wrong in (3, "x", object(), {"a": 1}):
        with pytest.raises(TypeError) as outside:
            hamr.buffer(wrong)
        with hamr.Stream(device=0), pytest.raises(TypeError) as inside:
            hamr.buffer(wrong)
        assert str(inside.value) == str(outside.value)
