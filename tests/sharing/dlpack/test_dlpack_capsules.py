"""Bare DLPack capsules, what hamr.from_dlpack() is asked for, and where objects are."""

import json
from importlib import import_module

import numpy as np
import pytest

import hamr
from tests.support import producers
from tests.support.dlpack_producers import (
    OldProducer,
    Producer,
    Refusing,
    Tensor,
    capsule_of,
    exchanging,
    name_of,
)
from tests.support.dlpack_structs import CPU, CUDA, CUDA_HOST, IS_COPIED, ONE_API, ROCM, ROCM_HOST
from tests.support.processes import run_code
from tests.support.producers import assert_same

adopt = import_module("hamr._protocols.dispatch")
SAMPLE = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.fixture(params=[hamr.from_dlpack, hamr.buffer], ids=["from_dlpack", "buffer"])
def share(request):
    adopt.dlpack_types.clear()
    return request.param


# Capsules.


@pytest.mark.parametrize("versioned", [True, False])
def test_a_capsule_is_consumed_once(share, versioned):
    tensor = Tensor(SAMPLE.copy(), versioned=versioned)
    capsule = tensor.capsule()
    shared = share(capsule)
    assert name_of(capsule) == ("used_dltensor_versioned" if versioned else "used_dltensor")
    for again in hamr.from_dlpack, hamr.buffer, hamr.Buffer(3).append:
        with pytest.raises(ValueError, match="capsule was consumed already"):
            again(capsule)
    del capsule
    assert tensor.ended == 0
    assert_same(shared, SAMPLE)
    del shared
    assert (tensor.ended, tensor.unused) == (1, 0)


@pytest.mark.parametrize("name", ["", "dltensor2", "arrow_array", "DLTENSOR", None])
def test_capsules_of_other_names(share, name):
    words = "NULL" if name is None else name
    with pytest.raises(TypeError, match=f"capsule is named {words}: .*dltensor_versioned"):
        share(capsule_of(8, name))


def test_capsules_from_a_method_are_checked_as_well(share):
    used = Tensor(SAMPLE.copy()).capsule()
    first = hamr.from_dlpack(used)

    class Wrong(Producer):
        def __dlpack__(self, **keywords):
            return self.answer

    obj = Wrong()
    obj.answer = used
    with pytest.raises(ValueError, match="consumed already"):
        share(obj)
    obj.answer = capsule_of(8, "another")
    with pytest.raises(TypeError, match="named another"):
        share(obj)
    assert_same(first, SAMPLE)


def test_types_are_remembered(share):
    hamr.buffer(Producer(Tensor(SAMPLE.copy())))
    hamr.buffer(Tensor(SAMPLE.copy()).capsule())
    assert Producer in adopt.dlpack_types
    obj = Producer(Tensor(SAMPLE.copy()))
    shared = hamr.buffer(obj)
    assert shared.source_protocol == "__dlpack__"
    assert hamr.buffer(obj, stream=0, sync="sync").transfer is hamr.Transfer.sync


def test_proxies_have_what_is_behind_them():
    class Proxy:
        def __init__(self, behind):
            self.behind = behind

        def __getattr__(self, name):
            return getattr(self.behind, name)

    adopt.dlpack_types.clear()
    tensor = Tensor(SAMPLE.copy())
    for behind, protocol in (
        (Producer(tensor), "__dlpack__"),
        (producers.interface_of(SAMPLE.copy()), "__array_interface__"),
        (Producer(tensor), "__dlpack__"),
    ):
        shared = hamr.buffer(Proxy(behind))
        assert shared.source_protocol == protocol
        assert_same(shared, SAMPLE)


# hamr.from_dlpack()


@pytest.mark.parametrize("device", [None, -1, (1, 0), np.int64(-1), (np.int8(1), np.int8(0))])
def test_the_host_as_a_device(device):
    tensor = Tensor(SAMPLE.copy())
    for copy in None, False:
        shared = hamr.from_dlpack(Producer(tensor), device=device, copy=copy)
        assert (shared.ptr, shared.source_protocol) == (tensor.array.ctypes.data, "__dlpack__")
    copied = hamr.from_dlpack(Producer(tensor), device=device, copy=True)
    assert (copied.source_protocol, copied.device) == (None, -1)
    assert copied.ptr != tensor.array.ctypes.data
    del shared
    assert tensor.ended == 3
    assert_same(copied, SAMPLE)


@pytest.mark.parametrize(
    ("device", "error"),
    [("tpu", ValueError), ("cuda:x", ValueError), (1.0, TypeError),
     (True, TypeError), ((1,), TypeError), ((), TypeError),
     ((1, 0, 0), TypeError), (("x", 0), TypeError), ([1, 0], TypeError), ((1, 1), ValueError),
     ((1, -1), ValueError), (-2, ValueError), ((2, -1), ValueError), (2**31, ValueError),
     ((3, 0), BufferError), ((10, 0), BufferError), ((14, 0), BufferError), ((-1, 0), BufferError)],
)  # fmt: skip
def test_devices_that_cannot_be_had(device, error):
    obj = Producer(Tensor(SAMPLE.copy()))
    with pytest.raises(error, match=r"device is .*accepted are None, -1 or \(1, 0\)") as caught:
        hamr.from_dlpack(obj, device=device)
    assert caught.type is error
    assert obj.asked == []


@pytest.mark.parametrize("copy", [0, 1, "never", np.bool_(True)])
def test_what_is_no_answer_to_copy(copy):
    with pytest.raises(TypeError, match=r"copy is .*True, False and None"):
        hamr.from_dlpack(Producer(), copy=copy)


def test_arguments_by_position_or_name():
    with pytest.raises(TypeError):
        hamr.from_dlpack(Producer(), -1)
    with pytest.raises(TypeError):
        hamr.from_dlpack(x=Producer())


def test_a_copy_that_must_not_be_made_is_forbidden_to_the_producer():
    obj = Producer(Tensor(SAMPLE.copy()))
    hamr.from_dlpack(obj, copy=False)
    assert obj.asked == [{"max_version": (1, 3), "copy": False}]
    obj = Producer(Tensor(SAMPLE.copy()))
    hamr.from_dlpack(obj, copy=True)
    assert obj.asked == [{"max_version": (1, 3)}]


def test_producers_that_do_not_know_copy_are_asked_without():
    class Early(Producer):
        def __dlpack__(self, *, stream=None, max_version=None):
            self.asked.append(max_version)
            return self.tensor.capsule()

    obj = Early(Tensor(SAMPLE.copy()))
    assert_same(hamr.from_dlpack(obj, copy=False), SAMPLE)
    assert obj.asked == [(1, 3)]
    old = OldProducer(Tensor(SAMPLE.copy()))
    assert_same(hamr.from_dlpack(old, copy=False), SAMPLE)
    first = TypeError("first")
    obj = Refusing(first, TypeError("second"), TypeError("third"))
    with pytest.raises(TypeError, match="third") as caught:
        hamr.from_dlpack(obj, copy=False)
    assert caught.value.__context__ is first
    assert obj.asked == [{"max_version": (1, 3), "copy": False}, {"max_version": (1, 3)}, {}]


def test_a_copy_that_was_made_all_the_same():
    for make in (lambda t: t.capsule(), Producer, exchanging()[0]):
        tensor = Tensor(SAMPLE.copy(), flags=IS_COPIED)
        with pytest.raises(BufferError, match="copy is False"):
            hamr.from_dlpack(make(tensor), copy=False)
        assert tensor.ended == 1
        assert_same(hamr.from_dlpack(make(Tensor(SAMPLE.copy(), flags=IS_COPIED))), SAMPLE)


# Where an object is.


@pytest.mark.parametrize(
    ("device", "number"),
    [((CPU, 0), -1), ((CUDA_HOST, 0), -1), ((ROCM_HOST, 0), -1), ((CUDA, 5), 5), ((ROCM, 2), 2)],
)
def test_device_of_asks_dlpack(device, number):
    obj = Producer(Tensor(SAMPLE.copy(), device=device))
    assert hamr.device_of(obj) == number
    assert obj.asked == []


def test_device_of_what_is_nowhere():
    for device in (ONE_API, 0), (99, 0), None, ("x", 1):

        class Odd(Producer):
            def __dlpack_device__(self, device=device):
                return device

        with pytest.raises(TypeError, match=r"x is .*accepted is a buffer"):
            hamr.device_of(Odd())
    with pytest.raises(TypeError, match="x is "):
        hamr.device_of(Producer)


def test_device_of_an_object_whose_other_interface_raises():
    class Grown(Producer):
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("requires grad")

    assert hamr.device_of(Grown(Tensor(SAMPLE.copy(), device=(CUDA, 1)))) == 1


# Without a driver.

ABSENT = """
import json, sys
import numpy as np
import hamr
from tests.support.dlpack_producers import *
from tests.support.dlpack_structs import CUDA, CUDA_HOST, CUDA_MANAGED, ROCM
found = []
for device in (CUDA, 0), (CUDA, 7), (CUDA_MANAGED, 0), (ROCM, 0):
    for exchange in False, True:
        for share in hamr.from_dlpack, hamr.buffer, lambda x: hamr.from_dlpack(x.tensor.capsule()):
            tensor = Tensor(device=device)
            kind = exchanging()[0] if exchange else Producer
            try:
                share(kind(tensor))
                name = "passed"
            except hamr.Error as error:
                name = type(error).__name__
            found.append((name, tensor.ended <= 1))
pinned = Tensor(device=(CUDA_HOST, 0))
shared = hamr.from_dlpack(Producer(pinned))
print(json.dumps([found, shared.allocator.name, shared.get().tolist()]))
"""


def test_without_a_driver():
    output = run_code(ABSENT, env={"HAMR_CUDA_LIBRARY": "/nonexistent/libcuda.so.1"})
    found, allocator, content = json.loads(output)
    assert found == [["BackendUnavailable", True]] * 24
    assert (allocator, content) == ("malloc", SAMPLE.tolist())


def test_source_protocols():
    """Of each way that host memory is shared, and of what is hamr's own."""
    array = np.arange(4.0)
    for obj, protocol in (
        (array, "buffer"),
        (bytearray(8), "buffer"),
        (producers.interface_of(array), "__array_interface__"),
        (Producer(Tensor(array)), "__dlpack__"),
        (Tensor(array).capsule(), "__dlpack__"),
        (hamr.Buffer(3), "hamr"),
    ):
        shared = hamr.buffer(obj)
        assert shared.source_protocol == protocol
        assert shared[1:].source_protocol == protocol
        assert shared.copy().source_protocol is None
        shared.resize(1000)
        assert shared.source_protocol is None
    assert hamr.from_dlpack(array).source_protocol == "__dlpack__"
    assert hamr.Buffer.from_pointer(array.ctypes.data, 4, owner=array).source_protocol == "pointer"
    assert hamr.Buffer(3).source_protocol is None
