"""Memory of HIP's: every operation on elements beside NumPy, and the ways between memories."""

import numpy as np
import pytest

import hamr
from tests.hip import runtime

A = hamr.Allocator
DTYPES = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64"]


def ramp(*shape, dtype="float32"):
    return np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)


def on_hip(values, allocator=A.hip, device=0):
    return hamr.buffer(values).copy(allocator, device=device)


def same(buffer, values):
    found = np.asarray(buffer.get_host_accessible())
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def test_what_there_is():
    found = hamr.backends()["hip"]
    assert found["available"]
    assert found["allocators"] == ["hip", "hip_uva", "hip_async", "hip_host"]
    assert [device["driver"] for device in found["devices"]] == ["6.3.42134"] * 2
    assert all(device["uuid"].startswith("GPU-") for device in found["devices"])


@pytest.mark.parametrize("dtype", DTYPES)
def test_contents(device_allocator, dtype):
    a = ramp(4, 6, dtype=dtype)
    b = on_hip(a, device_allocator)
    assert (b.allocator, b.device) == (device_allocator, 0)
    same(b, a)
    same(b.copy(), a)
    same(b[1:3, ::2].copy(), a[1:3, ::2])
    same(b.T.copy(), a.T.copy())
    same(b[::-1].reshape((24,)), a[::-1].reshape(24))
    for other in ("int16", "float64", "float32")[: 3 * (dtype != "complex64")]:
        same(b.astype(other), a.astype(other))
    b[1] = 1
    a[1] = 1
    b[:, 2::3].fill(0)
    a[:, 2::3] = 0
    same(b, a)
    b.fill(1)
    a.fill(1)
    same(b, a)
    b[0, 0] = 0
    a[0, 0] = 0
    assert b[0, 0].item() == a[0, 0]
    assert str(b[0]) == str(hamr.buffer(a[0].copy()))
    b.set(np.flip(a))
    same(b, np.flip(a))


def test_kernels_convert(emulator):
    b = on_hip(ramp(4, 6))
    before = emulator.calls("cuLaunchKernel")
    same(b.T.astype("int16"), ramp(4, 6).T.astype("int16"))
    assert emulator.calls("cuLaunchKernel") > before


def test_growing_and_joining(hip_allocator):
    b = on_hip(ramp(3), hip_allocator)
    b.append(ramp(2))
    same(b, np.concatenate([ramp(3), ramp(2)]))
    b.resize(7, 9)
    same(b, np.array([1, 2, 3, 1, 2, 9, 9], "f4"))
    assert b.allocator == hip_allocator


@pytest.mark.parametrize("shape", [(1000,), (300, 700)])
def test_between_all_memories(hip_allocator, shape):
    a = ramp(*shape)
    for other in ("malloc", "cuda", "cuda_async", "cuda_uva", "cuda_host", "hip", "hip_async"):
        b = on_hip(a, hip_allocator)
        b.move(other)
        assert b.allocator == A[other]
        same(b, a)
        b.move(hip_allocator)
        same(b, a)
    device = on_hip(a, A.hip, device=1)
    assert device.device == 1
    same(device.copy(hip_allocator), a)
    same(on_hip(a[::2], hip_allocator).copy("cuda"), a[::2])


def test_hosts_copies_and_write_back():
    b = on_hip(ramp(5))
    assert not b.accessible("host")
    with b.on_host("rw") as array:
        array *= 2
    same(b, ramp(5) * 2)
    host = hamr.buffer(ramp(4))
    with host.on("hip", "rw") as h:
        interface = h.__cuda_array_interface__
        runtime.do("hipMemsetD8Async", interface["data"][0], 0, 16, interface["stream"] or 0)
    same(host, np.zeros(4, "f4"))
    with b.on("hip", "r") as h:
        assert not h.is_temporary


def test_large_copies_are_staged():
    a = ramp(3 << 20)
    same(on_hip(a), a)


def test_pools_tell_and_are_limited():
    b = hamr.Buffer(1000, "f4", A.hip)
    pinned = hamr.Buffer(1000, "f4", A.hip_host)
    pools = hamr.stats()["pools"]
    assert pools["hip:0"]["current"] >= 4000
    assert pools["hip_host"]["current"] >= 4000
    hamr.set_limit(device="hip:0", bytes="3MiB")
    assert hamr.stats()["pools"]["hip:0"]["limit"] == 3 << 20
    with pytest.raises(hamr.OutOfMemory, match="limit"):
        hamr.Buffer(4 << 20, "u1", A.hip)
    hamr.set_limit(device="hip:0", bytes=None)
    assert np.asarray(hamr.Buffer(4 << 20, "u1", A.hip, fill=1).get_host_accessible())[-1] == 1
    del b, pinned
