"""How hamr asks objects for their tensors: by methods, and by C functions."""

import gc
import mmap
import sys
import types
import weakref
from importlib import import_module

import numpy as np
import pytest

import hamr
from tests.support.dlpack_producers import (
    Exchange,
    OldProducer,
    Producer,
    Refusing,
    Tensor,
    capsule_of,
    exchanging,
)
from tests.support.dlpack_structs import CPU, ONE_API, READ_ONLY, ROCM
from tests.support.producers import assert_same

adopt = import_module("hamr._protocols.dispatch")
SAMPLE = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.fixture(params=[hamr.from_dlpack, hamr.buffer], ids=["from_dlpack", "buffer"])
def share(request):
    adopt.dlpack_types.clear()
    return request.param


# By methods.


def test_what_a_producer_on_the_host_is_asked(share):
    obj = Producer(Tensor(SAMPLE.copy()))
    assert_same(share(obj), SAMPLE)
    assert obj.asked == [{"max_version": (1, 3)}]
    assert type(obj.asked[0]["max_version"]) is tuple


@pytest.mark.parametrize("versioned", [False, True])
def test_producers_of_before_version_1_are_asked_again(share, versioned):
    """They are not told of a version that they do not know; what they answer may have one."""
    obj = OldProducer(Tensor(SAMPLE.copy(), versioned=versioned))
    shared = share(obj)
    assert obj.asked == [{"stream": None}]
    assert_same(shared, SAMPLE)
    assert not shared.readonly
    del shared
    assert obj.tensor.ended == 1


@pytest.mark.parametrize(
    "error",
    [BufferError("mine"), ValueError("mine"), ZeroDivisionError("mine"), KeyboardInterrupt()],
)
def test_errors_of_the_producer_pass_unchanged(share, error):
    obj = Refusing(error)
    with pytest.raises(type(error)) as caught:
        share(obj)
    assert caught.value is error
    assert len(obj.asked) == 1


def test_a_type_error_that_is_the_producers_own_is_not_hidden(share):
    first, second = TypeError("elements of this kind"), BufferError("not at all")
    with pytest.raises(BufferError, match="not at all") as caught:
        share(Refusing(first, second))
    assert caught.value is second
    assert second.__context__ is first
    assert first.__traceback__ is not None
    first, second = TypeError("first"), TypeError("second")
    obj = Refusing(first, second)
    with pytest.raises(TypeError, match="second") as caught:
        share(obj)
    assert caught.value.__context__ is first
    assert obj.asked == [{"max_version": (1, 3)}, {}]


def test_one_error_raised_twice_is_in_no_context(share):
    error = TypeError("always")
    with pytest.raises(TypeError, match="always") as caught:
        share(Refusing(error, error))
    assert caught.value is error
    assert error.__context__ is None


def test_the_context_that_an_error_brings_is_kept(share):
    class Two(Producer):
        def __dlpack__(self, **keywords):
            if keywords:
                raise TypeError("keywords")
            try:
                raise LookupError("inner")
            except LookupError:
                raise BufferError("outer")  # noqa: B904

    with pytest.raises(BufferError, match="outer") as caught:
        share(Two())
    assert isinstance(caught.value.__context__, LookupError)


@pytest.mark.parametrize("wrong", [None, 5, b"dltensor", object()])
def test_what_is_no_capsule(share, wrong):
    class Wrong(Producer):
        def __dlpack__(self, **keywords):
            return wrong

    with pytest.raises(TypeError, match=r"__dlpack__\(\) of .*Wrong.*: accepted is a capsule"):
        share(Wrong())


@pytest.mark.parametrize(
    "device", [None, 1, (1,), (1, 0, 0), [1, 0], ("1", 0), (1.0, 0), (2**40, 0), (1, 2**31)]
)
def test_devices_that_are_none(share, device):
    class Wrong(Producer):
        def __dlpack_device__(self):
            return device

    with pytest.raises(TypeError, match=r"__dlpack_device__\(\) of .*Wrong.*device type, number"):
        share(Wrong())


def test_numbers_of_devices_may_be_of_any_integer_class(share):
    class Odd(Producer):
        def __dlpack_device__(self):
            return np.int64(1), np.uint8(0)

    assert_same(share(Odd(Tensor(SAMPLE.copy()))), SAMPLE)


def test_a_device_that_is_not_accepted_is_not_asked_for_a_tensor(share):
    obj = Producer(Tensor(SAMPLE.copy(), device=(ONE_API, 0)))
    with pytest.raises(BufferError, match="oneAPI"):
        share(obj)
    assert obj.asked == []


def test_the_device_of_the_tensor_counts(share):
    """Not that of the object, which may lie."""

    class Lying(Producer):
        def __dlpack_device__(self):
            return CPU, 0

    obj = Lying(Tensor(SAMPLE.copy(), device=(ROCM, 0)))
    with pytest.raises(hamr.BackendUnavailable, match="hip"):
        share(obj)
    assert (obj.tensor.ended, obj.tensor.unused) == (1, 1)


@pytest.mark.parametrize(
    ("stream", "wait", "said"), [(None, None, 0), (7, None, 7), (7, False, -1)]
)
def test_streams_of_rocm(stream, wait, said):
    obj = Producer(Tensor(SAMPLE.copy(), device=(ROCM, 0)))
    with pytest.raises(hamr.BackendUnavailable):
        hamr.buffer(obj, stream, wait=wait)
    assert obj.asked == [{"stream": said, "max_version": (1, 3)}]


class Half:
    def __dlpack__(self, **keywords):
        raise AssertionError


class OtherHalf:
    def __dlpack_device__(self):
        return CPU, 0


@pytest.mark.parametrize("obj", [Half(), OtherHalf(), object(), 5, "x", None, Producer, int, []])
def test_what_has_no_dlpack(obj):
    kind = type(obj).__name__
    with pytest.raises(TypeError, match=rf"^{kind} object cannot be shared by DLPack: .*capsule"):
        hamr.from_dlpack(obj)


def test_an_attribute_error_inside_of_a_method_passes(share):
    class Broken(Producer):
        def __dlpack_device__(self):
            raise AttributeError("inside")

    with pytest.raises(AttributeError, match="inside"):
        share(Broken())


def test_the_object_itself_is_not_kept(share):
    """Its tensor is, which keeps what it needs."""
    obj = Producer(Tensor(SAMPLE.copy()))
    alive = weakref.ref(obj)
    shared = share(obj)
    del obj
    gc.collect()
    assert alive() is None
    assert_same(shared, SAMPLE)


def test_reference_counts_are_exact(share):
    obj = Producer(Tensor(SAMPLE.copy()))
    # Since 3.12 None is immortal, and its count a number that means nothing.
    watched = [obj, Producer, hamr.Buffer, *([None] if sys.version_info < (3, 12) else [])]
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(100):
        share(obj)
        with pytest.raises(BufferError):
            share(Refusing(BufferError()))
    adopt.dlpack_types.clear()
    after = [sys.getrefcount(x) for x in watched]
    assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True)), (before, after)


# What is known of a type.


def immutable(module):
    return type("ArrayImpl", (Producer,), {"__module__": module})


@pytest.mark.parametrize("module", ["jaxlib._jax", "jaxlib.xla_extension", "jax.foo"])
def test_arrays_of_jax_never_change(share, module):
    """Unversioned capsules cannot say so."""
    for versioned in False, True:
        obj = immutable(module)(Tensor(SAMPLE.copy(), versioned=versioned))
        assert share(obj).readonly
    assert not share(immutable("jaxliberty")(Tensor(SAMPLE.copy()))).readonly
    assert not share(immutable(None)(Tensor(SAMPLE.copy()))).readonly


class FakeTensor(Producer):
    """A torch.Tensor as far as it matters."""

    requires_grad = conjugate = negative = False

    def is_conj(self):
        return self.conjugate

    def is_neg(self):
        return self.negative


@pytest.fixture
def torch(monkeypatch):
    fake = types.SimpleNamespace(Tensor=FakeTensor)
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


def test_negative_views_of_torch_are_refused(share, torch):
    """Its __dlpack__ exports the memory, which holds the elements with the other sign."""
    obj = FakeTensor(Tensor(SAMPLE.copy()))
    assert_same(share(obj), SAMPLE)
    obj.negative = True
    with pytest.raises(BufferError, match=r"negative.*resolve_neg\(\)"):
        share(obj)
    assert len(obj.asked) == 1


def test_what_torchs_c_functions_do_not_refuse_is_asked_of_its_method(share, torch):
    exchange = Exchange()
    kind = type("Tensor", (FakeTensor,), {"__dlpack_c_exchange_api__": exchange.capsule})
    torch.Tensor = kind
    obj = kind(Tensor(SAMPLE.copy()))
    assert_same(share(obj), SAMPLE)
    assert (exchange.asked, obj.asked) == (1, [])
    for name in "requires_grad", "conjugate":
        setattr(obj, name, True)
        share(obj)
        setattr(obj, name, False)
    assert (exchange.asked, len(obj.asked)) == (1, 2)
    obj.negative = True
    with pytest.raises(BufferError, match="resolve_neg"):
        share(obj)
    assert (exchange.asked, len(obj.asked)) == (1, 2)


def test_a_torch_that_is_half_imported(share, monkeypatch):
    for half in types.SimpleNamespace(), types.SimpleNamespace(Tensor=None), None:
        monkeypatch.setitem(sys.modules, "torch", half)
        assert_same(share(Producer(Tensor(SAMPLE.copy()))), SAMPLE)


# By C functions.


def test_c_functions_come_first(share):
    kind, exchange = exchanging()
    tensor = Tensor(SAMPLE.copy(), flags=READ_ONLY)
    obj = kind(tensor)
    shared = share(obj)
    assert shared.source_protocol == "__dlpack__"
    assert shared.readonly
    assert_same(shared, SAMPLE)
    assert (exchange.asked, exchange.devices, obj.asked) == (1, [], [])
    del shared
    assert (tensor.ended, tensor.unused) == (1, 0)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [({"dtype": (0, 64, 2)}, TypeError, "lanes"), ({"ndim": 65}, ValueError, "ndim is 65"),
     ({"data": None}, ValueError, "NULL"), ({"shape": (-1, 1)}, ValueError, "shape"),
     ({"version": (2, 1)}, BufferError, r"DLPack 2\.1"),
     ({"device": (4, 0)}, BufferError, "OpenCL"),
     ({"device": (ROCM, 0)}, hamr.BackendUnavailable, "hip")],
)  # fmt: skip
def test_tensors_of_c_functions_that_are_refused_are_ended(share, changes, error, words):
    kind, _ = exchanging()
    tensor = Tensor(SAMPLE.copy(), **changes)
    for count in 1, 2:
        with pytest.raises(error, match=words):
            share(kind(tensor))
        assert (tensor.ended, tensor.unused) == (count, 0)


def test_c_functions_that_fail_leave_it_to_the_methods(share):
    kind, exchange = exchanging()
    exchange.failing = True
    obj = kind(Tensor(SAMPLE.copy()))
    assert_same(share(obj), SAMPLE)
    assert (exchange.asked, len(obj.asked)) == (1, 1)


def test_what_is_inherited_does_not_know_what_is_overridden(share):
    kind, exchange = exchanging()

    class Subclass(kind):
        pass

    obj = Subclass(Tensor(SAMPLE.copy()))
    assert_same(share(obj), SAMPLE)
    assert (exchange.asked, len(obj.asked)) == (0, 1)


def test_c_functions_of_other_versions(share):
    newer, newer_table = exchanging(major=2)
    obj = newer(Tensor(SAMPLE.copy()))
    assert_same(share(obj), SAMPLE)
    assert (newer_table.asked, len(obj.asked)) == (0, 1)
    ours = Exchange()
    both, both_table = exchanging(major=3, previous=Exchange(major=2, previous=ours))
    obj = both(Tensor(SAMPLE.copy()))
    assert_same(share(obj), SAMPLE)
    assert (both_table.asked, ours.asked, obj.asked) == (0, 1, [])


@pytest.mark.parametrize("wrong", [None, 5, "x", capsule_of(8, "another"), capsule_of(8, None)])
def test_what_is_no_table_of_c_functions(share, wrong):
    kind = type("Wrong", (Producer,), {"__dlpack_c_exchange_api__": wrong})
    obj = kind(Tensor(SAMPLE.copy()))
    assert_same(share(obj), SAMPLE)
    assert len(obj.asked) == 1


def test_a_table_without_functions(share):
    kind, exchange = exchanging()
    exchange.api.from_object = None
    assert_same(share(kind(Tensor(SAMPLE.copy()))), SAMPLE)
    assert exchange.asked == 0


class Deleted(mmap.mmap):
    """As a deleted array of JAX's: its buffer protocol says so, its DLPack does not."""

    def __dlpack__(self, **keywords):
        raise AssertionError(keywords)

    def __dlpack_device__(self):
        raise TypeError("object of type 'NoneType' has no len()")


def test_what_the_buffer_protocol_said_is_told(share):
    deleted = Deleted(-1, 8)
    deleted.close()
    with pytest.raises(TypeError, match="has no len") as caught:
        hamr.buffer(deleted)
    (note,) = caught.value.__notes__
    assert "exports no buffer either" in note
    assert "closed" in note
    with pytest.raises(TypeError, match="has no len") as caught:
        hamr.from_dlpack(deleted)
    assert not hasattr(caught.value, "__notes__")


class Withdrawn:
    """A class that says that it has none of what its parents may have."""

    __dlpack__ = __dlpack_device__ = __arrow_c_array__ = __array_interface__ = None


def test_protocols_that_are_none_are_absent():
    with pytest.raises(TypeError, match="Withdrawn object cannot be shared: accepted is"):
        hamr.buffer(Withdrawn())
    with pytest.raises(TypeError, match="Withdrawn object cannot be shared by DLPack"):
        hamr.from_dlpack(Withdrawn())
    with pytest.raises(TypeError, match=r"x is <.*Withdrawn.*>: accepted is a buffer"):
        hamr.device_of(Withdrawn())
    half = type("Half", (Producer,), {"__dlpack__": None})(Tensor(SAMPLE.copy()))
    with pytest.raises(TypeError, match="Half object cannot be shared by DLPack"):
        hamr.from_dlpack(half)
