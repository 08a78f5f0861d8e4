"""DLPack's C exchange API: a table of functions on the type, hamr's and torch's."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import hamr
from tests.gpu.test_gpu_lifetime import repeat
from tests.support.processes import scaled

_API, _TENSOR = b"dlpack_exchange_api", b"dltensor_versioned"

_python = ctypes.PyDLL(None)
_pointer = _python.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_capsule = _python.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_forget = _python.Py_DecRef
_forget.restype, _forget.argtypes = None, [ctypes.py_object]

_OUT = ctypes.POINTER(ctypes.c_void_p)
_FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _OUT)
_TO_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _OUT)
_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, _OUT)


class _Functions(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("describe", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


class Table:
    """The functions that a type offers to callers in C."""

    def __init__(self, kind: type) -> None:
        self.capsule = kind.__dlpack_c_exchange_api__  # type: ignore[attr-defined]
        found = _Functions.from_address(_pointer(self.capsule, _API))
        assert found.major == 1
        self._from = _FROM_OBJECT(found.from_object)
        self._to = _TO_OBJECT(found.to_object)
        self._stream = _STREAM(found.stream)

    def tensor_of(self, obj: Any) -> int:
        """The address of a tensor, which the caller owns."""
        out = ctypes.c_void_p()
        assert self._from(obj, ctypes.byref(out)) == 0
        assert out.value is not None
        return out.value

    def object_of(self, tensor: int) -> Any:
        """An object that takes a tensor over."""
        out = ctypes.c_void_p()
        assert self._to(tensor, ctypes.byref(out)) == 0
        found = ctypes.cast(out, ctypes.py_object).value
        _forget(found)
        return found

    def stream(self, device: int) -> int:
        out = ctypes.c_void_p()
        assert self._stream(2, device, ctypes.byref(out)) == 0
        return out.value or 0


def in_a_capsule(tensor: int) -> Any:
    return _capsule(tensor, _TENSOR, None)


@pytest.fixture
def own(gpu_count):
    return Table(hamr.Buffer)


@pytest.fixture
def torchs(torch_library):
    if not hasattr(torch_library.module.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this torch has no C exchange API")
    return Table(torch_library.module.Tensor)


def buffer(values):
    made = hamr.Buffer(values.shape, values.dtype, "cuda", data=values)
    made.synchronize()
    return made


VALUES = np.arange(6, dtype="f4").reshape(2, 3)


def test_a_tensor_of_hamrs_table_is_torchs(own, torch_library):
    b = buffer(VALUES)
    t = torch_library.module.from_dlpack(in_a_capsule(own.tensor_of(b)))
    assert t.data_ptr() == b.ptr
    del b
    np.testing.assert_array_equal(torch_library.values(t), VALUES)


def test_a_tensor_of_torchs_table_is_hamrs(torchs, torch_library):
    t = torch_library.make(VALUES)
    torch_library.synchronize()
    b = hamr.from_dlpack(in_a_capsule(torchs.tensor_of(t)))
    assert b.ptr == t.data_ptr()
    del t
    np.testing.assert_array_equal(np.array(b.get_host_accessible()), VALUES)


def test_from_table_to_table(own, torchs, torch_library):
    t = torch_library.make(VALUES)
    torch_library.synchronize()
    b = own.object_of(torchs.tensor_of(t))
    assert type(b) is hamr.Buffer
    assert b.ptr == t.data_ptr()
    np.testing.assert_array_equal(np.array(b.get_host_accessible()), VALUES)
    back = torchs.object_of(own.tensor_of(b))
    assert back.data_ptr() == t.data_ptr()
    del t, b
    np.testing.assert_array_equal(torch_library.values(back), VALUES)


def test_the_stream_of_hamrs_work_is_the_default(own, torchs, torch_library):
    assert own.stream(0) == 0
    side = torch_library.module.cuda.Stream()
    with torch_library.module.cuda.stream(side):
        assert torchs.stream(0) == side.cuda_stream


def test_tables_leak_nothing(own, torchs, torch_library):
    b, t = buffer(VALUES), torch_library.make(VALUES)

    def hand_over():
        torchs.object_of(own.tensor_of(b))
        own.object_of(torchs.tensor_of(t))

    repeat(torch_library, scaled(20_000), hand_over)
