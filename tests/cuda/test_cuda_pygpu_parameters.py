"""Plain numbers for parameters whose type PTX says: converted, or refused with a word for which."""

import math
from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr import pygpu
from tests.cuda import driver

PTX = Path(__file__).with_name("user_kernels.ptx")
N = 1000
GRID = {"grid": 8, "block": 128}

#: The same kernel with a float of 8 bytes, which is never launched.
DOUBLE = PTX.read_text().replace(".param .f32 value", ".param .f64 value")


@pytest.fixture
def module():
    return pygpu.Module(PTX)


def filled(module, value, count=N):
    y = hamr.Buffer(count, "f4", "cuda", fill=-1)
    module.function("fill")(y, count, value, **GRID)
    return np.asarray(y.get_host_accessible())


@pytest.mark.parametrize(
    "value", [0, 1, -1, 2, 3, 2**24, -(2**24), 2**24 + 2, 3 << 40, 2**63, 2**64 - 2**40, -(2**63)]
)
def test_an_int_for_a_float_is_that_number(module, value):
    assert (filled(module, value) == float(value)).all()


@pytest.mark.parametrize("value", [2**24 + 1, -(2**24) - 1, 2**63 - 1, 2**64, -(2**63) - 1, 2**200])
def test_an_int_that_a_float_does_not_hold_is_refused(module, value):
    words = "argument 2 of fill is an int that the parameter, a float of 4 bytes, does not hold"
    with pytest.raises(OverflowError, match=words):
        filled(module, value)


@pytest.mark.parametrize("value", [0.5, -0.0, math.inf, 0.1])
def test_floats_are_rounded_as_everywhere(module, value):
    got = filled(module, value)
    assert (got == np.float32(value)).all()
    assert (np.signbit(got) == np.signbit(value)).all()


def test_a_float_for_an_integer_is_refused(module):
    x, y = (hamr.Buffer(N, "f4", "cuda", fill=1) for _ in range(2))
    saxpy = module.function("saxpy")
    for i, arguments in {0: (2.0, 2.0, x, y), 2: (N, 2.0, 0.0, y)}.items():
        size = 4 if i == 0 else 8
        words = rf"argument {i} of saxpy is a float, and the parameter is an integer of {size} byte"
        with pytest.raises(TypeError, match=words):
            saxpy(*arguments, **GRID)
    assert (np.asarray(y.get_host_accessible()) == 1).all()


def test_bits_are_what_numpys_scalars_are_for(module):
    """What a plain int was taken for, somebody may want."""
    one = int(np.float32(1).view("i4"))
    assert (filled(module, np.int32(one)) == 1).all()


def test_short_integers(module):
    places = module.function("places")
    room = hamr.Buffer(1, "f4", "cuda", fill=0)
    for value in (256, -129):
        with pytest.raises(OverflowError, match="argument 1 of places is an int beyond what the p"):
            places(room, value, grid=1, block=1)
    with pytest.raises(TypeError, match="argument 1 of places is a float"):
        places(room, 1.0, grid=1, block=1)
    for value in (255, -128, np.uint8(7), True):
        places(room, value, grid=1, block=1)


@pytest.mark.parametrize("kind", ["own", "foreign", "In"])
def test_an_array_for_a_float_of_8_bytes_is_refused(kind):
    fill = pygpu.Module(DOUBLE).function("fill")
    y = hamr.Buffer(N, "f8", "cuda", fill=0)
    other = {
        "own": y,
        "foreign": driver.Array(np.zeros(N)),
        "In": pygpu.In(np.zeros(N)),
    }[kind]
    with pytest.raises(TypeError, match="argument 2 of fill is an array, and the parameter is a"):
        fill(y, N, other, **GRID)


def test_an_int_for_a_double():
    fill = pygpu.Module(DOUBLE).function("fill")
    y = hamr.Buffer(N, "f8", "cuda", fill=0)
    assert fill.attributes()["types"] == ("u64", "u64", "f64")
    with pytest.raises(OverflowError, match="a float of 8 bytes, does not hold exactly"):
        fill(y, N, 2**53 + 1, **GRID)


def test_of_a_binary_only_the_size_is_known(module):
    saxpy = pygpu.Function(module._code, "saxpy")
    if saxpy.attributes()["parameters"] is None:
        pytest.skip("the driver does not say how large parameters are")
    x, y = (hamr.Buffer(N, "f4", "cuda", fill=1) for _ in range(2))
    saxpy(N, int(np.float32(2).view("i4")), x, y, **GRID)
    assert (np.asarray(y.get_host_accessible()) == 3).all()


def test_ptx_serves_drivers_that_say_nothing(emulator):
    emulator.fail("cuFuncGetParamInfo", 0, 801)
    module = pygpu.Module(PTX)
    assert module.function("fill").attributes()["parameters"] is None
    assert (filled(module, 2) == 2).all()
    y = hamr.Buffer(N, "f4", "cuda", fill=0)
    fill = module.function("fill")
    with pytest.raises(TypeError, match="number of arguments of fill is 2: accepted is 3"):
        fill(y, N, **GRID)
    with pytest.raises(TypeError, match="argument 1 of fill is of 4 bytes: accepted is one of 8"):
        fill(y, np.int32(N), 1.0, **GRID)
    with pytest.raises(TypeError, match="argument 2 of fill is of 8 bytes: accepted is one of 4"):
        fill(y, N, y, **GRID)
    emulator.stop_failing()
