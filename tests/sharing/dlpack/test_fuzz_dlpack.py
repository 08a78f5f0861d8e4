"""DLPack from producers that are wrong, hostile, or merely odd."""

import contextlib
import gc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hamr
from tests.scripts import fuzz_dlpack as fuzz
from tests.support.dlpack_producers import Producer, Tensor, exchanging, name_of
from tests.support.processes import run_script, scaled

ABSENT = {"HAMR_CUDA_LIBRARY": "/nonexistent/libcuda.so.1"}

Exchanging, _ = exchanging()


def test_a_million_tensors():
    """In a process of its own: a crash is a failure. The script says what is compared with what."""
    print(run_script("fuzz_dlpack", scaled(1_000_000, 20_000), 20, timeout=400, env=ABSENT))


sizes = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 5) | st.sampled_from(fuzz.HUGE)
addresses = st.sampled_from([None, 1, 2**47, 2**63, 2**64 - 8]) | st.integers(
    fuzz.BASE + 4096, fuzz.BASE + 8192
)


@st.composite
def fields(draw):
    """Every field as it comes, but that there is room for the dimensions that are counted."""
    ndim = draw(st.integers(0, 4) | st.sampled_from([-1, 64, 65, -(2**31), 2**31 - 1]))
    room = ndim if 0 <= ndim <= 64 else draw(st.integers(0, 4))
    dimensions = st.none() | st.lists(sizes, min_size=room, max_size=room)
    return {
        "version": draw(st.sampled_from([(1, 0), (1, 3), (1, 2**32 - 1), (0, 8), (2, 0)])),
        "flags": draw(st.integers(0, 2**64 - 1) | st.integers(0, 7)),
        "data": draw(addresses),
        # Those of CUDA depend on the driver that the tests run with.
        "device": (draw(st.sampled_from([1, 1, 1, 4, 8, 10, 11, 14, 0, -5, 2**31 - 1])),
                   draw(st.integers(-(2**31), 2**31 - 1) | st.just(0))),
        "ndim": ndim,
        "dtype": draw(
            st.tuples(st.integers(0, 6), st.sampled_from([8, 16, 32, 64]), st.just(1))
            | st.tuples(st.integers(0, 255), st.integers(0, 255), st.integers(0, 2**16 - 1))
        ),
        "shape": draw(dimensions),
        "strides": draw(dimensions),
        "byte_offset": draw(st.integers(0, 2**64 - 1) | st.integers(0, 64) | st.just(0)),
    }  # fmt: skip


#: Errors that are right for types that only some builds of hamr have.
MAYBE = {TypeError}

WAYS = {
    "from_dlpack": lambda t: hamr.from_dlpack(Producer(t)),
    "copied": lambda t: hamr.from_dlpack(Producer(t), device=-1, copy=False),
    "buffer": lambda t: hamr.buffer(Producer(t)),
    "capsule": lambda t: hamr.from_dlpack(t.capsule()),
    "exchange": lambda t: hamr.buffer(Exchanging(t)),
}


@settings(max_examples=scaled(1500, 100))
@given(fields(), st.booleans(), st.sampled_from(sorted(WAYS)))
def test_any_struct(fields, versioned, way):
    """Refused with the right type of exception, or shared; ended exactly once either way."""
    if not versioned and way == "exchange":
        versioned = True
    changes = dict(fields)
    if not versioned:
        del changes["flags"], changes["version"]
    wrong, expected = fuzz.oracle(fields, versioned)
    tensor = Tensor(np.zeros(0), versioned=versioned, **changes)
    shared, found = None, None
    try:
        shared = WAYS[way](tensor)
    except (TypeError, ValueError, BufferError, hamr.BackendUnavailable) as error:
        found = type(error)
    copied = way == "copied" and versioned and fields["flags"] & 2
    if shared is None:
        asked = tensor.ended == 1
        assert asked or fields["device"][0] not in fuzz.HOST
        assert found in (wrong or set()) | ({BufferError} if copied else set())
    else:
        assert not wrong or wrong <= MAYBE
        assert not copied
        assert tensor.ended == 0
        if expected:
            address, shape, _, size, _, _ = expected
            assert (shared.ptr, shared.shape, shared.itemsize) == (address, shape, size)
        del shared
        assert (tensor.ended, tensor.unused) == (1, 0)


@settings(max_examples=scaled(500, 50))
@given(fields(), st.booleans())
def test_any_capsule_is_refused_unconsumed(fields, versioned):
    """But for those of another major version, of which the deleter is called."""
    changes = dict(fields)
    if not versioned:
        del changes["flags"], changes["version"]
    tensor = Tensor(np.zeros(0), versioned=versioned, **changes)
    capsule = tensor.capsule()
    before = name_of(capsule)
    try:
        shared = hamr.buffer(capsule)
    except (TypeError, ValueError, BufferError, hamr.BackendUnavailable):
        other = versioned and fields["version"][0] != 1
        assert (name_of(capsule), tensor.ended) == (("used_" + before, 1) if other else (before, 0))
    else:
        assert name_of(capsule) == "used_" + before
        del shared
        assert tensor.ended == 1
    del capsule
    assert tensor.ended == 1


class Hostile:
    """Does something while it is asked."""

    def __init__(self, action, tensor=None):
        self.action, self.tensor = action, Tensor() if tensor is None else tensor

    def __dlpack_device__(self):
        self.action(self)
        return 1, 0

    def __dlpack__(self, **keywords):
        self.action(self)
        keywords.clear()
        return self.tensor.capsule()


@pytest.mark.parametrize(
    "action",
    [
        lambda obj: setattr(type(obj), "__dlpack_c_exchange_api__", 5),
        lambda obj: setattr(type(obj), "__module__", 7),
        lambda obj: gc.collect(),
        lambda obj: hamr.from_dlpack(Producer()),
        lambda obj: obj.__dict__.update(action=lambda x: None) or hamr.buffer(obj),
    ],
)
def test_producers_that_do_something_else_meanwhile(action):
    kind = type("Hostile", (Hostile,), {})
    obj = kind(action)
    for _ in range(3):
        before = obj.tensor.ended
        shared = hamr.from_dlpack(obj)
        assert shared.shape == (2, 3)
        del shared
        assert obj.tensor.ended > before


def test_a_method_that_is_taken_away_meanwhile():
    obj = Hostile(lambda obj: setattr(obj, "__dlpack__", None))
    with pytest.raises(TypeError, match="Hostile object cannot be shared by DLPack"):
        hamr.from_dlpack(obj)


def test_nothing_is_left():
    """Whatever was refused or shared."""
    gc.collect()
    before = hamr.stats()["references"]
    for i in range(scaled(20_000, 500)):
        tensor = Tensor(np.zeros(3), versioned=bool(i % 2), ndim=-1 if i % 3 else 1)
        with contextlib.suppress(ValueError):
            hamr.from_dlpack(tensor.capsule())
        assert tensor.ended == 1
        tensor.forget()
    assert hamr.stats()["references"] == before
