"""Numbers in lists are checked as single ones are: what a type cannot hold is refused."""

import math

import numpy as np
import pytest

import hamr
from tests.support import producers

WRITES = {
    "setitem": lambda b, v: b.__setitem__(..., v),
    "set": lambda b, v: b.set(v),
    "append": lambda b, v: b.append(v),
    "assign": lambda b, v: b.assign(v),
    "fill": lambda b, v: b.fill(v[:1]),
    "resize": lambda b, v: b.resize(9, v[:1]),
    "data": lambda b, v: hamr.Buffer(len(v), b.dtype, data=v),
}
every_write = pytest.mark.parametrize("write", WRITES)

REFUSED = [
    ("i1", [300, 2], "300 does not fit int8: accepted are -128 … 127"),
    ("i1", [-129, 2], "-129 does not fit int8"),
    ("i1", (300, 2), "300 does not fit int8"),
    ("i1", range(200, 202), "20[01] does not fit int8"),
    ("u1", [-1, 2], "-1 does not fit uint8"),
    ("u4", [2**32, 2], "4294967296 does not fit uint32"),
    ("i8", [2**63, 2], "9223372036854775808 does not fit int64"),
    ("u8", [-1, 2], "-1 does not fit uint64"),
    ("i8", [2**64, 2], str(2**64)),
    ("u8", [2**70, 2], str(2**70)),
    ("i2", [math.nan, 2], "nan does not fit int16"),
    ("i2", [math.inf, 2], "inf does not fit int16"),
    ("i2", [1e9, 2], "1000000000 does not fit int16"),
    ("f4", [1e300, 2], r"1e\+300 does not fit float32"),
    ("f4", [-1e39, 2], r"-1e\+39 does not fit float32"),
    ("f2", [65520.0, 2], "65520 does not fit float16"),
    ("f2", [70000, 2], "70000 does not fit float16"),
    ("bfloat16", [1e39, 2], r"1e\+39 does not fit bfloat16"),
    ("c8", [1e300, 2], r"1e\+300 does not fit complex64"),
    ("c8", [1e300j, 2], "does not fit complex64"),
]


@every_write
@pytest.mark.parametrize(("dtype", "values", "words"), REFUSED, ids=repr)
def test_refused(write, dtype, values, words):
    buffer = hamr.Buffer(2, dtype, fill=1)
    with pytest.raises(hamr.OutOfRange, match=words):
        WRITES[write](buffer, values)
    assert str(buffer) in ("{1, 1}", "{(1+0j), (1+0j)}")


@pytest.mark.parametrize(("dtype", "values", "words"), REFUSED, ids=repr)
def test_one_number_is_refused_alike(dtype, values, words):
    buffer = hamr.Buffer(2, dtype, fill=1)
    first = values[0]
    for write in (
        lambda: buffer.fill(first),
        lambda: buffer.append(first),
        lambda: buffer.__setitem__(0, first),
        lambda: hamr.Buffer(2, dtype, fill=first),
    ):
        with pytest.raises(hamr.OutOfRange, match=words):
            write()
    assert str(buffer) in ("{1, 1}", "{(1+0j), (1+0j)}")


COMPLEX = [
    ("f8", [1 + 2j, 2], r"value \(1\+2j\) does not fit float64: accepted are real numbers"),
    ("f8", [0j, 2], "value 0j does not fit float64"),
    ("i4", (1j, 7), "value 1j does not fit int32"),
    ("f4", [np.complex64(1j), 2], "value 1j does not fit float32"),
    ("bfloat16", [1j, 3], "value 1j does not fit bfloat16"),
    ("f2", [1j, math.nan], "value 1j does not fit float16"),
    ("u1", [1j, 2**70], "value 1j does not fit uint8"),
]


@every_write
@pytest.mark.parametrize(("dtype", "values", "words"), COMPLEX, ids=repr)
def test_complex_numbers_are_no_real_ones(write, dtype, values, words):
    """As for a single number, and in NumPy. The imaginary part is not lost in silence."""
    buffer = hamr.Buffer(2, dtype, fill=1)
    with pytest.raises(TypeError, match=words):
        WRITES[write](buffer, values)
    assert str(buffer) == "{1, 1}"
    with pytest.raises(TypeError, match=words):
        hamr.array([values[::-1], values], dtype=dtype)


def test_complex_numbers_stand_beside_large_integers():
    assert list(hamr.array([2**70, 1j]).get()) == [complex(2**70), 1j]
    with pytest.raises(hamr.OutOfRange, match="no element type holds all the list's numbers"):
        hamr.array([10**400, 1j])


def test_complex_numbers_in_lists_are_truths():
    assert str(hamr.array([1j, 0j], dtype="?")) == "{True, False}"


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("i1", [127, -128]), ("u1", [255, 0]), ("i8", [-(2**63), 2**63 - 1]),
        ("u8", [2**64 - 1, 0]), ("i1", [127.9, -128.9]), ("f4", [math.inf, -math.inf]),
        ("f4", [3.4028235e38, math.nan]), ("f2", [65519.0, 65504]), ("?", [300, 0]),
        ("c8", [math.inf, 3.4e38]), ("f8", [1e300, 2**64]), ("f4", [2**100, 1]), ("i1", []),
        ("f4", [2**64, 1.5]), ("?", [2**70, 0]),
    ],
)  # fmt: skip
def test_held(dtype, values):
    buffer = hamr.Buffer(len(values), dtype, data=values)
    with np.errstate(all="ignore"):
        # One at a time: NumPy makes floats of integers on both sides of 2**63.
        expected = [np.array(float(v) if v >= 2**64 else v).astype(dtype) for v in values]
    np.testing.assert_array_equal(np.asarray(buffer), np.array(expected, dtype))


def test_infinity_hides_no_other_number():
    for values in ([math.inf, 1e300], [math.nan, -1e300], [[1, 2], [1e300, math.inf]]):
        with pytest.raises(ValueError, match="does not fit float32"):
            hamr.Buffer(np.shape(values), "f4", data=values)


EXACT = [
    ("i8", [2**53 + 1, 0.5], [2**53 + 1, 0]),
    ("i8", [2**63 - 1, -1.5, -(2**63)], [2**63 - 1, -1, -(2**63)]),
    ("u8", [2**64 - 1, 0.5], [2**64 - 1, 0]),
    ("u8", [2**63 + 1, 1e15], [2**63 + 1, 10**15]),
]


@pytest.mark.parametrize(("dtype", "values", "expected"), EXACT, ids=repr)
def test_a_fraction_in_the_list_rounds_no_other_number(dtype, values, expected):
    """To float64, which is NumPy's type of the list."""
    b = hamr.Buffer(len(values), dtype, data=values)
    assert [int(element) for element in b] == expected
    nested = hamr.Buffer((2, len(values)), dtype, data=[values, values])
    assert [int(element) for element in nested[1]] == expected
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        f"import hamr\nb = hamr.Buffer({len(values)}, {dtype!r}, data={values})\n"
        "print([int(element) for element in b])"
    )
    assert producers.run_python(code).stdout.strip() == str(expected)
    with pytest.raises(ValueError, match="18446744073709551616 does not fit"):
        b[:2] = [0.5, 2**64]


def test_arrays_are_cast_as_before():
    assert hamr.Buffer(2, "i1", data=np.array([300, 2])).get().tolist() == [44, 2]
    assert math.isinf(hamr.Buffer(1, "f4", data=np.array([1e300]))[0].item())


def test_float8_keeps_the_rule_of_ml_dtypes():
    assert math.isinf(hamr.Buffer(1, "float8_e5m2", data=[1e300])[0].item())


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("i1", "[300, 2]"),
        ("i1", "[2**70, 1]"),
        ("i1", "(-129,)"),
        ("i1", "range(300)"),
        ("i1", "[1.0, float('nan')]"),
        ("i1", "[1.0, float('inf')]"),
        ("f4", "[float('inf'), 1e300]"),
        ("f4", "[float('nan'), -1e300]"),
    ],
)
def test_without_numpy(dtype, values):
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        f"import hamr\nb = hamr.Buffer(0, {dtype!r})\n"
        f"try: b.append({values})\nexcept ValueError as e: print(e, b)"
    )
    assert "{}" in producers.run_python(code).stdout
