"""What newcomers write wrongly, as other libraries have it, and what the errors say of it.

Each row is a call, the error, and texts that its message must have: the argument, the value, and
what would have been accepted or is to be written.
"""

from __future__ import annotations

import array
import ctypes
from fractions import Fraction

import numpy as np
import pytest

import hamr
from hamr import hetero
from hamr.cli import main
from tests.diagnostics.test_what_to_write import told
from tests.support.processes import run_code

POINTER = ctypes.pointer(ctypes.c_double(1))


class OfRows:
    """What pandas, xarray and others are: no memory to share, but NumPy makes an array of it."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)


class WithoutArrow(OfRows):
    """A table whose Arrow needs a library that is not there."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise ImportError("pyarrow is missing")


class Texts:
    """NumPy's arrays of StringDType, which NumPy before 2.0 does not have."""

    __array_interface__ = {
        "version": 3, "typestr": "StringDType()", "shape": (1,), "data": (8, False)
    }  # fmt: skip


TYPES = [
    (lambda: hamr.zeros(3, "Float32"), TypeError, ["dtype 'Float32'", "write 'float32'"]),
    (lambda: hamr.zeros(3, "fp32"), TypeError, ["dtype 'fp32'", "write 'float32'"]),
    (lambda: hamr.zeros(3, "bf16"), TypeError, ["dtype 'bf16'", "write 'bfloat16'"]),
    (lambda: hamr.zeros(3, "torch.float32"), TypeError, ["torch.float32", "write 'float32'"]),
    (lambda: hamr.zeros(3, "np.uint8"), TypeError, ["np.uint8", "write 'uint8'"]),
    (lambda: hamr.zeros(3, "DOUBLE"), TypeError, ["dtype 'DOUBLE'", "write 'double'"]),
    (lambda: hamr.zeros(3, "uint8_t"), TypeError, ["dtype 'uint8_t'", "write 'uint8'"]),
    (lambda: hamr.buffer(Texts()), TypeError, ["StringDType", "strings are not supported"]),
]

PLACES = [
    (lambda: hamr.zeros(3, device="CPU"), ValueError, ["device is 'CPU'", "write 'cpu'"]),
    (lambda: hamr.zeros(3, device="CUDA:1"), ValueError, ["'CUDA:1'", "write 'cuda:1'"]),
    (lambda: hamr.zeros(3, device="tpu"), ValueError, ["device is 'tpu'", "accepted are -1"]),
    (lambda: hamr.zeros(3, device="hip:0"), ValueError, ["'hip:0'", "allocator='hip'"]),
    (lambda: hamr.zeros(3, device=1.0), TypeError, ["device is 1.0", "accepted are -1"]),
    (lambda: hamr.device("x"), ValueError, ["device is 'x'", "accepted are n from 0 on"]),
    (lambda: hamr.device("cpu"), ValueError, ["device is 'cpu'", "not the host", "'cuda:n'"]),
    (lambda: hamr.zeros(3, allocator="Malloc"), ValueError, ["'Malloc'", "write 'malloc'"]),
    (lambda: hamr.zeros(3, allocator="pinned"), ValueError, ["'pinned'", "is cuda_host"]),
    (lambda: hamr.zeros(3, allocator="managed"), ValueError, ["'managed'", "is cuda_uva"]),
    (lambda: hamr.zeros(3, allocator=True), TypeError, ["allocator is True", "malloc, cuda"]),
    (lambda: hamr.zeros(3, transfer=None), TypeError, ["transfer is None", "async, sync_host"]),
    (lambda: hamr.zeros(3, order="C"), TypeError, ["'order'", "accepted are allocator, device"]),
    (lambda: hamr.zeros(3).on("gpu", "r"), ValueError, ["space is 'gpu'", "write 'cuda'"]),
    (lambda: hamr.zeros(3).on("cpu", "r"), ValueError, ["space is 'cpu'", "write 'host'"]),
    (lambda: hamr.zeros(3).on("gpu"), ValueError, ["space is 'gpu'", "write 'cuda'"]),
    (lambda: hamr.zeros(3).on("host"), TypeError, ["mode is None", "accepted are 'r', 'w'"]),
    (lambda: hamr.zeros(3).on("CUDA", "r"), ValueError, ["space is 'CUDA'", "write 'cuda'"]),
    (lambda: hamr.zeros(3).on(0, "r"), TypeError, ["space is 0", "accepted are host, cuda"]),
    (lambda: hamr.zeros(3).accessible("gpu"), ValueError, ["space is 'gpu'", "write 'cuda'"]),
]

VALUES = [
    (lambda: hamr.full(3, "a"), TypeError, ["fill_value is 'a', a str", "accepted are a number"]),
    (lambda: hamr.full(3, None), TypeError, ["fill_value is None", "accepted is a number"]),
    (lambda: hamr.array(None), TypeError, ["obj is None", "accepted are a number, a list"]),
    (lambda: hamr.array("abc"), TypeError, ["obj is 'abc', a str", "accepted are a number"]),
    (lambda: hamr.array(x for x in "1"), TypeError, ["obj is <generator", "hamr.array(list(x))"]),
    (lambda: hamr.array({1, 2}), TypeError, ["obj is {1, 2}", "hamr.array(list(x))"]),
    (lambda: hamr.array({"a": 1}), TypeError, ["obj is {'a': 1}", "list(x.values())"]),
    (lambda: hamr.array(map(int, "12")), TypeError, ["a map", "hamr.array(list(x))"]),
    (lambda: hamr.array([1, "a"]), TypeError, ["as 'a'", "accepted are numbers"]),
    (lambda: hamr.array([[1], [None]]), TypeError, ["as None", "accepted are numbers"]),
    (lambda: hamr.array(Fraction(1, 2)), TypeError, ["Fraction(1, 2)", "hamr.array(float(x))"]),
    (lambda: hamr.asarray("abc"), TypeError, ["obj is 'abc', a str", "accepted are a number"]),
    (lambda: hamr.zeros_like("abc"), TypeError, ["prototype is 'abc', a str", "accepted are"]),
    (lambda: hamr.buffer(x for x in "1"), TypeError, ["generator object", "hamr.array(list(x))"]),
    (lambda: hamr.buffer(POINTER), TypeError, ["pointers", "from_pointer(x, shape, dtype)"]),
    (lambda: hamr.buffer(ctypes.c_void_p(5)), TypeError, ["Buffer.from_pointer(x, shape, dtype)"]),
    (lambda: hamr.buffer(ctypes.byref(POINTER)), TypeError, ["Buffer.from_pointer(x, shape"]),
    (lambda: hamr.buffer(0x7F0000000000), TypeError, ["from_pointer(0x7f0000000000, shape"]),
    (lambda: hamr.buffer(OfRows()), TypeError, ["OfRows", "hamr.buffer(numpy.asarray(x))"]),
    (lambda: hamr.full_like(np.zeros(3), "a"), TypeError, ["fill_value is 'a', a str"]),
    (lambda: hamr.zeros(3).get(3), TypeError, ["out is a int", "accepted is an array"]),
    (lambda: hamr.buffer(WithoutArrow()), TypeError, ["pyarrow", "hamr.buffer(numpy.asarray(x))"]),
]


OTHERS = [
    (lambda: hamr.set_limit(kept="1G"), ValueError, ["kept is '1G'", "write '1GiB' or '1GB'"]),
    (lambda: hamr.set_limit(bytes=1), ValueError, ["bytes is given alone", "device='cpu'"]),
    (lambda: hamr.record_memory(3), TypeError, ["path is 3", "a str or an os.PathLike"]),
    (lambda: hamr.memory_snapshot().write(3), TypeError, ["path is 3", "a str or an os.PathLike"]),
    (lambda: hamr.set_verbose(1, "x"), TypeError, ["logger is 'x'", "logging.Logger"]),
    (lambda: hamr.open_shared(None), TypeError, ["source is None", "hamr.SharedHandle"]),
    (lambda: hamr.open_shared(b"abc", 3), TypeError, ["descriptors is 3", "a list of int"]),
    (lambda: hamr.open_shared(b"abc", ["x"]), TypeError, ["descriptors is ['x']", "a list of int"]),
    (lambda: hetero.CachingAllocator(limit="1 gig"), ValueError, ["limit is '1 gig'", "'512MiB'"]),
    (lambda: hetero.CachingAllocator(limit=1.5), TypeError, ["limit is 1.5", "a number of bytes"]),
    (lambda: hetero.Pipeline(3), TypeError, ["modules is 3", "a list of modules"]),
    (lambda: hetero.Pipeline("abc"), TypeError, ["modules is 'abc'", "a list of modules"]),
]

#: Names that hamr does not have, and what is to be written instead.
NAMES = {
    "double": "write 'float64'",
    "float": "write 'float64'",
    "bf16": "write 'bfloat16'",
    "from_pointer": "write hamr.Buffer.from_pointer(pointer, shape, dtype)",
    "ndarray": "write hamr.Buffer",
    "tensor": "write hamr.array(x)",
    "asnumpy": "write b.get()",
    "is_available": 'write hamr.backends()["cuda"]["available"]',
    "empty_cache": "write hamr.trim()",
    "set_limits": "there is hamr.set_limit",
    "zero": "there is hamr.zeros",
    "use_in_cupy": "write hamr.allocators.use_in_cupy()",
}


@pytest.mark.parametrize(("call", "error", "texts"), TYPES + PLACES + VALUES + OTHERS)
def test_wrong_words_say_what_is_accepted(call, error, texts):
    with told(error, *texts):
        call()


def test_nothing_is_said_that_fails_as_well():
    class OfTexts(OfRows):
        dtype = np.dtype("U1")

    for wrong in (OfTexts(), array.array("u", "a"), np.array(["a"])):
        with pytest.raises(TypeError) as caught:
            hamr.buffer(wrong)
        assert "hamr.buffer(" not in str(caught.value)
        assert "hamr.array(" not in str(caught.value)


@pytest.mark.parametrize("wrong", [-5, "cuda:-1", 2**40])
def test_what_is_accepted_is_said_once(wrong):
    with pytest.raises(ValueError, match="device is ") as caught:
        hamr.zeros(3, device=wrong)
    assert str(caught.value).count("accepted") == 1


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_not_there_say_what_to_write(name):
    with told(AttributeError, f"has no attribute {name!r}", NAMES[name]):
        getattr(hamr, name)


def test_a_name_that_means_nothing_has_no_hint():
    for name in ("qwertz", "__wrapped__", "_zeros"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
            getattr(hamr, name)


def test_an_absent_runtime_says_what_to_run():
    code = """
import hamr
try:
    hamr.zeros(3, device="cuda")
except hamr.BackendUnavailable as error:
    print(error)
"""
    done = run_code(code, env={"HAMR_CUDA_LIBRARY": "/nowhere/libcuda.so"})
    assert "hamr info shows what this machine has" in done


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (("memory", "xyz"), ["'xyz' is no process", "accepted is its number"]),
        (("store", "top", "--every", "x"), ["'x' is no time", "a number of seconds"]),
        (("store", "top", "--times", "0"), ["'0' is no count", "an int from 1 on"]),
    ],
)
def test_wrong_words_of_the_command_line(arguments, texts, capsys):
    with pytest.raises(SystemExit):
        main(list(arguments))
    told_of = capsys.readouterr().err
    for text in texts:
        assert text in told_of
