"""__array_interface__ from producers that are wrong, hostile, or merely odd."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hamr
from tests.support.processes import run_script, scaled

MEMORY = np.arange(64, dtype="u1")
KEYS = ("shape", "typestr", "strides", "data", "offset", "version", "mask", "__array_interface__")


def export(interface):
    class Exporter:
        __array_interface__ = interface

    return Exporter()


def valid(**changes):
    return {
        "shape": (4,),
        "typestr": "|u1",
        "data": (MEMORY.ctypes.data, False),
        "version": 3,
        **changes,
    }


def test_a_million_dictionaries():
    """In a process of its own: a crash is a failure. The script says what is compared with what."""
    print(run_script("fuzz_interface", scaled(1_000_000, 20_000), 20, timeout=400))


class Liar(int):
    """An int that says it is 1, however asked, but for its value."""

    def __str__(self):
        return "1"

    def __repr__(self):
        return "1"

    def __format__(self, spec):
        return "1"

    def __index__(self):
        return 1

    def __int__(self):
        return 1

    def compare(self, other):
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = compare
    __hash__ = int.__hash__


class Word(str):
    """A str whose methods say what is wanted."""

    def isascii(self):
        return True

    def isprintable(self):
        return True

    def __str__(self):
        return "|u1"


class Longer(tuple):
    """A tuple that says it is longer."""

    def __len__(self):
        return 2

    def __iter__(self):
        while True:
            yield 1


class Other(dict):
    """A dict whose lookups differ from its contents."""

    def __getitem__(self, key):
        return valid(shape=(10**9,))[key]

    def get(self, key, default=None):
        raise OSError(key)


class Index:
    def __init__(self, answer):
        self.answer = answer

    def __index__(self):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no")

    def __bool__(self):
        raise RuntimeError("no")


def test_a_lying_int_is_taken_at_its_value():
    b = hamr.buffer(export(valid(shape=(Liar(4),), strides=(Liar(2),))))
    assert (b.shape, b.strides) == ((4,), (2,))
    assert np.asarray(b).tolist() == [0, 2, 4, 6]
    with pytest.raises(ValueError, match=r"shape|strides|offset"):
        hamr.buffer(export(valid(data=bytes(4), shape=(Liar(10**6),))))
    with pytest.raises(ValueError, match="offset"):
        hamr.buffer(export(valid(data=bytes(4), offset=Liar(2**40))))
    with pytest.raises(ValueError, match="shape"):
        hamr.buffer(export(valid(shape=(Liar(2**64),))))
    with pytest.raises(IndexError):
        hamr.Buffer(3)[Liar(10**6)]


def test_a_lying_str_is_taken_at_its_value():
    with pytest.raises(TypeError, match="typestr"):
        hamr.buffer(export(valid(typestr=Word("<f\0"))))
    assert hamr.buffer(export(valid(typestr=Word("<u2")))).itemsize == 2


def test_lying_containers_are_taken_at_their_contents():
    b = hamr.buffer(export(Other(valid(shape=Longer((2, 3)), strides=Longer((1, 2))))))
    assert (b.shape, b.strides) == ((2, 3), (1, 2))
    with pytest.raises(ValueError, match="data"):
        hamr.buffer(export(valid(data=Longer((MEMORY.ctypes.data,)))))


@pytest.mark.parametrize("key", ["shape", "strides", "typestr", "data", "offset", "version"])
@pytest.mark.parametrize(
    "nasty",
    [
        Unspeakable(),
        Index("4"),
        Index(4.0),
        Index(OSError()),
        Index(KeyboardInterrupt),
        Index(None),
        True,
        float("nan"),
    ],
    ids=["unspeakable", "str", "float", "raises", "class", "none", "bool", "nan"],
)
def test_nasty_values_are_named(key, nasty):
    """Also inside of tuples, and as the read-only flag."""
    data = MEMORY.ctypes.data
    values = {"shape": (nasty,), "strides": (nasty,), "data": (nasty, False)}
    with pytest.raises((TypeError, ValueError), match=key):
        hamr.buffer(export(valid(**{key: nasty})))
    with pytest.raises((TypeError, ValueError), match=key):
        hamr.buffer(export(valid(**{key: values.get(key, nasty)})))
    if isinstance(nasty, Unspeakable):
        with pytest.raises(TypeError, match="data"):
            hamr.buffer(export(valid(data=(data, nasty))))


def test_a_property_that_raises():
    class Raising:
        @property
        def __array_interface__(self):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        hamr.buffer(Raising())

    class Absent:
        @property
        def __array_interface__(self):
            raise AttributeError("mine")

    with pytest.raises(TypeError, match="Absent"):
        hamr.buffer(Absent())


def test_a_dictionary_that_changes_while_it_is_read():
    class Changing:
        def __index__(self):
            interface.clear()
            return 2

    interface = valid(shape=(Changing(), Changing()))
    assert hamr.buffer(export(interface)).shape == (2, 2)


integers = (
    st.integers() | st.integers(-4, 70) | st.sampled_from([2**31, 2**62, 2**63, 2**64, -(2**63)])
)
odd = st.one_of(
    integers,
    integers.map(Liar),
    integers.map(Index),
    st.none(),
    st.booleans(),
    st.floats(),
    st.text(),
    st.binary(max_size=80),
    st.sampled_from(["\ud800", "<f8\0", "<\udc80", Index("x"), object, "|u1", "<f8", Word("<i4")]),
)
nested = st.recursive(
    odd,
    lambda inner: st.lists(inner, max_size=5).map(tuple) | st.lists(inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=scaled(1500, 100))
@given(
    st.dictionaries(st.sampled_from(KEYS), nested, max_size=4),
    st.sets(st.sampled_from(KEYS), max_size=1),
)
def test_anything(changes, missing):
    """Refused with the key named, or an array within the memory that its data is."""
    interface = valid(data=MEMORY.tobytes(), **{k: v for k, v in changes.items() if k != "data"})
    data = changes.get("data")
    if not (isinstance(data, tuple) and len(data) == 2):  # any address is to be believed
        interface.update({"data": data} if "data" in changes else {})
    for key in missing:
        interface.pop(key, None)
    text, b = "", None
    try:
        b = hamr.buffer(export(interface))
    except (TypeError, ValueError) as error:
        text = str(error)
    if b is None:
        assert any(key in text for key in KEYS), text
    else:
        assert b.nbytes == 0 or len(np.asarray(b).tobytes()) == b.nbytes
