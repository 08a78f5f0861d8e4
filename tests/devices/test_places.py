"""device= beside allocator=: obeyed, or refused in words, never ignored."""

import types

import numpy as np
import pytest

import hamr

CUDA = hamr.backends().get("cuda", {"available": False})["available"]
no_driver = pytest.mark.skipif(CUDA, reason="there is a CUDA driver here")
HOST = [-1, "cpu", "host", types.SimpleNamespace(type="cpu", index=None)]


@pytest.mark.parametrize("allocator", ["malloc", "cpp"])
@pytest.mark.parametrize("device", [0, 1, "cuda", "cuda:1"])
def test_host_memory_is_on_no_device(allocator, device):
    b = hamr.Buffer(3, "f4", allocator, fill=1)
    words = rf"device is {device!r}: {allocator} memory is the host's: .*-1.*cuda"
    for refused in (
        lambda: hamr.Buffer(3, "f4", allocator, device=device),
        lambda: b.copy(allocator, device=device),
        lambda: b.move(allocator, device=device),
        lambda: hamr.Buffer.from_pointer(b.ptr, 3, "f4", allocator, owner=b, device=device),
    ):
        with pytest.raises(ValueError, match=words):
            refused()
    assert str(b) == "{1, 1, 1}"


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva"])
@pytest.mark.parametrize("device", [-1, "cpu"])
def test_device_memory_is_not_on_the_host(allocator, device):
    words = rf"device is {device!r}.*{allocator} memory is a device's.*accepted.*malloc"
    for refused in (
        lambda: hamr.Buffer(3, "f4", allocator, device=device),
        lambda: hamr.Buffer(3).copy(allocator, device=device),
        lambda: hamr.Buffer(3).move(allocator, device=device),
    ):
        with pytest.raises(ValueError, match=words):
            refused()


@pytest.mark.parametrize("device", HOST, ids=str)
def test_the_host_by_any_name(device):
    b = hamr.Buffer(3, "f4", "cpp", device=device, fill=2)
    assert (b.allocator, b.device) == (hamr.Allocator.cpp, -1)
    assert hamr.Buffer(3, device=device).allocator == hamr.Allocator.malloc
    assert b.copy(device=device).allocator == hamr.Allocator.cpp
    b.move(device=device, allocator="same")
    assert b.allocator == hamr.Allocator.cpp
    assert hamr.from_dlpack(np.arange(3), device=device).get().tolist() == [0, 1, 2]


@no_driver
@pytest.mark.parametrize("device", [0, "cuda", "cuda:0", "gpu:0"])
def test_a_device_means_memory_of_a_device(device):
    for asked in (
        lambda: hamr.Buffer(3, device=device),
        lambda: hamr.Buffer(3).copy(device=device),
        lambda: hamr.Buffer(3).move("same", device=device),
        lambda: hamr.from_dlpack(np.arange(3), device=device),
    ):
        with pytest.raises(hamr.BackendUnavailable, match="cuda"):
            asked()


@pytest.mark.parametrize(
    ("device", "kind"),
    [
        ("tpu", ValueError), ("cuda:", ValueError), ("cuda:-1", ValueError), ("cuda:x", ValueError),
        ("", ValueError), ("cuda:99999999999", ValueError), (-2, ValueError), (2**31, ValueError),
        (1.0, TypeError), (True, TypeError), (object(), TypeError), (b"cpu", TypeError),
        (types.SimpleNamespace(type="xpu", index=0), ValueError),
        (types.SimpleNamespace(type="cuda", index="0"), TypeError),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_device(device, kind):
    for asked in (
        lambda: hamr.Buffer(3, device=device),
        lambda: hamr.Buffer(3).copy(device=device),
        lambda: hamr.Stream(device=device),
        lambda: hamr.Buffer(3).get_cuda_accessible(device),
        lambda: hamr.Buffer(3).get_hip_accessible(device=device),
        lambda: hamr.Buffer(3).get_openmp_accessible(device),
        lambda: hamr.Buffer(3).get_device_accessible(device),
        lambda: hamr.Buffer(3).get_host_accessible().get_cuda_accessible(device),
        lambda: hamr.Buffer(3).on_cuda("r", device),
    ):
        with pytest.raises(kind, match="device is "):
            asked()


@pytest.mark.parametrize("device", ["cpu", "host", types.SimpleNamespace(platform="cpu", id=0)])
def test_the_host_is_no_device_to_reach(device):
    for name in ("cuda", "hip", "openmp", "device"):
        with pytest.raises(ValueError, match="accepted is a CUDA device, and not the host"):
            getattr(hamr.Buffer(3), f"get_{name}_accessible")(device)


def test_a_spelling_that_fails():
    class Device:
        def __index__(self):
            raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        hamr.Buffer(3).get_cuda_accessible(Device())
