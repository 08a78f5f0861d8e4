"""__cuda_array_interface__ into hamr: what is taken from it and what is refused, without a device.

The C functions that ask a driver are replaced by a record of what they were given.
"""

import gc
import os
import subprocess
import sys
import weakref
from importlib import import_module

import numpy as np
import pytest

import hamr
from hamr import _native
from hamr._protocols import wait_setting

adopt = import_module("hamr._protocols.dispatch")
adopt_known = _native.adopt_known

PLAIN = {"shape": (2, 3), "typestr": "<f8", "data": (4096, False), "version": 3}
ARGUMENTS = [
    "type", "element", "allocator", "device", "stream", "transfer", "pointer", "shape", "strides",
    "readonly", "owner", "producer",
]  # fmt: skip


class OnDevice:
    """An object whose only protocol is __cuda_array_interface__."""

    def __init__(self, **changes):
        fields = {**PLAIN, **changes}
        self.__cuda_array_interface__ = {k: v for k, v in fields.items() if v is not ...}


class Taken:
    """What hamr said of the memory it was to share."""

    def __init__(self):
        self.slow, self.fast = [], []

    def adopt_device(self, cls, *arguments):
        self.slow.append(dict(zip(ARGUMENTS, (cls, *arguments), strict=True)))
        return _native.adopt_buffer(cls, np.ones(3), 0, 1)

    def adopt_known(self, cls, obj, *arguments):
        """C's short way, which leaves all that is on a device to Python."""
        if type(obj) not in adopt.cuda_types:
            return adopt_known(cls, obj, *arguments)
        self.fast.append((obj, *arguments))
        return None


def remember(types):
    """Make these the types that hamr has seen on a device."""
    adopt.cuda_types.clear()
    adopt.cuda_types.update(types)


@pytest.fixture
def taken(monkeypatch):
    made = Taken()
    monkeypatch.setattr(_native, "adopt_device", made.adopt_device)
    monkeypatch.setattr(_native, "adopt_known", made.adopt_known)
    remember(set())
    return made


def share(taken, **changes):
    """What is said of the memory of an object with these entries."""
    obj = OnDevice(**changes)
    remember(set())  # the second of a type goes C's short way
    shared = hamr.buffer(obj)
    assert shared.source_protocol == "__cuda_array_interface__"
    (said,) = taken.slow
    assert said["owner"] is obj
    taken.slow.clear()
    return said


def test_what_is_said_of_the_memory(taken):
    said = share(taken)
    assert said["type"] is hamr.Buffer
    assert {k: said[k] for k in ARGUMENTS[1:10]} == {
        "element": 12, "allocator": -1, "device": -1, "stream": 0, "transfer": 1, "pointer": 4096,
        "shape": (2, 3), "strides": None, "readonly": False,
    }  # fmt: skip
    assert said["producer"] == 0


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, np.int64(3)])
def test_versions(taken, version):
    assert share(taken, version=version)["pointer"] == 4096


def test_optional_entries_may_be_absent_or_none(taken):
    for entry in ("strides", "descr", "mask", "stream"):
        assert share(taken, **{entry: None})["strides"] is None
    assert share(taken, offset=8)["pointer"] == 4096  # it belongs to the other interface


def test_strides_and_numpys_integers(taken):
    said = share(
        taken,
        shape=(np.int64(2), 3),
        strides=(-24, np.int32(16)),
        data=(np.uintp(1 << 20), np.bool_(True)),
    )
    assert (said["shape"], said["strides"], said["pointer"]) == ((2, 3), (-24, 16), 1 << 20)
    assert said["readonly"] is True
    assert {type(n) for n in (*said["shape"], *said["strides"], said["pointer"])} == {int}


@pytest.mark.parametrize(
    "typestr", ["|b1", "|i1", "|u1", "<i4", "<u8", "<f2", "<f4", "<c8", "<c16"]
)
def test_element_types(taken, typestr):
    element = share(taken, typestr=typestr)["element"]
    assert _native.element_table()[element - 1][1] == typestr


def test_empty_arrays_have_no_address(taken):
    for shape in ((0,), (3, 0)):
        assert share(taken, shape=shape, data=(0, False))["pointer"] == 0


@pytest.mark.parametrize("stream", [1, 2, 77, 2**64 - 1, np.uint64(5)])
def test_the_producers_stream(taken, stream):
    assert share(taken, stream=stream)["producer"] == int(stream)


REFUSED = [
    ({"shape": ...}, ValueError, "'shape'.*required"),
    ({"typestr": ...}, ValueError, "'typestr'.*required"),
    ({"data": ...}, ValueError, "'data'.*required"),
    ({"version": ...}, ValueError, "'version'.*required"),
    ({"version": -3}, ValueError, "version is -3: accepted are 0 and later"),
    ({"version": "3"}, TypeError, "version is '3'"),
    ({"version": True}, TypeError, "version is True"),
    ({"stream": 0}, ValueError, "stream is 0: forbidden"),
    ({"stream": -1}, ValueError, "stream is -1"),
    ({"stream": 2**64}, ValueError, f"stream is {2**64}"),
    ({"stream": False}, TypeError, "stream is False"),
    ({"stream": 1.0}, TypeError, r"stream is 1\.0"),
    ({"stream": "1"}, TypeError, "stream is '1'"),
    ({"mask": object()}, ValueError, "mask"),
    ({"shape": [2, 3]}, TypeError, r"shape is \[2, 3\]"),
    ({"shape": 6}, TypeError, "shape is 6"),
    ({"shape": (2.0,)}, TypeError, r"shape is 2\.0"),
    ({"shape": (-1,)}, ValueError, "shape.*-1"),
    ({"shape": (2**62, 4)}, ValueError, "shape"),
    ({"shape": (1,) * 65}, ValueError, "shape.*65"),
    ({"strides": (8,)}, ValueError, "strides"),
    ({"strides": [24, 8]}, TypeError, r"strides is \[24, 8\]"),
    ({"strides": (24, "8")}, TypeError, "strides is '8'"),
    ({"strides": (-4096, 8)}, ValueError, "data.*address space"),
    ({"typestr": ">f8"}, TypeError, "typestr.*>f8"),
    ({"typestr": "<f3"}, TypeError, "typestr.*<f3"),
    ({"typestr": "|O"}, TypeError, "typestr"),
    ({"typestr": b"<f8"}, TypeError, "typestr is b'<f8'"),
    ({"typestr": "<f8\n"}, TypeError, "typestr"),
    ({"data": None}, TypeError, "data is None"),
    ({"data": 4096}, TypeError, "data is 4096"),
    ({"data": [4096, False]}, TypeError, r"data is \[4096"),
    ({"data": bytearray(48)}, TypeError, "data is bytearray"),
    ({"data": (4096,)}, ValueError, r"data is \(4096,\)"),
    ({"data": ("4096", False)}, TypeError, "data.*address"),
    ({"data": (-1, False)}, ValueError, "data.*address"),
    ({"data": (2**64, False)}, ValueError, "data.*address"),
    ({"data": (0, False)}, ValueError, "data"),
    ({"data": (2**64 - 8, False)}, ValueError, "data.*address space"),
]


@pytest.mark.parametrize(
    ("changes", "error", "words"), REFUSED, ids=[str(changes)[:40] for changes, *_ in REFUSED]
)
def test_what_is_refused(monkeypatch, changes, error, words):
    """Both by the slow reader, and by the fast one, which leaves it to that."""
    uses = [
        hamr.buffer,
        lambda x: hamr.Buffer(3).assign(x),
        lambda x: hamr.Buffer(3).__setitem__(..., x),
    ]
    for types in set(), {OnDevice}:
        remember(types)
        for use in uses:
            with pytest.raises(error, match=words) as caught:
                use(OnDevice(**changes))
            assert caught.type is error


@pytest.mark.parametrize("interface", ["x", 5, [("shape", (1,))], object()])
def test_an_interface_that_is_no_dictionary(interface):
    obj = OnDevice()
    obj.__cuda_array_interface__ = interface
    with pytest.raises(TypeError, match=r"__cuda_array_interface__ is .*dict"):
        hamr.buffer(obj)


def test_what_subclasses_override_is_not_asked(taken):
    class Fields(dict):
        def __getitem__(self, key):
            raise AssertionError

        get = __contains__ = __getitem__

    class Pair(tuple):
        def __iter__(self):
            raise AssertionError

    obj = OnDevice()
    obj.__cuda_array_interface__ = Fields(PLAIN, data=Pair((4096, False)), shape=Pair((6,)))
    hamr.buffer(obj)
    assert taken.slow[0]["shape"] == (6,)


# Which protocol is asked.


class Both(OnDevice):
    """Memory that the host reaches, too, as Numba's managed arrays are."""

    __array_interface__ = np.ones(3).__array_interface__


def test_the_cuda_interface_comes_before_the_hosts(taken):
    assert hamr.buffer(Both()).source_protocol == "__cuda_array_interface__"


class Elsewhere:
    """An array of a library that has both kinds, like torch's and JAX's."""

    def __init__(self, array, error=None):
        self.array, self.error = array, error
        self.__array_interface__ = array.__array_interface__

    @property
    def __cuda_array_interface__(self):
        raise self.error


def test_an_array_on_the_host_of_a_library_for_both(taken):
    array = np.arange(3.0)
    obj = Elsewhere(array, AttributeError("not on a device"))
    assert hamr.buffer(obj).get().tolist() == [0, 1, 2]
    adopt.cuda_types.add(Elsewhere)  # as after one that was on a device
    assert hamr.buffer(obj).source_protocol == "__array_interface__"
    shared = hamr.buffer(obj, wait=True)  # by way of Python
    assert shared.source_protocol == "__array_interface__"
    assert taken.fast


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize("error", [RuntimeError, TypeError, ValueError])
def test_an_array_that_refuses_says_why(monkeypatch, error, seen):
    remember({Elsewhere} if seen else set())
    obj = Elsewhere(np.zeros(3), error("use var.detach()"))
    for use in (hamr.buffer, lambda x: hamr.Buffer(3).append(x), hamr.device_of):
        with pytest.raises(TypeError, match=rf"Elsewhere.*{error.__name__}: use var\.detach\(\)"):
            use(obj)


def test_errors_that_are_none_pass():
    with pytest.raises(KeyboardInterrupt):
        hamr.buffer(Elsewhere(np.zeros(3), KeyboardInterrupt()))


def test_a_class_is_no_array():
    with pytest.raises(TypeError, match="type object"):
        hamr.buffer(Elsewhere)


def test_a_type_that_was_on_a_device_goes_the_short_way(taken):
    first, second = OnDevice(), OnDevice()
    hamr.buffer(first)
    assert taken.fast == []
    hamr.buffer(second, 7, "async", wait=False)
    assert taken.fast == [(second, 7, 0, False)]
    assert len(taken.slow) == 2


def test_few_types_are_remembered(taken):
    for i in range(300):
        hamr.buffer(type(f"Array{i}", (OnDevice,), {})())
    assert len(adopt.cuda_types) <= 100


def test_the_stream_and_mode_of_the_buffer(taken):
    hamr.buffer(OnDevice(), stream=hamr.Stream(9), sync="sync")
    assert (taken.slow[0]["stream"], taken.slow[0]["transfer"]) == (9, 2)


# Waiting for the producer.


def test_the_caller_may_leave_the_wait_out(taken):
    for wait, producer in ((None, 5), (True, 5), (False, 0)):
        hamr.buffer(OnDevice(stream=5), wait=wait)
        assert taken.slow.pop()["producer"] == producer


def test_a_stream_that_is_not_waited_for_must_be_right_all_the_same(taken):
    with pytest.raises(ValueError, match="stream is 0"):
        hamr.buffer(OnDevice(stream=0), wait=False)


@pytest.mark.parametrize("wait", [0, 1, "no"])
def test_what_is_no_answer_to_wait(wait):
    for obj in (np.zeros(3), OnDevice()):
        with pytest.raises(TypeError, match=r"wait is .*True, False"):
            hamr.buffer(obj, wait=wait)


@pytest.mark.parametrize(
    ("value", "waits", "said"),
    [("0", False, ""), ("1", True, ""), ("", True, ""), ("no", True, "SYNC is 'no'")],
)
def test_the_environment_may_leave_the_wait_out(value, waits, said):
    code = """
from hamr._protocols.wait_setting import wait_of
print(wait_of(None), wait_of(None), wait_of(True), wait_of(False))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        text=True,
        capture_output=True,
        check=True,
        cwd="/",
        env={**os.environ, wait_setting.SETTING: value},
    )
    assert done.stdout.split() == [str(waits), str(waits), "True", "False"]
    assert said in done.stderr
    assert done.stderr.count("\n") == bool(said)


# Whose memory, and what does not leak.


CUDA = hamr.backends().get("cuda", {"available": False})["available"]


@pytest.mark.parametrize("again", [False, True])
def test_memory_that_no_runtime_knows(monkeypatch, again):
    """Without a driver there is none; a driver knows that there is nothing at the address."""
    remember({OnDevice} if again else set())
    error, words = (ValueError, "0x1000") if CUDA else (hamr.BackendUnavailable, "cuda")
    for use in (hamr.buffer, lambda x: hamr.Buffer(3).append(x)):
        obj = OnDevice()
        alive = weakref.ref(obj)
        with pytest.raises(error, match=words):
            use(obj)
        del obj
        gc.collect()
        assert alive() is None


def test_host_memory_has_no_cuda_interface():
    buffer = hamr.Buffer(3)
    for x in (buffer, buffer.pointer(), buffer[1:]):
        assert not hasattr(x, "__cuda_array_interface__")
        with pytest.raises(AttributeError, match="get_cuda_accessible"):
            x.__cuda_array_interface__  # noqa: B018
