"""Copies between the sides of hamr.pygpu's arrays: what they ask of the driver, and what fails."""

import numpy as np
import pytest

import hamr
from hamr import pygpu

N = 256


def calls_of(emulator, function):
    """How often each entry point is called, once all is warm."""
    for _ in range(3):
        function()
    before = {name: emulator.calls(name) for name in emulator.entry_points}
    function()
    after = {name: emulator.calls(name) - n for name, n in before.items()}
    return {name: n for name, n in after.items() if n}


@pytest.fixture
def host():
    return np.arange(N, dtype="f4")


def test_set_calls_the_driver_as_an_assignment_does(emulator, host):
    array, buffer = pygpu.to_gpu(host.copy()), hamr.Buffer(N, "f4", "cuda", fill=0)

    def assign():
        buffer[...] = host

    def make():
        made = hamr.Buffer(N, "f4", "cuda")
        made[...] = host

    wanted = calls_of(emulator, assign)
    assert wanted["cuMemcpyHtoDAsync_v2"] == 1
    assert calls_of(emulator, lambda: array.set(host)) == wanted
    assert calls_of(emulator, array.to_device) == wanted
    assert calls_of(emulator, lambda: pygpu.to_gpu(host)) == calls_of(emulator, make)


def test_get_calls_the_driver_as_a_buffers_does(emulator, host):
    array, buffer = pygpu.to_gpu(host), hamr.Buffer(N, "f4", "cuda", fill=0)
    wanted = calls_of(emulator, lambda: buffer.get(host))
    assert sum(n for name, n in wanted.items() if name.startswith("cuMemcpyDtoH")) == 1
    assert calls_of(emulator, array.get) == wanted
    assert calls_of(emulator, array.to_host) == wanted
    assert calls_of(emulator, lambda: array.get(host)) == wanted


def test_new_elements_take_one_call(emulator):
    wanted = calls_of(emulator, lambda: hamr.Buffer(N, "f4", "cuda", fill=1))
    assert calls_of(emulator, lambda: pygpu.ones(N, "float32")) == wanted
    assert pygpu.ones((2, 3), "int16").get().tolist() == [[1] * 3] * 2
    assert pygpu.zeros([2], "complex64", order="F").get().tolist() == [0, 0]
    assert pygpu.zeros(()).get() == 0


@pytest.mark.parametrize("kind", ["HostAllocator", "PagelockedAllocator"])
def test_the_host_may_be_changed_when_set_returns(kind):
    memory = getattr(pygpu, kind)(N, "float32").get()
    memory[...] = 1
    array = pygpu.to_gpu(memory)
    memory[...] = 2
    assert array.get(np.empty(N, "f4")).tolist() == [1] * N
    for send in (lambda: array.set(memory), array.to_device):
        memory[...] = 3
        send()
        memory[...] = 4
        assert array.get(np.empty(N, "f4")).tolist() == [3] * N


def test_a_side_of_another_shape_is_not_written_to():
    array = pygpu.to_gpu(np.zeros((2, 3)))
    array.set(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"ary has shape \(3, 2\): accepted is \(2, 3\)"):
        array.set(np.ones((3, 2)))
    with pytest.raises(TypeError, match="ary has float32 elements: accepted are float64"):
        array.set(np.ones((2, 3), "f4"))
    with pytest.raises(ValueError, match="ary has shape"):
        array.set(np.ones(3))  # nothing is broadcast
    array.set(np.full((3, 2), 5.0).T)
    assert (array.get() == 5).all()
    fortran = pygpu.to_gpu(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    assert fortran.flags.f_contiguous
    fortran.set(np.arange(6.0).reshape(2, 3) + 1)
    assert fortran.get().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert fortran.copy().get().tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("way", "calls"),
    [
        (lambda a: a.get(), ("cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2")),
        (lambda a: a.set(np.ones(N, "f4")), ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoD_v2")),
        (lambda a: pygpu.to_gpu(np.ones(N, "f4")), ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoD_v2")),
        (lambda a: a.__setitem__(..., np.ones(N, "f4")), ("cuMemcpyHtoDAsync_v2",)),
        (lambda a: a.fill(3), ("cuMemsetD32Async",)),
        (lambda a: pygpu.ones(N, "float32"), ("cuMemsetD32Async",)),
        (lambda a: a.copy(), ("cuMemcpyDtoDAsync_v2", "cuMemcpyAsync")),
    ],
    ids=["get", "set", "to_gpu", "setitem", "fill", "ones", "copy"],
)
def test_what_raises_is_the_last_error_too(emulator, way, calls):
    array = pygpu.to_gpu(np.zeros(N, "f4"))
    array.get()
    pygpu.cudaGetLastError()
    for call in calls:
        emulator.fail(call, 0, 716)
    with pytest.raises(hamr.DeviceError) as raised:
        way(array)
    emulator.stop_failing()
    assert raised.value.code == 716
    assert pygpu.cudaGetLastError() == 716
    assert pygpu.cudaGetLastError() == 0


def test_single_elements():
    array = pygpu.to_gpu(np.zeros((2, 3), "f4"))
    array.set_val(4, 2.5)
    array.set_val(1, np.float32(7))
    assert array.get().tolist() == [[0, 7, 0], [0, 2.5, 0]]
    array[0, ::2].set_val(1, 9)
    assert array.get()[0].tolist() == [0, 7, 9]
    whole = pygpu.zeros(3, "int16")
    with pytest.raises(hamr.OutOfRange, match="70000"):
        whole.set_val(0, 70000)
    with pytest.raises(IndexError, match=r"idx is 3: accepted are 0 \.\.\. 2"):
        whole.set_val(3, 1)
    assert whole.get().tolist() == [0, 0, 0]
