"""__array_interface__ both ways: what hamr takes from it, refuses in it, and says with it."""

import gc
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given

import hamr
from hamr._protocols.array_interface import adopt_interface
from tests.support import producers
from tests.support.producers import DTYPES, Interface, interface_of

LINE = np.arange(6.0)


def interface(**changes):
    return interface_of(LINE.copy(), **changes)


# Into hamr.


@given(producers.arrays())
def test_arrays_are_shared(array):
    shared = hamr.buffer(interface_of(array))
    assert shared.source_protocol == "__array_interface__"
    producers.assert_same(shared, array)
    assert shared.readonly == (not array.flags.writeable)
    if array.size:
        long = [i for i, n in enumerate(array.shape) if n > 1]
        assert [shared.strides[i] for i in long] == [array.strides[i] for i in long]
        assert shared.ptr == array.__array_interface__["data"][0]


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, ...])
def test_versions(version):
    """All, and none at all, which NumPy does not ask for."""
    assert str(hamr.buffer(interface(version=version))) == "{0, 1, 2, 3, 4, 5}"


@pytest.mark.parametrize("typestr", ["<f8", "=f8", "f8"])
def test_byte_orders_of_this_machine(typestr):
    assert hamr.buffer(interface(typestr=typestr)).typestr == "<f8"


def test_optional_entries_may_be_absent_or_none():
    for entry in ("strides", "descr", "mask", "offset"):
        assert hamr.buffer(interface(**{entry: ...})).shape == (6,)
    for entry in ("strides", "descr", "mask"):
        assert hamr.buffer(interface(**{entry: None})).shape == (6,)


def test_offset_does_not_apply_to_an_address():
    assert hamr.buffer(interface(offset=8)).get().tolist() == LINE.tolist()


def test_numpy_integers_are_integers():
    array = np.arange(6.0)
    shared = hamr.buffer(
        interface_of(
            array,
            shape=(np.int64(3),),
            strides=(np.int32(16),),
            data=(np.uintp(array.ctypes.data), np.bool_(True)),
        )
    )
    assert shared.get().tolist() == [0, 2, 4]
    assert shared.readonly


@pytest.mark.parametrize("readonly", [False, True])
def test_data_as_another_buffer(readonly):
    content = np.arange(7.0)
    data = content.tobytes() if readonly else bytearray(content.tobytes())
    shared = hamr.buffer(interface(data=data, offset=8))
    assert shared.get().tolist() == [1, 2, 3, 4, 5, 6]
    assert shared.readonly is readonly
    backwards = hamr.buffer(interface(data=data, offset=40, strides=(-8,)))
    assert backwards.get().tolist() == [5, 4, 3, 2, 1, 0]
    if not readonly:
        shared[0] = 9
        assert np.frombuffer(data)[1] == 9
        with pytest.raises(BufferError):
            data.append(0)


class OwnBuffer(bytearray):
    """A buffer whose array interface says what its bytes are."""

    __array_interface__ = {"shape": (2,), "typestr": "<i4", "version": 3, "offset": 4}


@pytest.mark.parametrize("data", [{}, {"data": None}])
def test_data_none_means_the_objects_own_buffer(data):
    content = OwnBuffer(np.arange(3, dtype="i4").tobytes())
    # hamr.buffer() asks for the buffer protocol first.
    interface = {**content.__array_interface__, **data}
    shared = adopt_interface(hamr.Buffer, content, interface, 0, 1)
    assert shared.get().tolist() == [1, 2]
    shared[0] = 9
    assert np.frombuffer(content, "i4").tolist() == [0, 9, 2]


REFUSED = [
    ({"shape": [6]}, TypeError, r"shape.*\[6\].*tuple"),
    ({"shape": 6}, TypeError, "shape.*6.*tuple"),
    ({"shape": (6.0,)}, TypeError, r"shape.*6\.0"),
    ({"shape": (True,)}, TypeError, "shape.*True"),
    ({"shape": ("6",)}, TypeError, "shape.*'6'"),
    ({"shape": None}, TypeError, "shape.*None"),
    ({"shape": (-1,)}, ValueError, "shape.*-1"),
    ({"shape": (1,) * 65, "strides": None}, ValueError, "65.*64"),
    ({"shape": (2**70,)}, ValueError, f"shape.*{2**70}"),
    ({"shape": (2**40, 2**40)}, ValueError, f"shape.*{2**40}"),
    ({"shape": ...}, ValueError, "'shape'.*required are shape, typestr"),
    ({"typestr": ...}, ValueError, "'typestr'"),
    ({"version": -1}, ValueError, "version -1: must be 0 or more"),
    ({"version": "3"}, TypeError, "version.*'3'"),
    ({"typestr": b"<f8"}, TypeError, "typestr.*b'<f8'"),
    ({"typestr": None}, TypeError, "typestr.*None"),
    ({"typestr": ""}, TypeError, "typestr"),
    ({"typestr": "float8"}, TypeError, "typestr 'float8': no such element type"),
    ({"typestr": "<f8\0"}, TypeError, "typestr"),
    ({"typestr": "nonsense"}, TypeError, "typestr.*'nonsense'"),
    ({"typestr": "<f3"}, TypeError, "typestr.*'<f3'"),
    ({"typestr": "<q8"}, TypeError, "typestr.*'<q8'"),
    ({"typestr": ">f8"}, TypeError, "typestr.*'>f8'.*big-endian.*newbyteorder"),
    ({"typestr": "<f16"}, TypeError, "typestr.*long double"),
    ({"typestr": "<c32"}, TypeError, "typestr.*long double"),
    ({"typestr": "|V8"}, TypeError, "typestr.*structured"),
    ({"typestr": "|V8", "descr": [("a", "<f4"), ("b", "<f4")]}, TypeError, "structured"),
    ({"typestr": "|O8"}, TypeError, "typestr.*objects"),
    ({"typestr": "|S8"}, TypeError, "typestr.*byte strings"),
    ({"typestr": "<U2"}, TypeError, "typestr.*Unicode strings"),
    ({"typestr": "<M8[ns]"}, TypeError, "typestr.*dates"),
    ({"typestr": "<m8[s]"}, TypeError, "typestr.*time differences"),
    ({"typestr": "|t1"}, TypeError, "typestr.*'|t1'"),
    ({"strides": [8]}, TypeError, r"strides.*\[8\].*tuple"),
    ({"strides": (8.0,)}, TypeError, r"strides.*8\.0"),
    ({"strides": (8, 8)}, ValueError, r"strides.*\(8, 8\)"),
    ({"strides": ()}, ValueError, "strides"),
    ({"strides": (2**62,)}, ValueError, f"strides.*{2**62}"),
    ({"strides": (2**70,)}, ValueError, f"strides.*{2**70}"),
    ({"data": (0, False)}, ValueError, "data.*NULL.*48"),
    ({"data": (-1, False)}, ValueError, "data.*-1"),
    ({"data": (2**64, False)}, ValueError, f"data.*{2**64}"),
    ({"data": (2**64 - 8, False)}, ValueError, "data.*address space"),
    ({"data": (64, False), "strides": (-64,)}, ValueError, "data.*address space"),
    ({"data": ("x", False)}, TypeError, "data.*'x'"),
    ({"data": (1.5, False)}, TypeError, r"data.*1\.5"),
    ({"data": (True, False)}, TypeError, "data.*True"),
    ({"data": (64,)}, ValueError, r"data.*\(64,\)"),
    ({"data": (64, False, 1)}, ValueError, "data.*64, False, 1"),
    ({"data": (64, LINE)}, TypeError, "data.*read-only flag"),
    ({"data": [64, False]}, TypeError, "data.*64, False"),
    ({"data": 64}, TypeError, "data.*64"),
    ({"data": "x" * 48}, TypeError, "data.*xxx"),
    ({"data": None}, TypeError, "data.*None"),
    ({"data": ...}, TypeError, "data"),
    ({"data": LINE[::2]}, TypeError, "data.*contiguous"),
    ({"data": bytearray(47)}, ValueError, r"\(6,\).*47"),
    ({"data": bytearray(48), "offset": 1}, ValueError, "offset.*1.*48"),
    ({"data": bytearray(48), "offset": -8}, ValueError, "offset.*-8"),
    ({"data": bytearray(48), "offset": 2**70}, ValueError, f"offset.*{2**70}"),
    ({"data": bytearray(48), "offset": "8"}, TypeError, "offset.*'8'"),
    ({"data": bytearray(48), "strides": (-8,)}, ValueError, "-40"),
    ({"data": bytearray(48), "strides": (16,)}, ValueError, r"strides.*\(16,\)"),
    ({"mask": LINE}, ValueError, "mask"),
    ({"mask": Interface()}, ValueError, "mask"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "error", "words"), REFUSED)
def test_wrong_entries_are_refused_by_name(changes, error, words):
    with pytest.raises(error, match=words) as caught:
        hamr.buffer(interface(**changes))
    assert caught.type is error


@pytest.mark.parametrize("wrong", [3, "x", (), [("shape", (3,))]])
def test_what_is_no_dict_is_refused(wrong):
    producer = Interface()
    producer.__array_interface__ = wrong
    with pytest.raises(TypeError, match=r"__array_interface__.*dict"):
        hamr.buffer(producer)


def test_an_interface_of_none_is_none():
    producer = Interface()
    producer.__array_interface__ = None
    with pytest.raises(TypeError, match="Interface object"):
        hamr.buffer(producer)


def test_classes_are_refused():
    class Producer:
        __array_interface__ = LINE.__array_interface__

    assert hamr.buffer(Producer()).shape == (6,)
    with pytest.raises(TypeError, match="type object"):
        hamr.buffer(Producer)


def test_errors_of_the_producer_pass():
    class Producer:
        @property
        def __array_interface__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        hamr.buffer(Producer())


def test_zero_sizes_need_no_address():
    shared = hamr.buffer(interface(shape=(0, 3), strides=None, data=(0, False)))
    assert shared.shape == (0, 3)
    assert np.asarray(shared).shape == (0, 3)


@pytest.mark.parametrize("stride", [0, -3, 1, 2**40, -(2**63), 2**63 - 1])
def test_strides_of_length_one_mean_nothing(stride):
    array = np.arange(3.0)
    for shape, strides in ((1, 3), (stride, 8)), ((3, 1), (8, stride)):
        shared = hamr.buffer(interface_of(array, shape=shape, strides=strides))
        producers.assert_same(shared, array.reshape(shape))
        assert shared.is_contiguous
        assert shared.copy().strides == array.reshape(shape).strides


def test_read_only_memory_is_not_written():
    array = LINE.copy()
    shared = hamr.buffer(interface_of(array, data=(array.ctypes.data, True)))
    for x in shared, shared[1:], shared.get_host_accessible(), hamr.buffer(shared):
        assert x.readonly
        assert not np.asarray(x).flags.writeable
        assert x.__array_interface__["data"][1] is True
    for change in (
        lambda: shared.fill(1), lambda: shared.set(1, 0), lambda: shared.__setitem__(0, 1),
        lambda: hamr.Buffer(6, fill=1).get(shared),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="read-only"):
            change()
    np.testing.assert_array_equal(array, LINE)
    grown = hamr.buffer(interface_of(array, data=(array.ctypes.data, True)))
    grown.resize(7, 1)  # which takes memory of its own
    assert not grown.readonly


def test_an_array_that_is_handed_over_again_and_again():
    array = np.arange(100.0)
    before = sys.getrefcount(array)
    for _ in range(1000):
        producer = interface_of(array)
        hamr.buffer(hamr.buffer(producer))
    del producer
    assert sys.getrefcount(array) == before


def test_the_producer_and_its_data_live_as_long_as_they_are_shared():
    class Producer(Interface):
        pass

    class Data(bytearray):
        pass

    gc.collect()
    gc.disable()
    try:
        data = Data(48)
        producer = Producer(shape=(6,), typestr="<f8", version=3, data=data)
        alive = weakref.ref(producer), weakref.ref(data)
        view = np.asarray(hamr.buffer(producer).get_host_accessible())[2:]
        del producer, data
        assert all(reference() is not None for reference in alive)
        assert view.tolist() == [0, 0, 0, 0]
        del view
        assert all(reference() is None for reference in alive)
    finally:
        gc.enable()


# Out of hamr.


@pytest.mark.parametrize("share", [lambda b: b, hamr.Buffer.get_host_accessible])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_hamr_says_of_its_memory(dtype, share, allocator):
    shared = share(hamr.Buffer((2, 3), dtype, allocator))
    assert shared.__array_interface__ == {
        "shape": (2, 3),
        "typestr": np.dtype(dtype).str,
        "data": (shared.ptr, False),
        "strides": None,
        "version": 3,
    }


@given(producers.arrays())
def test_what_hamr_says_is_what_numpy_said(array):
    said = hamr.buffer(array).__array_interface__
    expected = array.__array_interface__
    assert {key: said[key] for key in ("shape", "typestr", "version")} == {
        key: expected[key] for key in ("shape", "typestr", "version")
    }
    assert said["data"][1] == expected["data"][1]
    if array.size > 1:
        assert said["data"] == expected["data"]
    back = np.asarray(Interface(**said))
    np.testing.assert_array_equal(back, array, strict=True)


def test_strides_that_are_not_c_order_are_said():
    array = np.zeros((3, 4), "i2").T
    assert hamr.buffer(array).__array_interface__["strides"] == (2, 8)
    assert hamr.buffer(array[::-1]).__array_interface__["strides"] == (-2, 8)


@pytest.mark.parametrize("share", [lambda b: b, hamr.Buffer.get_host_accessible])
def test_absent_protocols_are_absent(share):
    shared = share(hamr.Buffer(3))
    assert hasattr(shared, "__array_interface__")
    assert not hasattr(shared, "__cuda_array_interface__")
    assert not hasattr(shared, "__array_struct__")
    assert not hasattr(shared, "__no_such_protocol__")
    with pytest.raises(AttributeError):
        shared.__cuda_array_interface__  # noqa: B018


@pytest.mark.parametrize("copy", [None, True, False])
def test_array_method_for_numpy(copy):
    raw = hamr.Buffer(2, "bfloat16", fill=1)
    array = raw.__array__(copy=copy)
    assert array.itemsize == 2
    assert (array.__array_interface__["data"][0] == raw.ptr) is not bool(copy)
    plain = hamr.buffer(LINE.copy())
    assert plain.__array__("f4", copy=copy if copy is not False else None).dtype == np.float32
    assert (plain.__array__(copy=copy).__array_interface__["data"][0] == plain.ptr) is not bool(
        copy
    )


def test_array_method_refuses_what_needs_a_copy():
    with pytest.raises(ValueError, match=r"copy.*float32"):
        hamr.buffer(LINE).__array__("f4", copy=False)
