"""Objects that carry more than elements: a mask, a unit. None of it goes without a word."""

import gc

import ml_dtypes  # noqa: F401
import numpy as np
import pytest

import hamr
from hamr._protocols import meaning


class Measured(np.ndarray):
    """A subclass with a unit, which is an attribute of each object as in unyt."""

    def __array_finalize__(self, source):
        self.units = getattr(source, "units", None)

    @property
    def value(self):
        return self.view(np.ndarray)


class Wrapped:
    """A wrapper that hands on what its array offers, as pint's."""

    def __init__(self, array, units):
        self.magnitude, self._units = array, units

    @property
    def units(self):
        return self._units

    def __getattr__(self, name):
        return getattr(self.magnitude, name)


class Hidden(np.ndarray):
    """A subclass with a mask."""

    mask = None

    @property
    def unmasked(self):
        return self.view(np.ndarray)


def measured(unit="m"):
    array = np.arange(3.0).view(Measured)
    array.units = unit
    return array


def hidden(mask=(True, False, False)):
    array = np.arange(3.0).view(Hidden)
    array.mask = mask
    return array


CARRYING = {
    "a subclass with units": (measured, "a Measured .* its unit m would be lost: pass .value"),
    "a wrapper with units": (
        lambda: Wrapped(np.arange(3.0), "km"),
        "a Wrapped .* its unit km would be lost: pass .magnitude",
    ),
    "a subclass with a mask": (hidden, "a Hidden .* its mask would be lost: pass .unmasked"),
    "a masked array": (
        lambda: np.ma.array([1, 2, 3], mask=[0, 1, 0]),
        r"a MaskedArray .* its mask would be lost: pass .data or .filled\(\)",
    ),
}
TAKERS = {
    "buffer": hamr.buffer,
    "from_dlpack": hamr.from_dlpack,
    "array": hamr.array,
    "data": lambda x: hamr.Buffer(3, data=x),
    "item": lambda x: hamr.zeros(3).__setitem__(..., x),
    "append": lambda x: hamr.zeros(3).append(x),
    "get": lambda x: hamr.zeros(3).get(x),
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize(("make", "words"), CARRYING.values(), ids=CARRYING)
def test_it_is_refused_and_what_to_pass_is_said(make, words, take):
    for _ in range(2):  # no type is remembered
        with pytest.raises(TypeError, match=words):
            take(make())


def test_elements_without_a_format_are_refused_in_the_same_words():
    """What would say how they are had raises for these: NumPy's .data."""
    array = np.zeros(3, "bfloat16").view(Hidden)
    array.mask = True
    with pytest.raises(TypeError, match="its mask would be lost: pass"):
        hamr.buffer(array)


def test_what_is_said_to_be_passed_is_taken():
    assert hamr.buffer(measured().value).shape == (3,)
    assert hamr.buffer(Wrapped(np.arange(3.0), "km").magnitude).shape == (3,)
    assert hamr.buffer(hidden().unmasked).shape == (3,)


def test_objects_of_such_types_that_carry_nothing_are_shared():
    for _ in range(2):
        assert hamr.buffer(measured(None)).shape == (3,)
        assert hamr.buffer(hidden(None)).shape == (3,)
        assert hamr.buffer(Wrapped(np.arange(3.0), None)).shape == (3,)
        with pytest.raises(TypeError, match="unit m"):
            hamr.buffer(measured())


def test_names_that_mean_something_else_are_nothing_of_the_kind():
    """A method, and what an object makes up for any name, as a table does for its columns."""

    class Series(Wrapped):
        units = None

        def mask(self, where):
            raise NotImplementedError

        def __getattr__(self, name):
            return 7 if name == "unit" else getattr(self.magnitude, name)

    assert hamr.buffer(Series(np.arange(3.0), None)).shape == (3,)


def test_a_property_that_raises_is_left_to_the_protocols():
    class Odd(np.ndarray):
        @property
        def unit(self):
            raise RuntimeError("no unit now")

    assert hamr.buffer(np.arange(3.0).view(Odd)).shape == (3,)


def test_types_without_any_are_looked_at_once():
    hamr.from_dlpack(np.arange(3))
    assert id(np.ndarray) in meaning._plain
    assert id(Measured) not in meaning._plain


def test_types_are_forgotten_when_they_end():
    class Local(bytearray):
        pass

    key = id(Local)
    assert hamr.buffer(Local(3)).shape == (3,)
    assert key in meaning._plain
    del Local
    gc.collect()
    assert key not in meaning._plain
