"""Elements in device memory are values there; what temporaries give NumPy is for reading."""

import random

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support import random_elements
from tests.support.processes import scaled


@pytest.fixture
def four(cuda_allocator):
    return hamr.Buffer(4, "i4", cuda_allocator, data=np.array([4, 1, 3, 2], "i4"))


def test_a_swap_keeps_both_elements(four):
    four[0], four[1] = four[1], four[0]
    assert four.get().tolist() == [1, 4, 3, 2]


def test_a_shuffle_loses_no_element(cuda_allocator):
    b = hamr.Buffer(30, "i4", cuda_allocator, data=np.arange(30, dtype="i4"))
    random.Random(1).shuffle(b)
    assert sorted(b.get().tolist()) == list(range(30))
    assert b.get().tolist() != list(range(30))


def test_an_element_is_where_the_buffer_is(four):
    element = four[2]
    small = four.allocator.name != "cuda_vmm"  # whose least piece of memory has megabytes
    assert element.allocator.name == (four.allocator.name if small else "cuda")
    assert (element.device, element.stream) == (four.device, four.stream)
    assert element.shape == ()
    four.fill(0)
    assert element == 3


def test_a_kept_element_stays_what_it_was(four):
    highest, listed = max(four), list(four)
    four.fill(0)
    assert highest == 4
    assert [x.item() for x in listed] == [4, 1, 3, 2]


def test_the_view_of_an_element_is_written_through(four):
    four[1, ...].fill(7)
    four[2, ...][...] = 8
    assert four.get().tolist() == [4, 7, 8, 2]


def test_a_write_to_a_value_is_an_error(four):
    with pytest.raises(ValueError, match=r"b\[i\] = x"):
        four[0][...] = 1
    with pytest.raises(ValueError, match=r"b\[i\] = x"):
        four[0].fill(1)
    assert four.get().tolist() == [4, 1, 3, 2]


def test_elements_go_to_libraries_that_have_no_read_only_arrays(device_allocator):
    """They are refused by PyTorch; an element is nobody else's memory."""
    element = hamr.Buffer(4, "i4", device_allocator, fill=5)[1]
    assert element.readonly
    assert element.__cuda_array_interface__["data"][1] is False
    assert hamr.from_dlpack(element.__dlpack__()).item() == 5


def test_elements_of_a_buffer_on_a_stream(device_allocator):
    with hamr.Stream():
        b = hamr.Buffer(3, "f8", device_allocator, fill=1.5)
        element = b[0]
        b.fill(2.5)
        assert element.stream == b.stream
    assert element == 1.5


BLOCKING = ["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize", "cuMemcpyDtoH_v2"]


@pytest.mark.parametrize("name", ["cuda", "cuda_async"])
def test_no_device_is_waited_for(emulator, name):
    stream = hamr.Stream(device=0)
    b = hamr.Buffer(3, "f4", name, fill=1.5, stream=stream)
    b.synchronize()
    with driver.on(0):
        emulator.hold(stream.ptr)
    b.fill(2.5)
    before = {call: emulator.calls(call) for call in BLOCKING}
    kept = [b[0], *b]
    b.fill(0)
    assert repr(b).startswith(f"<hamr.Buffer (3,) float32 {name} owner 0 at 0x")
    assert {call: emulator.calls(call) for call in BLOCKING} == before
    emulator.let_go()
    assert [x.item() for x in kept] == [2.5] * 4
    assert b.get().tolist() == [0, 0, 0]


def test_repr_waits_for_no_copy(emulator):
    stream = hamr.Stream(device=0)
    source = hamr.Buffer(3, "f4", "cuda", fill=1.5, stream=stream, transfer="async")
    pinned = hamr.Buffer(3, "f4", "cuda_host", fill=0, stream=stream, transfer="async")
    source.synchronize()
    pinned.synchronize()
    with driver.on(0):
        emulator.hold(stream.ptr)
    pinned[...] = source
    assert repr(pinned).startswith("<hamr.Buffer (3,) float32 cuda_host owner -1 at 0x")
    emulator.let_go()
    pinned.synchronize()
    assert repr(pinned) == "hamr.Buffer([1.5, 1.5, 1.5], float32, cuda_host)"


def test_an_element_of_a_handle(device_allocator):
    b = hamr.Buffer(3, "f8", device_allocator, fill=1.5)
    handle = b.get_cuda_accessible()
    element = handle[0]
    b.fill(0)
    assert type(element) is hamr.Buffer
    assert element == 1.5
    assert handle[0, ...].item() == 0


def test_elements_of_arrays_of_pygpu():
    from hamr import pygpu

    a = pygpu.GPUArray(np.array([4.0, 1, 3]))
    a.to_device()
    a[0], a[1] = a[1], a[0]
    assert type(a[0]) is pygpu.GPUArray
    assert a.get().tolist() == [1, 4, 3]
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


def test_programs_of_elements_at_random(cuda_allocator):
    for seed in range(scaled(12)):
        random_elements.walk(seed, cuda_allocator)


# What a temporary handle gives.


@pytest.fixture
def away(device_allocator):
    """A buffer of a device, which the host does not reach."""
    if device_allocator.name == "cuda_uva":
        device_allocator = hamr.Allocator.cuda
    return hamr.Buffer(3, "f8", device_allocator, fill=1)


class Interface:
    """What has the array interface alone."""

    def __init__(self, handle):
        self.handle = handle
        self.__array_interface__ = handle.__array_interface__


WAYS = {
    "asarray": lambda h: np.asarray(h),
    "array interface": lambda h: np.asarray(Interface(h)),
    "__array__": lambda h: h.__array__(),
    "from_dlpack": lambda h: np.from_dlpack(h),
    "memoryview": lambda h: memoryview(h),
    "view": lambda h: np.asarray(h[1:]),
    "buffer": lambda h: np.asarray(hamr.buffer(h)),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_write_to_a_temporary_is_an_error(away, name):
    """It would not reach the buffer."""
    handle = away.get_host_accessible()
    assert handle.is_temporary
    assert handle.readonly
    array = WAYS[name](handle)
    with pytest.raises((ValueError, TypeError), match=r"read-?only"):
        array[0] = 5
    assert away.get().tolist() == [1, 1, 1]


def test_a_large_temporary_and_one_with_gaps_are_read_only(device_allocator):
    b = hamr.Buffer(200_000, "f8", device_allocator, fill=1)
    for source in (b, b[::2], b.T):
        handle = source.get_host_accessible()
        assert handle.readonly is handle.is_temporary


def test_dlpack_of_a_device_buffer_for_the_host_is_read_only(away):
    array = np.from_dlpack(away, device="cpu")
    assert not array.flags.writeable
    assert np.from_dlpack(away, device="cpu", copy=True).flags.writeable


def test_what_is_in_place_is_written_to():
    for name in ("cuda_uva", "cuda_host"):
        b = hamr.Buffer(3, "f8", name, fill=1)
        np.asarray(b.get_host_accessible())[0] = 5
        assert b.get().tolist() == [5, 1, 1]


def test_blocks_for_writing_are_written_to(away):
    with away.on_host("rw") as array:
        array[0] = 5
    with away.mirror(True) as array:
        array[1] = 6
    assert away.get().tolist() == [5, 6, 1]


def test_legacy_dlpack_takes_a_temporary(away):
    """Consumers of before version 1 cannot be told, and the memory is nobody else's."""
    assert hamr.from_dlpack(away.get_host_accessible().__dlpack__()).get().tolist() == [1, 1, 1]


def test_copies_of_a_temporary_may_be_written(away):
    import pickle

    handle = away.get_host_accessible()
    kept = []
    pickled = pickle.dumps(away, 5, buffer_callback=kept.append)
    for made in (handle.copy(), hamr.array(handle), pickle.loads(pickled, buffers=kept)):
        made[...] = 7
        assert made.get().tolist() == [7, 7, 7]
    assert away.get().tolist() == [1, 1, 1]


def test_temporaries_for_a_device_are_written_to():
    """Most libraries for devices have no read-only arrays, and refuse them."""
    handle = hamr.ones(3).get_cuda_accessible()
    assert handle.is_temporary
    assert not handle.readonly
    assert handle.__cuda_array_interface__["data"][1] is False


def test_a_kept_temporary_stays_read_only_for_all():
    b = hamr.Buffer(3, "f8", "cuda", fill=1).cached()
    handle = b.get_host_accessible()
    assert handle.readonly
    with pytest.raises(BufferError, match="read-only"):
        handle.__dlpack__()
