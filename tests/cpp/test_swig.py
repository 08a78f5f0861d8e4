"""Modules that SWIG wraps, by the interface files beside the headers."""

import gc
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import hamr
from tests.support.extension_modules import CPP, compile_with_swig

SWIG = shutil.which("swig") or shutil.which("swig", path=Path(sys.executable).parent)

pytestmark = pytest.mark.skipif(not SWIG, reason="no swig")


@pytest.fixture(scope="module")
def fields(tmp_path_factory):
    return compile_with_swig(SWIG, CPP / "fields.i", tmp_path_factory.mktemp("swig"))


def test_buffers_are_pythons(fields):
    made = fields.made(3, 1.5)
    assert (type(made), made.allocator) == (hamr.Buffer, hamr.Allocator.malloc)
    assert fields.total(made) == 4.5
    array = np.arange(4.0)
    fields.scale(array, 2)
    assert array.tolist() == [0, 2, 4, 6]
    assert fields.total(array[::2]) == 4
    single = np.ones(2, "f4")
    passed = fields.passed(single)
    np.asarray(passed)[0] = 7
    assert single.tolist() == [7, 1]


def test_pointers_to_buffers(fields):
    array = np.arange(3, dtype="i4")
    for function in (fields.passed_on, fields.read_only, fields.pointed_to):
        assert function(None) is None
        assert np.asarray(function(array)).ctypes.data == array.ctypes.data
    np.asarray(fields.passed_on(array))[0] = 5
    assert array.tolist() == [5, 1, 2]


def test_overloads(fields):
    given = [np.ones(1, "f4"), np.ones(1), "one"]
    assert [fields.kind(each) for each in given] == ["float", "double", "text"]


def test_what_is_refused(fields):
    with pytest.raises(TypeError, match="elements are float32: accepted are float64"):
        fields.total(np.ones(2, "f4"))
    with pytest.raises(TypeError):
        fields.total(None)
    array = np.ones(2)
    array.flags.writeable = False
    assert fields.total(array) == 2
    with pytest.raises(ValueError, match="read-only"):
        fields.scale(array, 2)


def test_handles(fields):
    field = fields.field(4, 5)
    handle = field.read()
    array = np.asarray(handle)
    assert (array.tolist(), array.dtype, len(handle)) == ([5] * 4, "int32", 4)
    assert not array.flags.writeable
    assert not hasattr(handle, "__cuda_array_interface__")
    assert str(handle).startswith("buffer_handle of 4 elements of int32 at 0x")
    written = np.array(field.write(), copy=False)
    written[1] = 6
    assert np.asarray(field.values()).tolist() == [5, 6, 5, 5]
    del field, handle
    gc.collect()
    assert written.tolist() == [5, 6, 5, 5]


def test_handles_of_devices(fields):
    """Zero is no stream in the interface: the default stream has a number of its own."""
    handle = fields.field(2, 1).elsewhere()
    described = handle.__cuda_array_interface__
    address = described["data"][0]
    assert described == {
        "shape": (2,), "typestr": "<i4", "data": (address, True), "strides": None, "version": 3,
        "stream": 1,
    }  # fmt: skip
    with pytest.raises(AttributeError, match="not accessible on the host"):
        handle.get_numpy_array_interface()


def test_an_empty_handle_is_nobodys(fields):
    handle = fields.buffer_handle_float()
    assert len(handle) == 0
    assert not hasattr(handle, "__array_interface__")
    assert {name for name in dir(fields) if name.startswith("buffer_handle_")} == {
        name for name in dir(hamr) if name.startswith("buffer_handle_")
    } | {"buffer_handle_signed_char"}


def test_memory_of_an_object(fields):
    array = np.arange(3, dtype="i4")
    before = sys.getrefcount(array)
    field = fields.field.of(array.ctypes.data, 3, array)
    assert sys.getrefcount(array) > before
    field.add(2)
    assert array.tolist() == [2, 3, 4]
    del field
    gc.collect()
    assert sys.getrefcount(array) == before


def test_upstreams_names(fields):
    """A name that the module gives another goes with its members."""
    for value in hamr.Allocator:
        assert getattr(fields, f"field_allocator_{value.name}") == value
    assert [fields.buffer_transfer_async, fields.buffer_transfer_sync_host] == [0, 1]
    assert fields.field(1, 1).allocator() == fields.field_allocator_malloc
    assert fields.get_allocator_name(fields.field_allocator_cuda) == "cuda"
    assert fields.host_accessible(fields.field_allocator_malloc) == 1
    buffer = fields.buffer_double(fields.field_allocator_malloc, 3, 2.0)
    assert fields.total(buffer) == 6
    assert fields.buffer is hamr.buffer


def test_streams(fields):
    assert not fields.stream()
    assert int(fields.stream(5)) == fields.stream(fields.stream(5)).get_stream() == 5
    assert fields.stream().synchronize() == 0
    assert int(fields.stream_of(fields.made(1, 1))) == 0


IMPORTS = """
%module other
%import "hamr_py.i"
%inline %{
#include <hamr_buffer.h>
hamr::buffer<short> other(hamr::buffer<short> given) { return given; }
%}
"""

READS = """
%module reads
%include "hamr_config.h"
%include "hamr_buffer_handle.h"
%include "hamr_buffer_allocator.h"
%include "hamr_buffer_transfer.h"
%include "hamr_stream.h"
%include "hamr_buffer.h"
%inline %{
#include <hamr_buffer.h>
class HAMR_EXPORT counted {
public:
    size_t count(const hamr::buffer<long> &given) const { return given.size(); }
};
%}
"""


def test_other_ways_to_include(tmp_path):
    """%import, and SWIG reading the headers by their names."""
    (tmp_path / "other.i").write_text(IMPORTS)
    other = compile_with_swig(SWIG, tmp_path / "other.i", tmp_path)
    assert np.asarray(other.other(np.ones(2, "i2"))).tolist() == [1, 1]
    (tmp_path / "reads.i").write_text(READS)
    reads = compile_with_swig(SWIG, tmp_path / "reads.i", tmp_path)
    assert reads.counted().count(np.ones(3, "i8")) == 3
    assert reads.buffer_allocator_openmp == 8


@pytest.fixture(scope="module")
def variants(tmp_path_factory):
    return compile_with_swig(SWIG, CPP / "variants.i", tmp_path_factory.mktemp("swig"))


def test_arrays_of_a_client(variants):
    """As a code for analysis has them: numbers, texts, and arrays of arrays, by one base class."""
    given = np.arange(3.0)
    numbers = variants.double_array.of(given)
    numbers[1] = 7
    assert given.tolist() == [0, 7, 2]
    assert np.asarray(numbers.data()).tolist() == np.asarray(numbers.buffer()).tolist() == [0, 7, 2]
    integers = variants.int_array(2, 5)
    assert numbers.append(integers) == 0
    assert [numbers[i] for i in range(len(numbers))] == [0, 7, 2, 5, 5]
    assert given.tolist() == [0, 7, 2]
    texts = variants.text_array(2, "word")
    assert texts.append(variants.text_array(1, "more")) == 0
    assert (str(texts), texts[2], len(texts)) == ("word, word, more", "more", 3)
    assert (texts.append(numbers), numbers.append(texts)) == (-1, -1)
    arrays = variants.array_array(2, texts)
    arrays[1] = numbers.new_copy(1, 3)
    del texts
    gc.collect()
    assert arrays[0].size() == 3
    assert arrays[1].equals(variants.double_array.of(np.array([7.0, 2.0])))
    with pytest.raises(IndexError, match="has 2 elements"):
        arrays[2]


def test_arrays_of_a_client_outlive_each_other(variants):
    numbers = variants.double_array(4, 1.5, variants.buffer_allocator_cpp)
    view = np.asarray(numbers.data())
    del numbers
    gc.collect()
    assert view.tolist() == [1.5] * 4
