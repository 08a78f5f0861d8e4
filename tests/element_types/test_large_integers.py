"""Python integers beyond 64 bits: elements that are no integers hold them, as NumPy's do."""

import numpy as np
import pytest

import hamr

LARGE = [2**64, 2**70, -(2**63) - 1, -(2**100), 10**300 + 1]
OTHERS = ["f4", "f8", "f2", "c8", "c16", "?"]

WRITES = {
    "fill": lambda b, v: b.fill(v),
    "set": lambda b, v: b.set(v, at=1),
    "setitem": lambda b, v: b.__setitem__(1, v),
    "setitem of all": lambda b, v: b.__setitem__(..., v),
    "append": lambda b, v: b.append(v),
    "assign": lambda b, v: b.assign(v),
    "resize": lambda b, v: b.resize(5, v),
    "resize a shape": lambda b, v: b.resize((2, 3), v),
    "reserve": lambda b, v: b.reserve(100, v),
}


def holds(dtype, value):
    """Whether a type has a finite number for a large one."""
    most = {"f2": 65504, "f4": 3.4e38, "c8": 3.4e38, "bfloat16": 3.38e38}
    return abs(value) <= most.get(dtype, 1.7e308)


@pytest.mark.parametrize("value", LARGE)
@pytest.mark.parametrize("dtype", OTHERS)
@pytest.mark.parametrize("write", WRITES)
def test_they_become_the_nearest_float(write, dtype, value):
    found, expected = (hamr.Buffer(3, dtype, fill=1) for _ in range(2))
    if not holds(dtype, value):
        for number in (value, float(value)):
            with pytest.raises(ValueError, match=f"does not fit {found.dtype}"):
                WRITES[write](found, number)
        assert np.asarray(found).tolist() == [1] * 3
        return
    WRITES[write](found, value)
    WRITES[write](expected, float(value))
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    assert found.shape == expected.shape
    if write == "fill":
        with np.errstate(over="ignore"):
            assert np.asarray(found)[0] == np.full(1, float(value)).astype(dtype)[0]


@pytest.mark.parametrize("value", LARGE)
@pytest.mark.parametrize("dtype", [*OTHERS, "bfloat16", "float8_e5m2"])
def test_in_the_constructors(dtype, value):
    for make in (
        lambda v: hamr.Buffer((2, 2), dtype, "cpp", fill=v),
        lambda v: hamr.Buffer(4, dtype, data=v),
    ):
        if not holds(dtype, value):
            with pytest.raises(ValueError, match="does not fit"):
                make(value)
            continue
        assert str(make(value)) == str(make(float(value)))
    assert str(hamr.buffer_double(1, 2, value)) == str(hamr.buffer_double(1, 2, float(value)))


@pytest.mark.parametrize("value", [2**64, 2**70, -(2**63) - 1])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8"])
@pytest.mark.parametrize("write", WRITES)
def test_integers_do_not_hold_them(write, dtype, value):
    buffer = hamr.Buffer(3, dtype, fill=1)
    with pytest.raises(ValueError, match=str(value)):
        WRITES[write](buffer, value)
    with pytest.raises(ValueError, match=str(value)):
        hamr.Buffer(3, dtype, fill=value)
    assert np.asarray(buffer).tolist() == [1] * 3


@pytest.mark.parametrize("dtype", OTHERS[:-1])
@pytest.mark.parametrize("write", WRITES)
def test_beyond_every_float(write, dtype):
    buffer = hamr.Buffer(3, dtype, fill=1)
    words = f"value is an int of 20001 bits: accepted for {buffer.dtype}"
    with pytest.raises(ValueError, match=words):
        WRITES[write](buffer, -(2**20000))
    with pytest.raises(ValueError, match=words):
        hamr.Buffer(3, dtype, fill=2**20000)
    assert np.asarray(buffer).tolist() == [1] * 3
    assert hamr.Buffer(1, "?", fill=2**20000).item() is True


@pytest.mark.parametrize(
    "value",
    [2**64, -(2**63) - 1, 10**400, 10**5000],
    ids=["2**64", "-2**63-1", "10**400", "10**5000"],
)
@pytest.mark.parametrize("dtype", ["i1", "u8"])
def test_out_of_range_of_integers(dtype, value):
    """10**5000 is one that Python itself does not print."""
    b = hamr.Buffer(2, dtype, fill=1)
    for write in (
        lambda: b.fill(value),
        lambda: b.append(value),
        lambda: b.__setitem__(0, value),
        lambda: b.__setitem__(..., [value, 1]),
        lambda: hamr.Buffer(2, dtype, fill=value),
        lambda: hamr.Buffer(2, dtype, data=[1, value]),
        lambda: hamr.full(2, value, dtype),
    ):
        with pytest.raises(OverflowError, match="value") as caught:
            write()
        assert caught.type is hamr.OutOfRange
    assert str(b) == "{1, 1}"
