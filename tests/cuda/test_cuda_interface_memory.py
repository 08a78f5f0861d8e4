"""Foreign device memory: whose it is, how far it reaches, and how long it lives."""

import ctypes
import gc
import sys
import weakref

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.cuda.driver import Only
from tests.support import producers
from tests.support.producers import assert_same, cast

A = hamr.Allocator


def sample(dtype="float32", shape=(3, 4)):
    return cast(np.arange(1, 1 + int(np.prod(shape, dtype=int))).reshape(shape), dtype)


def test_memory_that_no_driver_knows_is_refused():
    host = np.ones(4, "f4")
    made = driver.Array(sample())
    for address in (host.ctypes.data, 4096, 2**63):
        with pytest.raises(ValueError, match=r"device memory that exists"):
            hamr.buffer(Only(made, data=(address, False)))


def test_freed_memory_is_refused():
    address = driver.allocate(48)
    made = driver.Array(sample())
    owner = Only(made, data=(address, False))
    assert hamr.buffer(owner).ptr == address
    driver.free(address)
    with pytest.raises(ValueError, match="device memory that exists"):
        hamr.buffer(owner)


def test_elements_past_the_allocation_are_refused():
    made = driver.Array(np.zeros(64 << 10, "u1"))
    size = made.nbytes
    assert hamr.buffer(Only(made)).nbytes == size
    for changes in (
        {"shape": (64 << 20,)},
        {"data": (made.ptr + 1, False), "shape": (2 << 20,)},
        {"shape": (2,), "strides": (1 << 30,)},
        {"shape": (2,), "strides": (-(1 << 30),)},
    ):
        with pytest.raises(ValueError, match="inside the allocation"):
            hamr.buffer(Only(made, **changes))


@pytest.mark.parametrize("kind", ["cuda", "cuda_async", "cuda_uva"])
def test_kind_and_device_are_found(kind, device):
    made = driver.Array(sample(), device=device, kind=kind)
    shared = hamr.buffer(made)
    assert (shared.allocator, shared.owner) == (A[kind], device)
    assert shared.host_accessible() == (kind == "cuda_uva")
    assert_same(shared, sample())
    if kind == "cuda_uva":
        assert np.asarray(shared).ctypes.data == made.ptr


def test_pinned_memory_is_host_memory():
    """Numba offers __cuda_array_interface__ for mapped memory."""
    made = driver.Array(sample(), kind="cuda_host")
    shared = hamr.buffer(made)
    assert (shared.allocator, shared.owner) == (A.cuda_host, -1)
    assert np.asarray(shared).ctypes.data == made.ptr
    assert_same(shared, sample())


@pytest.mark.parametrize(
    ("wait", "expected"),
    [pytest.param(False, 0, marks=pytest.mark.races), (True, 1), (None, 1)],
)
def test_producers_streams_are_honoured_or_not(emulator, wait, expected):
    stream, mine = driver.Stream(), driver.Stream()
    array = driver.Array(np.zeros(10, "f4"), stream=stream.handle)
    driver.write_late(stream, array.ptr, 10, 1)
    shared = hamr.buffer(array, stream=mine, wait=wait)
    assert np.asarray(shared.get_host_accessible())[0] == expected


OPTED = """
import hamr, numpy as np
from tests.cuda import driver
for wait in None, True:
    stream, mine = driver.Stream(), driver.Stream()
    array = driver.Array(np.zeros(10, 'f4'), stream=stream.handle)
    driver.write_late(stream, array.ptr, 10, 1)
    print(np.asarray(hamr.buffer(array, stream=mine, wait=wait).get_host_accessible())[0])
"""


@pytest.mark.parametrize(("setting", "expected"), [("0", "0.0\n1.0\n"), ("1", "1.0\n1.0\n")])
def test_the_environment_opts_out(emulator, setting, expected):
    environment = {"HAMR_CUDA_ARRAY_INTERFACE_SYNC": setting}
    assert producers.run_python(OPTED, **environment).stdout == expected


# Owners.


def test_owners_live_exactly_as_long_as_their_memory_is_used():
    ended = []

    class Counted(driver.Array):
        def __del__(self):
            ended.append(self.ptr)
            super().__del__()

    made = Counted(sample())
    pointer, watch = made.ptr, weakref.ref(made)
    shared = hamr.buffer(made)
    users = [
        shared[1:], shared.get_cuda_accessible(), hamr.buffer(shared), hamr.buffer(Only(shared)),
        shared.get_cuda_accessible().get_cuda_accessible(),
    ]  # fmt: skip
    del made
    shared.close()
    del shared
    while users:
        gc.collect()
        assert watch() is not None
        assert_same(hamr.buffer(Only(users[-1])), np.asarray(users[-1].get_host_accessible()))
        users.pop()
    gc.collect()
    assert ended == [pointer]


def test_reference_counts_are_exact():
    made = driver.Array(sample())
    before = sys.getrefcount(made)
    many = [hamr.buffer(made) for _ in range(100)]
    assert sys.getrefcount(made) == before + 100
    many += [x.get_cuda_accessible() for x in many] + [x[1:] for x in many]
    assert sys.getrefcount(made) == before + 100
    del many
    assert sys.getrefcount(made) == before


def test_an_owner_is_let_go_by_growth():
    made = driver.Array(sample())
    before = sys.getrefcount(made)
    shared = hamr.buffer(made)
    shared.append(1)
    assert sys.getrefcount(made) == before
    np.testing.assert_array_equal(made.read(), sample())


# Pointers.


@pytest.mark.parametrize("kind", ["cuda", "cuda_async", "cuda_uva", "cuda_host"])
def test_pointers(kind):
    made = driver.Array(sample(), kind=kind)
    owner = object.__new__(type("Owner", (), {}))
    watch = weakref.ref(owner)
    shared = hamr.Buffer.from_pointer(made.ptr, (3, 4), "f4", kind, owner=owner)
    assert shared.owner == (-1 if kind == "cuda_host" else 0)
    assert_same(shared, sample())
    turned = hamr.Buffer.from_pointer(made.ptr, (4, 3), "f4", kind, strides=(4, 16), readonly=True)
    assert_same(turned, sample().T)
    assert turned.readonly
    del owner
    assert watch() is not None
    shared.close()
    assert watch() is None


@pytest.mark.parametrize("kind", ["cuda", "cuda_async", "cuda_uva", "cuda_host"])
def test_taken_pointers_are_freed(kind):
    address = driver.allocate(4096, kind=kind)
    driver.write(address, np.ones(1024, "f4"))
    taken = hamr.Buffer.from_pointer(address, 1024, "f4", kind, take=True)
    assert np.asarray(taken.get_host_accessible()).sum() == 1024
    taken.close()
    if driver.emulator:
        driver.emulator.finish()
        kinds = ctypes.c_int()
        assert driver.code("cuPointerGetAttribute", ctypes.byref(kinds), 2, address) != 0


def test_pointers_to_what_they_are_not():
    made, pinned = driver.Array(sample()), driver.Array(sample(), kind="cuda_host")
    for pointer, allocator, words in (
        (made.ptr, "cuda_uva", "allocator"),
        (made.ptr, "cuda_host", "allocator"),
        (pinned.ptr, "cuda", "allocator"),
        (4096, "cuda", "device memory that exists"),
        (np.ones(3).ctypes.data, "cuda_async", "device memory that exists"),
    ):
        with pytest.raises(ValueError, match=words):
            hamr.Buffer.from_pointer(pointer, (3, 4), "f4", allocator)
    with pytest.raises(ValueError, match="inside the allocation"):
        hamr.Buffer.from_pointer(made.ptr, 1 << 30, "f4", "cuda")
    with pytest.raises(ValueError, match=f"device is {driver.DEVICES}"):
        hamr.Buffer.from_pointer(made.ptr, 3, "f4", "cuda", device=driver.DEVICES)
