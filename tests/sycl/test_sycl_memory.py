"""Unified shared memory of a SYCL device: the three allocators."""

import sys

import numpy as np
import pytest

import hamr
from hamr import hetero
from hamr.cli import information
from tests.support.in_threads import in_threads
from tests.support.processes import launch, run_code, scaled

ON_HOST = ("sycl_shared", "sycl_host")


def ramp(*shape, dtype="float64"):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)


def of(b):
    return b.get(np.empty(b.shape, b.dtype))


def test_what_is_known_of_it():
    found = hamr.backends()["sycl"]
    assert found["allocators"] == ["sycl_device", "sycl_shared", "sycl_host"]
    facts = found["devices"][0]
    assert facts["name"]
    assert facts["platform"]
    assert facts["kind"] in ("gpu", "accelerator", "cpu", "other")
    assert facts["runtime"] in ("level_zero", "opencl", "cuda", "hip")
    assert int(facts["memory"]) > 0
    lacking = ["lacks" in row for row in found["devices"]]
    assert lacking == sorted(lacking), "those without memory come last"
    library = information()["backends"]["sycl"]["library"]
    assert library.endswith("/dpctl/libDPCTLSyclInterface.so")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "uint64", "complex128"])
def test_create_fill_and_get(name, dtype):
    b = hamr.Buffer((3, 4), dtype, name, fill=1)
    assert (b.allocator, b.owner, b.shape) == (hamr.Allocator[name], 0, (3, 4))
    np.testing.assert_array_equal(of(b), np.ones((3, 4), dtype))
    b[1:3, ::2] = 0
    expected = np.ones((3, 4), dtype)
    expected[1:3, ::2] = 0
    np.testing.assert_array_equal(of(b), expected)


def test_fills_at_odd_addresses(name):
    """Which SYCL has no fill for."""
    b = hamr.Buffer(200_001, "uint8", name, fill=9)
    part = hamr.Buffer.from_pointer(b.ptr + 1, (25_000,), "uint64", allocator=name, owner=b)
    part.fill(0x0102030405060708)
    assert of(b).tobytes() == b"\x09" + bytes(range(8, 0, -1)) * 25_000


def test_both_directions(name):
    values = ramp(5, 4)
    b = hamr.buffer(values)
    b.move(name)
    np.testing.assert_array_equal(of(b), values)
    np.testing.assert_array_equal(of(b.astype("int16")), values.astype("int16"))
    np.testing.assert_array_equal(of(b[::-1, 1::2]), values[::-1, 1::2])
    b.resize(30, -1)
    assert of(b).tolist() == [*values.ravel(), *[-1] * 10]
    b.move("malloc")
    np.testing.assert_array_equal(np.asarray(b), [*values.ravel(), *[-1] * 10])


def test_what_the_host_reaches(name):
    b = hamr.buffer(ramp(6)).copy(name)
    if name not in ON_HOST:
        with pytest.raises(TypeError, match="the host does not reach sycl_device memory"):
            np.asarray(b)
        assert b.get_host_accessible().is_temporary
        with pytest.raises(BufferError, match="no device for memory of allocator"):
            b.__dlpack__()
        return
    seen = np.asarray(b)
    assert seen.ctypes.data == b.ptr
    assert np.from_dlpack(b).ctypes.data == b.ptr
    seen[0] = -5
    assert of(b)[0] == -5
    b.fill(7)
    b.synchronize()
    assert seen[0] == 7
    with b.on_host("rw") as array:
        array *= 2
    assert seen[0] == 14


def test_what_sycl_reaches(name):
    b = hamr.buffer(ramp(6))
    assert not b.accessible("sycl")
    made = b.get_sycl_accessible()
    assert made.is_temporary
    assert (made.allocator, made.owner) == (hamr.Allocator.sycl_device, 0)
    b.move(name)
    assert b.accessible("sycl")
    assert b.accessible("host") == (name in ON_HOST)
    there = b.get_sycl_accessible(0)
    assert not there.is_temporary
    assert there.ptr == b.ptr


def test_errors(name):
    with pytest.raises(hamr.OutOfMemory, match=rf"{name} on device 0 .*DPCTLaligned_alloc_"):
        hamr.Buffer(1 << 46, "u1", name)
    devices = hamr.backends()["sycl"]["devices"]
    with pytest.raises(ValueError, match=f"device is {len(devices)}"):
        hamr.Buffer(1, "u1", name, device=len(devices))
    for number, facts in enumerate(devices):
        if "lacks" in facts:
            with pytest.raises(hamr.BackendUnavailable, match=r"has no aspect usm_\w+_allocations"):
                hamr.Buffer(1, "u1", name, device=number)
    b = hamr.buffer(ramp(3)).copy(name)
    b.close()
    with pytest.raises(hamr.FreedBuffer):
        b.fill(1)


def test_streams(name):
    s = hamr.Stream(device="sycl:0")
    assert s.device == 0
    b = hamr.Buffer(100_000, "f8", name, fill=2, stream=s, transfer="async")
    c = b.copy()
    event = s.record()
    event.synchronize()
    assert event.done
    s.synchronize()
    assert s.idle
    assert of(c)[-1] == 2
    b.set_stream(hamr.Stream(device="sycl:0"))
    b.fill(3)
    assert of(b)[-1] == 3
    with s:
        inside = hamr.Buffer(10, "f8", name, fill=1)
        assert inside.stream == s == inside.copy().stream
        assert hamr.Buffer(10, "f8", fill=1).stream != s, "host memory takes CUDA's"
    with pytest.raises(TypeError, match="not of CUDA"):
        s.__cuda_stream__()


def test_time():
    s = hamr.Stream(device="sycl")
    start = s.record(timing=True)
    hamr.Buffer(1_000_000, "f8", "sycl_device", fill=2, stream=s)
    end = s.record(timing=True)
    end.synchronize()
    assert start.elapsed_time(end) >= 0


def test_streams_of_other_runtimes_are_refused(name):
    queue = hamr.Stream(device="sycl")
    host = hamr.buffer(ramp(3))
    for use in (
        lambda: hamr.Buffer(3, "f8", stream=queue),
        lambda: hamr.Buffer(3, "f8", "cuda", stream=queue),
        lambda: host.set_stream(queue),
    ):
        with pytest.raises(ValueError, match=r"of sycl: accepted here are streams of cuda"):
            use()
    for number in (1, 4095, host.ptr):  # nothing, and something else
        with pytest.raises(ValueError, match=r"such stream|stream that exists"):
            hamr.Buffer(3, "f8", name, stream=number)
    assert not hasattr(hamr.Stream(), "sycl_queue")


def test_threads(name):
    b = hamr.buffer(np.zeros(8)).copy(name)

    def work(i):
        for turn in range(scaled(50, 5)):
            b[i] = value = i * 100 + turn
            assert b.get(np.empty(8))[i] == value
            own = hamr.Buffer(1000, "f8", name, fill=value)
            assert np.asarray(own.get_host_accessible())[-1] == value

    in_threads(work, 8)


FORKS = """
import os
import hamr
kept = [hamr.Buffer(4, "f8", name, fill=1) for name in ("sycl_device", "sycl_shared", "sycl_host")]
child = os.fork()
if not child:
    for b in kept:
        new = lambda: hamr.Buffer(3, "f8", b.allocator)
        for use in (lambda: b.fill(2), lambda: b.copy("malloc"), new):
            try:
                use()
            except hamr.ForkError:
                continue
            os._exit(1)
    assert str(hamr.Buffer(2, "f8", fill=2)) == "{2, 2}"
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert [str(b) for b in kept] == ["{1, 1, 1, 1}"] * 3
"""


def test_fork():
    run_code(FORKS)


EXIT = """
import hamr, dpctl.memory
kept = [hamr.Buffer(1 << 20, "u1", name, fill=1) for name in ("sycl_shared", "sycl_device")]
stream = hamr.Stream(device="sycl")
views = [kept[0].get_host_accessible(), stream, stream.record(), stream.sycl_queue]
views += [dpctl.memory.as_usm_memory(kept[0]), hamr.buffer(dpctl.memory.MemoryUSMDevice(64))]
b = hamr.Buffer(1 << 20, "u1", "sycl_device", transfer="async", stream=stream)
b.fill(3)
"""


def test_exit_is_clean():
    for _ in range(scaled(10, 2)):
        status, output = launch([sys.executable, "-X", "faulthandler", "-c", EXIT], 60)
        assert (status, output) == (0, "")


def test_a_processor_is_an_accelerator_for_who_names_it(monkeypatch):
    monkeypatch.delenv("HAMR_ACCELERATORS", raising=False)
    kinds = [row["kind"] for row in hamr.backends()["sycl"]["devices"]]
    places = [f"sycl:{i}" for i in range(len(kinds))]
    by_default = [place for place, kind in zip(places, kinds, strict=True) if kind != "cpu"]
    assert [p for p in hetero.accelerators() if p.startswith("sycl")] == by_default
    assert hetero.accelerators("sycl") == places
    assert hetero.DeviceChooser(among="sycl").choose(0).place == "sycl:0"
