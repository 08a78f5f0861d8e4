"""Memory of OpenMP's devices, on each device of the runtime that is found."""

import sys

import numpy as np
import pytest

import hamr
from tests.support import openmp_runtime
from tests.support.in_threads import in_threads
from tests.support.processes import launch, scaled

ELEMENTS = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "complex128"]


def ramp(*shape, dtype="float64"):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)


def of(b):
    return b.get(np.empty(b.shape, b.dtype))


def test_what_is_known_of_it(device):
    found = hamr.backends()["openmp"]
    assert found["allocators"] == ["openmp"]
    facts = found["devices"][device]
    assert facts["name"]
    if facts.get("kind") == "cpu":
        assert len(found["devices"]) == 1
        assert hamr.get_device_allocator().name != "openmp", "the host is not the device"


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_create_fill_and_get(device, dtype):
    b = hamr.Buffer((3, 4), dtype, "openmp", fill=1, device=device)
    assert (b.allocator, b.owner, b.shape) == (hamr.Allocator.openmp, device, (3, 4))
    np.testing.assert_array_equal(of(b), np.ones((3, 4), dtype))
    b.fill(0)
    b[1:3, ::2] = 1
    expected = np.zeros((3, 4), dtype)
    expected[1:3, ::2] = 1
    np.testing.assert_array_equal(of(b), expected)


def test_both_directions(device):
    values = ramp(5, 4)
    b = hamr.buffer(values)
    b.move("openmp", device=device)
    np.testing.assert_array_equal(of(b), values)
    np.testing.assert_array_equal(of(b.astype("int16")), values.astype("int16"))
    np.testing.assert_array_equal(of(b[::-1, 1::2]), values[::-1, 1::2])
    b.resize(30, -1)
    b.append(np.full(50_000, 7.0))
    assert of(b)[[0, 19, 20, 29, 30, -1]].tolist() == [1, 20, -1, -1, 7, 7]
    b.move("malloc")
    assert np.asarray(b)[-1] == 7


def test_between_all_devices():
    values = ramp(700_000)  # more than a piece of what goes through the host
    devices = range(len(hamr.backends()["openmp"]["devices"]))
    for at in devices:
        b = hamr.buffer(values).copy("openmp", device=at)
        for to in devices:
            np.testing.assert_array_equal(of(b.copy("openmp", device=to)), values)


def test_where_it_is_reached(device):
    b = hamr.buffer(ramp(6))
    assert not b.accessible("openmp")
    made = b.get_openmp_accessible(device)
    assert made.is_temporary
    assert (made.allocator, made.owner) == (hamr.Allocator.openmp, device)
    b.move("openmp", device=device)
    assert b.accessible("openmp")
    there = b.get_openmp_accessible(device)
    assert not there.is_temporary
    assert there.ptr == b.ptr
    # On the initial device, too, whose memory the host could use.
    assert not b.accessible("host")
    here = b.get_host_accessible()
    assert here.is_temporary
    np.testing.assert_array_equal(np.asarray(here), ramp(6))
    with b.on_host("rw") as array:
        array *= 2
    np.testing.assert_array_equal(of(b), ramp(6) * 2)


def test_errors():
    with pytest.raises(hamr.OutOfMemory, match="omp_target_alloc returned NULL"):
        hamr.Buffer(1 << 60, "u1", "openmp")  # more than there are addresses for
    count = len(hamr.backends()["openmp"]["devices"])
    with pytest.raises(ValueError, match=f"device is {count}"):
        hamr.Buffer(1, "u1", "openmp", device=count)
    b = hamr.buffer(ramp(3)).copy("openmp")
    with pytest.raises(TypeError, match="the host does not reach openmp memory"):
        np.asarray(b)
    with pytest.raises(BufferError, match="no device for memory of allocator"):
        b.__dlpack__()
    with pytest.raises(ValueError, match="openmp"):
        hamr.Stream(device="openmp")
    b.close()
    with pytest.raises(hamr.FreedBuffer):
        b.fill(1)


def test_threads(device):
    b = hamr.buffer(np.zeros(8)).copy("openmp", device=device)

    def work(i):
        for turn in range(scaled(50, 5)):
            b[i] = value = i * 100 + turn
            assert b.get(np.empty(8))[i] == value
            own = hamr.Buffer(1000, "f8", "openmp", fill=value, device=device)
            assert np.asarray(own.get_host_accessible())[-1] == value

    in_threads(work, 8)


FORK = """
import os
import hamr
b = hamr.Buffer(4, "f8", "openmp", fill=1)
child = os.fork()
if not child:
    new = lambda: hamr.Buffer(3, "f8", "openmp")
    for use in (lambda: b.fill(2), lambda: b.copy("malloc"), new):
        try:
            use()
        except hamr.ForkError:
            continue
        os._exit(1)
    assert str(hamr.Buffer(2, "f8", fill=2)) == "{2, 2}"
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert str(b) == "{1, 1, 1, 1}"
"""


def test_fork():
    status, output = launch([sys.executable, "-c", FORK], 60, openmp_runtime.ALONE)
    assert status == 0, output


EXIT = """
import threading
import hamr
kept = hamr.Buffer(1 << 20, "u1", "openmp", fill=1)
views = [kept.get_openmp_accessible(), kept.get_host_accessible()]
working = threading.Thread(target=lambda: [kept.copy() for _ in range(20)], daemon=True)
working.start()
"""


def test_exit_is_clean():
    for _ in range(scaled(10, 2)):
        command = [sys.executable, "-X", "faulthandler", "-c", EXIT]
        assert launch(command, 60, openmp_runtime.ALONE) == (0, "")
