"""Memory of OpenCL's devices: both allocators, on each device of each platform."""

import sys

import numpy as np
import pytest

import hamr
from tests.support.in_threads import in_threads
from tests.support.processes import launch, scaled

ELEMENTS = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "complex128"]


def ramp(*shape, dtype="float64"):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)


def of(b):
    return b.get(np.empty(b.shape, b.dtype))


def test_what_is_known_of_it(device):
    found = hamr.backends()["opencl"]
    assert found["allocators"] == ["opencl_device", "opencl_svm"]
    facts = found["devices"][device]
    assert facts["name"]
    assert facts["platform"]
    assert facts["kind"] in ("gpu", "accelerator", "cpu", "other")
    assert facts["shared_memory"] in ("usm", "fine", "coarse", "none")
    kinds = [row["kind"] for row in found["devices"]]
    assert kinds == sorted(kinds, key=["gpu", "accelerator", "cpu", "other"].index)


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_create_fill_and_get(name, device, dtype):
    b = hamr.Buffer((3, 4), dtype, name, fill=1, device=device)
    assert (b.allocator, b.owner, b.shape) == (hamr.Allocator[name], device, (3, 4))
    np.testing.assert_array_equal(of(b), np.ones((3, 4), dtype))
    b.fill(0)
    np.testing.assert_array_equal(of(b), np.zeros((3, 4), dtype))
    b[1:3, ::2] = 1
    expected = np.zeros((3, 4), dtype)
    expected[1:3, ::2] = 1
    np.testing.assert_array_equal(of(b), expected)


def test_fills_at_odd_addresses(name, device):
    """Which OpenCL's own fill refuses."""
    b = hamr.Buffer(200_001, "uint8", name, fill=9, device=device)
    part = hamr.Buffer.from_pointer(
        b.ptr + 1, (25_000,), "uint64", allocator=name, device=device, owner=b
    )
    part.fill(0x0102030405060708)
    assert of(b).tobytes() == b"\x09" + bytes(range(8, 0, -1)) * 25_000


def test_both_directions(name, device):
    values = ramp(5, 4)
    b = hamr.buffer(values)
    b.move(name, device=device)
    np.testing.assert_array_equal(of(b), values)
    np.testing.assert_array_equal(of(b.astype("int16")), values.astype("int16"))
    np.testing.assert_array_equal(of(b[::-1, 1::2]), values[::-1, 1::2])
    b.resize(30, -1)
    assert of(b).tolist() == [*values.ravel(), *[-1] * 10]
    b.move("malloc")
    np.testing.assert_array_equal(np.asarray(b), [*values.ravel(), *[-1] * 10])


def test_between_all_places():
    values = ramp(70_000)
    places = [
        (name, i)
        for name in ("opencl_device", "opencl_svm", "malloc", "cpp")
        for i in range(len(hamr.backends()["opencl"]["devices"]) if "_" in name else 1)
    ]
    for source, at in places:
        b = hamr.buffer(values).copy(source, device=at if "_" in source else -1)
        for target, to in places:
            c = b.copy(target, device=to if "_" in target else -1)
            np.testing.assert_array_equal(of(c), values, f"{source}:{at} to {target}:{to}")


def test_the_host_has_shared_memory_while_a_handle_lives(device):
    b = hamr.buffer(ramp(6)).copy("opencl_svm", device=device)
    with pytest.raises(TypeError, match="the host does not reach opencl_svm memory"):
        np.asarray(b)
    h = b.get_host_accessible()
    assert not h.is_temporary
    seen = np.asarray(h)
    assert seen.ctypes.data == b.ptr, "it has one address"
    seen[0] = -5
    with pytest.raises(ValueError, match="mapped"):
        b.get_opencl_accessible(device)
    del h, seen
    assert of(b)[0] == -5
    with b.on_host("rw") as array:
        array *= 2
    assert of(b).tolist() == [-10, 4, 6, 8, 10, 12]


def test_where_opencl_reaches_it(name, device):
    b = hamr.buffer(ramp(6))
    assert not b.accessible("opencl")
    made = b.get_opencl_accessible(device)
    assert made.is_temporary
    assert (made.allocator, made.owner) == (hamr.Allocator.opencl_device, device)
    b.move(name, device=device)
    assert b.accessible("opencl")
    assert not b.accessible("host")
    there = b.get_opencl_accessible(device)
    assert not there.is_temporary
    assert there.ptr == b.ptr


def test_errors(name):
    with pytest.raises(hamr.OutOfMemory, match=name) as caught:
        hamr.Buffer(1 << 46, "u1", name)
    assert "cl" in str(caught.value)
    count = len(hamr.backends()["opencl"]["devices"])
    with pytest.raises(ValueError, match=f"device is {count}"):
        hamr.Buffer(1, "u1", name, device=count)
    b = hamr.buffer(ramp(3)).copy(name)
    for other in (n for n, row in hamr.backends().items() if not row["available"]):
        with pytest.raises(hamr.BackendUnavailable, match=other):
            getattr(b, f"get_{other}_accessible")()
    assert not hasattr(b, "__array_interface__")
    with pytest.raises(BufferError, match="no device for memory of allocator"):
        b.__dlpack__()
    b.close()
    with pytest.raises(hamr.FreedBuffer):
        b.fill(1)


def test_streams(name, device):
    s = hamr.Stream(device=f"opencl:{device}")
    assert s.device == device
    b = hamr.Buffer(100_000, "f8", name, fill=2, device=device, stream=s, transfer="async")
    c = b.copy()
    event = s.record()
    event.synchronize()
    assert event.done
    s.synchronize()
    assert s.idle
    assert of(c)[-1] == 2
    b.set_stream(hamr.Stream(device=f"opencl:{device}"))
    b.fill(3)
    assert of(b)[-1] == 3
    with s:
        inside = hamr.Buffer(10, "f8", name, fill=1, device=device)
        assert inside.stream == s == inside.copy().stream
        assert hamr.Buffer(10, "f8", fill=1).stream != s, "host memory takes CUDA's"
    with pytest.raises(TypeError, match="not of CUDA"):
        s.__cuda_stream__()


def test_time(device):
    s = hamr.Stream(device=f"opencl:{device}")
    start = s.record(timing=True)
    hamr.Buffer(1_000_000, "f8", "opencl_device", fill=2, device=device, stream=s)
    end = s.record(timing=True)
    end.synchronize()
    assert start.elapsed_time(end) >= 0


def test_streams_of_other_runtimes_are_refused(name):
    queue = hamr.Stream(device="opencl")
    host = hamr.buffer(ramp(3))
    for use in (
        lambda: hamr.Buffer(3, "f8", stream=queue),
        lambda: hamr.Buffer(3, "f8", "cuda", stream=queue),
        lambda: host.set_stream(queue),
        lambda: hamr.buffer(ramp(3), stream=queue),
    ):
        with pytest.raises(ValueError, match=r"of opencl: accepted here are streams of cuda"):
            use()
    for number in (1, 4095, host.ptr):  # nothing, and something else
        with pytest.raises(ValueError, match=r"such stream|stream that exists"):
            hamr.Buffer(3, "f8", name, stream=number)


def test_threads(name, device):
    b = hamr.buffer(np.zeros(8)).copy(name, device=device)

    def work(i):
        for turn in range(scaled(50, 5)):
            b[i] = value = i * 100 + turn
            assert b.get(np.empty(8))[i] == value
            own = hamr.Buffer(1000, "f8", name, fill=value, device=device)
            assert np.asarray(own.get_host_accessible())[-1] == value

    in_threads(work, 8)


VERBOSE = """
import hamr
b = hamr.Buffer(4, "f8", "opencl_svm", fill=1)
h = b.get_host_accessible()
del h
b.copy("malloc")
"""


def test_what_happens_is_told():
    status, output = launch([sys.executable, "-c", VERBOSE], 60, {"HAMR_VERBOSE": "1"})
    assert status == 0, output
    for line in (
        "allocate opencl_svm device 0 size 32",
        "map opencl_svm device 0 size 32",
        "handle for host mapped",
        "unmap opencl_svm",
        "copy 32 bytes opencl_svm device 0",
        "free opencl_svm",
    ):
        assert f"hamr: {line}" in output, line


FORKS = """
import os, sys
import hamr
b = hamr.Buffer(4, "f8", {name!r}, fill=1)
child = os.fork()
if not child:
    new = lambda: hamr.Buffer(3, "f8", {name!r})
    for use in (lambda: b.fill(2), lambda: b.copy("malloc"), new):
        try:
            use()
        except hamr.ForkError:
            continue
        os._exit(1)
    assert str(hamr.Buffer(2, "f8", fill=2)) == "{{2, 2}}"
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert str(b) == "{{1, 1, 1, 1}}"
"""


def test_fork(name):
    status, output = launch([sys.executable, "-c", FORKS.format(name=name)], 60)
    assert status == 0, output


EXIT = """
import atexit, threading
import hamr
kept = [hamr.Buffer(1 << 20, "u1", name, fill=1) for name in ("opencl_svm", "opencl_device")]
stream = hamr.Stream(device="opencl")
views = [kept[0].get_host_accessible(), stream, stream.record()]
b = hamr.Buffer(1 << 20, "u1", "opencl_device", transfer="async")
b.fill(3)
"""


def test_exit_is_clean():
    for _ in range(scaled(10, 2)):
        status, output = launch([sys.executable, "-X", "faulthandler", "-c", EXIT], 60)
        assert (status, output) == (0, "")


def test_memory_that_is_not_there():
    script = """
import hamr
for name in ("opencl_svm", "opencl_device"):
    try:
        hamr.Buffer(3, "f8", name)
    except hamr.BackendUnavailable as error:
        assert error.backend == "opencl" and error.tried == ("/nowhere/libOpenCL.so",), error.tried
        print(error)
assert not hamr.backends()["opencl"]["available"]
"""
    setting = {"HAMR_OPENCL_LIBRARY": "/nowhere/libOpenCL.so"}
    status, output = launch([sys.executable, "-c", script], 60, setting)
    assert status == 0, output
    assert output.count("looked for /nowhere/libOpenCL.so: ") == 2
    assert "cannot open shared object file" in output
