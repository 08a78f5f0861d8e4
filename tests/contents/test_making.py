"""hamr.empty, zeros, array and their kin, beside NumPy."""

import math

import numpy as np
import pytest

import hamr
from tests.support import producers
from tests.support.producers import assert_same


def test_shapes_and_types():
    assert (hamr.empty(3).shape, hamr.empty(3).dtype) == ((3,), np.float64)
    assert_same(hamr.zeros((2, 3), "i4"), np.zeros((2, 3), "i4"))
    assert_same(hamr.ones(4, bool), np.ones(4, bool))
    assert_same(hamr.full((2,), 7), np.full(2, 7))
    assert_same(hamr.full((2,), 7.5), np.full(2, 7.5))
    assert_same(hamr.full((2,), True), np.full(2, True))
    assert_same(hamr.full((2,), 7, "f4"), np.full(2, 7, "f4"))
    assert_same(hamr.full(3, np.float32(2)), np.full(3, np.float32(2)))
    assert_same(hamr.full(3, 2**63), np.full(3, 2**63, "u8"))
    with pytest.raises(ValueError, match=r"fill_value has shape \(2,\)"):
        hamr.full(3, [1, 2])
    with pytest.raises(ValueError, match="300 does not fit int8"):
        hamr.full(3, 300, "i1")


@pytest.mark.parametrize(
    "value",
    [
        [1, 2, 3], [1.5, 2], (1, 2), range(4), [[1, 2], [3, 4]], [], [True, False], [1j, 2],
        3, 2.5, True, 1j, 2**63, [2**64 - 1, 0], np.arange(6.0).reshape(2, 3).T, np.float32(3),
        np.zeros((0, 3)), b"abc", bytearray(b"ab"), memoryview(b"xyz"),
    ],
    ids=repr,
)  # fmt: skip
def test_array_copies(value):
    bytelike = isinstance(value, (bytes, bytearray, memoryview))
    expected = np.frombuffer(value, "u1") if bytelike else np.array(value)
    if value == [2**64 - 1, 0] if isinstance(value, list) else False:
        expected = np.array(value, "u8")
    made = hamr.array(value)
    assert_same(made, expected)
    assert made.allocator == hamr.Allocator.malloc
    assert made.is_contiguous
    assert not made.readonly
    assert not np.shares_memory(np.asarray(made), expected)
    assert_same(hamr.asarray(value), expected)


def test_array_of_a_type():
    assert_same(hamr.array([1, 2], "f4"), np.array([1, 2], "f4"))
    assert_same(hamr.array(np.arange(3), "i1"), np.arange(3, dtype="i1"))
    assert_same(hamr.array([2**64, 1], "f8"), np.array([2.0**64, 1]))
    assert hamr.array([1.0], "bfloat16").dtype == "bfloat16"
    for wrong in ([300], [[1, 300]], 300):
        with pytest.raises(ValueError, match="300 does not fit int8"):
            hamr.array(wrong, "i1")
    with pytest.raises(ValueError, match=r"no element type.*dtype"):
        hamr.array([2**64, 1])
    for wrong in (["a"], [None], "abc", None, object()):
        with pytest.raises(TypeError):
            hamr.array(wrong)
    assert math.isinf(hamr.array([math.inf], "f4")[0].item())


def test_asarray_shares_where_it_can():
    array = np.arange(6.0)
    for shared in (hamr.asarray(array), hamr.asarray(array, "f8"), hamr.asarray(array, device=-1)):
        assert shared.ptr == array.__array_interface__["data"][0]
    for copied in (
        hamr.array(array),
        hamr.asarray(array, "f4"),
        hamr.asarray(array, allocator="cpp"),
        hamr.asarray([1.0]),
    ):
        assert copied.ptr != array.__array_interface__["data"][0]
    assert hamr.asarray(array, allocator="cpp").allocator == hamr.Allocator.cpp
    b = hamr.Buffer(3)
    assert hamr.asarray(b).ptr == b.ptr


@pytest.mark.parametrize("make", [hamr.array, hamr.asarray])
def test_places(make):
    assert make([1, 2], allocator="cpp").allocator == hamr.Allocator.cpp
    assert make(np.arange(2), allocator="cpp", transfer="sync").allocator == hamr.Allocator.cpp
    assert make([1, 2], transfer="sync").transfer == hamr.Transfer.sync
    assert hamr.zeros(2, allocator="cpp").allocator == hamr.Allocator.cpp
    with pytest.raises(ValueError, match="device is 0: malloc memory is the host's"):
        make([1, 2], allocator="malloc", device=0)
    with pytest.raises(TypeError, match="nonsense"):
        hamr.zeros(2, nonsense=1)


def test_like():
    model = hamr.Buffer((2, 3), "i2", "cpp", fill=5)
    for made, value in (
        (hamr.empty_like(model), None),
        (hamr.zeros_like(model), 0),
        (hamr.ones_like(model), 1),
        (hamr.full_like(model, 9), 9),
    ):
        assert (made.shape, made.dtype, made.allocator) == ((2, 3), np.int16, hamr.Allocator.cpp)
        assert value is None or made.get().tolist() == [[value] * 3] * 2
    assert hamr.zeros_like(np.zeros((2, 2), "f4"), shape=3, dtype="u1").get().tolist() == [0] * 3
    assert hamr.zeros_like([1, 2]).dtype == np.int64
    assert hamr.empty_like(model, allocator="malloc").allocator == hamr.Allocator.malloc
    assert hamr.empty_like(model.get_host_accessible()).shape == (2, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: hamr.full(3, None),
        lambda: hamr.full(3, None, "f8"),
        lambda: hamr.full_like(hamr.Buffer(3), None),
    ],
)
def test_nothing_is_no_value(make):
    """It would leave the memory as it was found."""
    with pytest.raises(TypeError, match="None"):
        make()


MAKERS = {
    "empty": lambda **more: hamr.empty(2, **more),
    "zeros": lambda **more: hamr.zeros(2, **more),
    "ones": lambda **more: hamr.ones(2, **more),
    "full": lambda **more: hamr.full(2, 3, **more),
    "array": lambda **more: hamr.array([1, 2], **more),
    "asarray": lambda **more: hamr.asarray(hamr.Buffer(2), **more),
    "empty_like": lambda **more: hamr.empty_like(hamr.Buffer(2), **more),
    "zeros_like": lambda **more: hamr.zeros_like(hamr.Buffer(2), **more),
    "ones_like": lambda **more: hamr.ones_like(hamr.Buffer(2), **more),
    "full_like": lambda **more: hamr.full_like(hamr.Buffer(2), 3, **more),
}


@pytest.mark.parametrize("word", ["fill", "data", "order", "Device"])
@pytest.mark.parametrize("name", MAKERS)
def test_other_words_are_refused(name, word):
    """zeros_like(b, fill=3) is not threes, and a misspelt word not left out."""
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected .*'{word}'"):
        MAKERS[name](**{word: 1})
    assert MAKERS[name](allocator="cpp", device=-1).allocator == hamr.Allocator.cpp


def test_what_is_numpys_says_so():
    for name in ("fromfile", "arange", "linspace"):
        with pytest.raises(AttributeError, match=rf"hamr\.buffer\(numpy\.{name}\(\.\.\.\)\)"):
            getattr(hamr, name)


def test_without_numpy():
    code = (
        "import sys; sys.modules['numpy'] = None\nimport hamr\n"
        "print(hamr.array([1, 2]), hamr.array([1.5, 2]), hamr.array(3), hamr.zeros(2), "
        "hamr.full(2, 1j), hamr.asarray(b'ab'), hamr.array([2**64 - 1, 0]), hamr.ones_like([1]))"
    )
    assert producers.run_python(code).stdout == (
        "{1, 2} {1.5, 2} 3 {0, 0} {1j, 1j} {97, 98} {18446744073709551615, 0} {1}\n"
    )


def test_jax_takes_buffers_by_dlpack():
    code = (
        "import sys, types\n"
        "jax, dlpack = types.ModuleType('jax'), types.ModuleType('jax.dlpack')\n"
        "dlpack.from_dlpack = lambda x: ('taken', x)\n"
        "sys.modules.update({'jax': jax, 'jax.dlpack': dlpack})\n"
        "import hamr; b = hamr.zeros(3); print(b.__jax_array__() == ('taken', b), "
        "hasattr(hamr.buffer(b'123'), '__jax_array__'))"
    )
    assert producers.run_python(code).stdout == "True False\n"
    code = "import sys; sys.modules['jax'] = None; import hamr\nprint(hamr.zeros(3).__jax_array__)"
    assert "function" in producers.run_python(code).stdout


def test_torchs_types_are_known_by_name():
    code = (
        "import sys, types\n"
        "class dtype:\n"
        "    def __init__(self, name): self.name = name\n"
        "    def __repr__(self): return 'torch.' + self.name\n"
        "dtype.__module__ = 'torch'\n"
        "import hamr\n"
        "print(*[hamr.zeros(1, dtype(n)).dtype for n in ('float32', 'bfloat16', 'int8', 'bool')])\n"
        "try: hamr.zeros(1, dtype('qint8'))\n"
        "except TypeError as error: print(error)\n"
    )
    lines = producers.run_python(code).stdout.splitlines()
    assert lines[0] == "float32 bfloat16 int8 bool"
    assert "torch.qint8" in lines[1]
