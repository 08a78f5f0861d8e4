"""Memory whose address was given away: kept with the buffer, and none that nobody was told of."""

import gc
import weakref

import numpy as np
import pytest

import hamr
from hamr import _native
from tests.support import usm_producers as usm


def live():
    gc.collect()
    return hamr.stats()["references"]


class Owner:
    """What a weak reference can watch."""


@pytest.mark.parametrize("change", ["free", "append", "close"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("__array_interface__", "bfloat16"),
        ("__cuda_array_interface__", "f8"),
        ("__sycl_usm_array_interface__", "f8"),
    ],
)
def test_asking_in_vain_keeps_nothing(name, dtype, change):
    before = live()
    buffer = hamr.Buffer(1000, dtype, fill=1)
    for _ in range(5):
        assert not hasattr(buffer, name)
        if change == "append":
            buffer.append(np.ones(len(buffer)))
    if change != "append":
        getattr(buffer, change)()
    assert live() == before + (change == "append")


def test_asking_for_usm_in_vain_lets_the_owner_go():
    memory, owner = np.ones(3), Owner()
    watch = weakref.ref(owner)
    buffer = hamr.Buffer.from_pointer(memory.ctypes.data, 3, owner=owner)
    del owner
    assert not hasattr(buffer, "__sycl_usm_array_interface__")
    buffer.free()
    assert watch() is None


def test_strides_that_usm_cannot_say_keep_nothing():
    memory = usm.usm(np.arange(12, dtype="i2"))
    watch, whole = weakref.ref(memory), hamr.buffer(memory)
    odd = _native.view(hamr.Buffer, whole, 0, (2,), (5,))
    with pytest.raises(AttributeError, match="multiples"):
        odd.__sycl_usm_array_interface__  # noqa: B018
    odd.free()
    whole.free()
    del memory
    gc.collect()
    assert watch() is None


def test_what_is_told_twice_is_kept_once():
    """A loop of swaps alternates between two pieces of memory."""
    a, b = hamr.Buffer(10, fill=1), hamr.Buffer(10, fill=2)

    def kept(buffer):
        return sum(len(r) for r in gc.get_referents(buffer) if isinstance(r, (list, set)))

    for _ in range(100):
        assert a.__array_interface__["data"][0] == a.ptr
        a.swap(b)
    assert kept(a) == 2
    a.free()
    b.free()
    before = live()
    del a
    assert live() == before - 2


# Addresses of hamr's own memory, taken by its buffers.


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.resize(10**6, 9), lambda b: b.free(), lambda b: b.close(),
        lambda b: b.move("cpp"), lambda b: b.swap(hamr.Buffer(3)),
    ],
    ids=["resize", "free", "close", "move", "swap"],
)  # fmt: skip
@pytest.mark.parametrize("through", [lambda b: b, lambda b: b[::1]])
def test_a_buffer_at_the_address_of_another_keeps_its_memory(through, change):
    before = live()
    source = through(hamr.Buffer(1000, fill=3))
    taken = hamr.Buffer.from_pointer(source.ptr, 1000, owner=source)
    change(source)
    refill = [hamr.Buffer(1000, fill=9) for _ in range(64)]
    assert np.asarray(taken).tolist() == [3] * 1000
    del refill
    assert live() > before
    del taken, source
    assert live() == before


def test_a_buffer_at_the_address_of_a_handle_keeps_its_memory():
    with hamr.Buffer(1000, fill=3).get_host_accessible() as handle:
        taken = hamr.Buffer.from_pointer(handle.ptr, 1000, owner=handle)
    refill = [hamr.Buffer(1000, fill=9) for _ in range(64)]
    assert np.asarray(taken).tolist() == [3] * 1000
    assert len(refill) == 64


def test_a_closed_buffer_is_an_owner_like_any_other():
    memory, owner = np.ones(3), hamr.Buffer(3)
    owner.close()
    watch = weakref.ref(owner)
    taken = hamr.Buffer.from_pointer(memory.ctypes.data, 3, owner=owner)
    del owner
    assert watch() is not None
    del taken
    assert watch() is None
