"""Float8: conversions, which are those of ml_dtypes, and content operations."""

import math

import numpy as np
import pytest

import hamr
from tests.support.producers import ADDED, DTYPES, FLOAT8, cast

CODES = np.arange(256, dtype="u1")
SCALE = "float8_e8m0fnu"

#: The largest number, the smallest above zero, what 1 and -1 are, what infinity becomes.
FACTS = {
    "float8_e3m4": (15.5, 2.0**-6, 0x30, 0xB0, math.inf),
    "float8_e4m3": (240, 2.0**-9, 0x38, 0xB8, math.inf),
    "float8_e4m3b11fnuz": (30, 2.0**-13, 0x58, 0xD8, math.nan),
    "float8_e4m3fn": (448, 2.0**-9, 0x38, 0xB8, math.nan),
    "float8_e4m3fnuz": (240, 2.0**-10, 0x40, 0xC0, math.nan),
    "float8_e5m2": (57344, 2.0**-16, 0x3C, 0xBC, math.inf),
    "float8_e5m2fnuz": (57344, 2.0**-17, 0x40, 0xC0, math.nan),
    SCALE: (2.0**127, 2.0**-127, 0x7F, 0xFF, math.nan),
}

needs_ml_dtypes = pytest.mark.skipif(not ADDED, reason="no ml_dtypes here")
added_float8 = pytest.mark.parametrize("name", [n for n in FLOAT8 if n in ADDED])
every_float8 = pytest.mark.parametrize("name", FLOAT8)


def of_codes(name, codes=CODES):
    """A buffer of elements given as their bits."""
    owner = np.ascontiguousarray(codes)
    return hamr.Buffer.from_pointer(owner.ctypes.data, owner.shape, name, owner=owner)


def codes_of(buffer):
    assert buffer.itemsize == 1
    return np.asarray(buffer.get_host_accessible()).view("u1")


def encoded(values, name):
    return codes_of(hamr.Buffer(np.shape(values), name, data=values))


def same(found, expected):
    """Whether arrays have the same elements, of NaNs the same sign."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    if found.dtype.kind == "c":
        return same(found.real, expected.real) and same(found.imag, expected.imag)
    if found.dtype.kind in "biu":
        return np.array_equal(found, expected)
    bits = f"u{found.dtype.itemsize}"
    return np.array_equal(found.view(bits), expected.view(bits))


# Without ml_dtypes.


@every_float8
def test_what_a_type_holds(name):
    largest, smallest, one, minus_one, beyond = FACTS[name]
    values = of_codes(name).astype("f8").get()
    finite = values[np.isfinite(values)]
    assert finite.max() == largest
    assert finite[finite > 0].min() == smallest
    assert encoded([1.0, -1.0], name).tolist() == [one, minus_one]
    made = hamr.Buffer(4, name, data=[math.inf, 1e300, 2 * largest, math.nan])
    np.testing.assert_array_equal(made.astype("f8").get(), [beyond, beyond, beyond, math.nan])
    # A number is what it was, after any other type that holds it.
    for through in ("f4", "f8", "c8", "c16"):
        again = codes_of(of_codes(name).astype(through).astype(name))
        ordinary = np.isfinite(values)
        assert np.array_equal(again[ordinary], CODES[ordinary])


@every_float8
def test_rounds_to_nearest_and_ties_to_even(name):
    values = of_codes(name).astype("f8").get()
    codes = np.flatnonzero(np.isfinite(values) & (values > 0))
    below, above = values[codes[:-1]], values[codes[1:]]
    middle = (below + above) / 2
    even = np.where(codes[:-1] % 2 == 0, codes[:-1], codes[1:])
    if name == SCALE:  # the last bit is the hidden one, always odd
        even = codes[1:]
        below, above, middle, even = below[1:], above[1:], middle[1:], even[1:]
    for sign in (0,) if name == SCALE else (0, 0x80):
        factor = -1 if sign else 1
        ties = encoded(factor * middle, name)
        assert np.array_equal(ties, even | sign)
        down = encoded(factor * (middle - (above - below) / 64), name)
        up = encoded(factor * (middle + (above - below) / 64), name)
        assert np.array_equal(down, (codes[:-1] if name != SCALE else codes[1:-1]) | sign)
        assert np.array_equal(up, (codes[1:] if name != SCALE else codes[2:]) | sign)


@every_float8
def test_zero(name):
    zero, minus_zero = encoded([0.0, -0.0], name)
    if name == SCALE:
        assert (zero, minus_zero) == (0xFF, 0xFF)
    elif name.endswith("fnuz"):
        assert (zero, minus_zero) == (0, 0)
    else:
        assert (zero, minus_zero) == (0, 0x80)


@every_float8
@pytest.mark.parametrize("dtype", [t for t in DTYPES if t != "float32"])
def test_every_code_goes_through_float32(name, dtype):
    source = of_codes(name)
    direct, by_way = source.astype(dtype), source.astype("f4").astype(dtype)
    assert direct.get().tobytes() == by_way.get().tobytes()


@every_float8
@pytest.mark.parametrize("other", FLOAT8)
def test_every_code_to_every_float8(name, other):
    source = of_codes(name)
    found = codes_of(source.astype(other))
    assert np.array_equal(found, CODES) or name != other
    if name != other:
        assert np.array_equal(found, codes_of(source.astype("f4").astype(other)))


def test_float64_is_rounded_twice():
    # More than halfway from 1 to 1.125, by what a float32 drops: then a tie, to even.
    assert hamr.Buffer(1, "float8_e4m3fn", fill=1.0625 + 2**-40).item() == 1.0
    assert hamr.Buffer(1, "float8_e4m3fn", data=np.array([1.0625 + 2**-40])).item() == 1.0


@every_float8
def test_content_operations(name, allocator):
    buffer = hamr.Buffer(2, name, allocator, fill=1.5 if name != SCALE else 2)
    first = buffer[0].item()
    buffer.append(4)
    buffer.append(np.array([0.5, 8], "f4"))
    buffer.append(of_codes(name, np.array([FACTS[name][2]], "u1")))
    buffer.resize(8, 2)
    assert buffer.astype("f4").get().tolist() == [first, first, 4, 0.5, 8, 1, 2, 2]
    buffer.set([1, 2], at=1)
    buffer[0] = buffer[2]
    buffer[-1] = True
    buffer[3:5] = 4.0
    assert buffer.astype("i8").get().tolist() == [2, 1, 2, 4, 4, 1, 2, 1]
    other = hamr.Buffer(2, "int16", data=buffer[3:5])
    assert other.get().tolist() == [4, 4]
    buffer.fill(np.float64(0.25))
    assert set(codes_of(buffer.copy()).tolist()) == set(encoded([0.25], name).tolist())
    buffer.assign(of_codes(name)[::-1])
    assert codes_of(buffer).tolist() == CODES[::-1].tolist()
    buffer.resize((16, 16))
    assert codes_of(buffer.copy()).tolist() == CODES[::-1].reshape(16, 16).tolist()
    moved = buffer[:, ::3].copy("cpp" if allocator.name == "malloc" else "malloc")
    assert codes_of(moved).tolist() == CODES[::-1].reshape(16, 16)[:, ::3].tolist()


@every_float8
def test_items_and_text(name):
    buffer = of_codes(name)
    wide = buffer.astype("f8").get()
    items = [element.item() for element in buffer]
    np.testing.assert_array_equal(items, wide)
    assert all(type(x) is float for x in items)
    # As many digits as a float32 needs, which say exactly what an element is.
    words = str(buffer)[1:-1].replace("\n", "").split(", ")
    np.testing.assert_array_equal(np.array(words, "f4"), wide.astype("f4"))
    one = hamr.Buffer((), name, fill=1)
    assert (bool(one), int(one), float(one), complex(one)) == (True, 1, 1.0, 1 + 0j)


def test_text():
    text = str(hamr.Buffer(6, "float8_e4m3fn", data=[448, 0.1, 1e9, -2, -0.0, 2.0**-9]))
    assert text == "{448, 0.1015625, nan, -2, -0, 0.001953125}"
    assert str(hamr.Buffer(3, "float8_e5m2", data=[1e9, 57344, 0.1])) == "{inf, 57344, 0.09375}"


@every_float8
def test_accepted_and_refused_scalars(name):
    beyond = FACTS[name][4]
    buffer = hamr.Buffer(1, name, fill=True)
    assert buffer.item() == 1
    for large in (1e300, math.inf, 2**64 - 1):
        buffer.fill(large)
        held = name == SCALE and large == 2**64 - 1
        np.testing.assert_array_equal(buffer.item(), 2.0**64 if held else beyond)
    for change in (buffer.fill, buffer.append, lambda x: buffer.resize(5, x)):
        with pytest.raises(TypeError, match=f"does not fit {name}: accepted are real numbers"):
            change(1j)
    with pytest.raises(TypeError, match=name):
        hamr.Buffer(1, name, fill=1 + 0j)
    whole = hamr.Buffer(1, "int8", fill=0)
    with pytest.raises(ValueError, match="nan does not fit int8"):
        whole.fill(hamr.Buffer((), name, fill=math.nan))
    whole.fill(hamr.Buffer((), name, fill=4))
    assert whole.item() == 4


# With ml_dtypes.


@needs_ml_dtypes
@added_float8
@pytest.mark.parametrize("dtype", [*DTYPES, *ADDED])
def test_every_code_to_every_type_as_ml_dtypes(name, dtype):
    source = CODES.view(name)
    if dtype == name:
        expected = source
    elif SCALE in (name, dtype) and dtype in FLOAT8:  # a cast that ml_dtypes lacks
        expected = cast(cast(source, "f4"), dtype)
    else:
        expected = cast(source, dtype)
    found = hamr.buffer(source).astype(dtype).get()
    if np.dtype(dtype).kind in "iu":
        # Beyond its range C says nothing, and hamr does as from float32, see above.
        wide, info = source.astype("f8"), np.iinfo(dtype)
        inside = (wide > info.min - 1.0) & (wide < 2.0 * (info.max // 2 + 1))
        assert inside.any()
        found, expected = found[inside], expected[inside]
    assert same(found, expected)


@needs_ml_dtypes
@added_float8
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_every_half_to_float8_as_ml_dtypes(name, half):
    source = np.arange(1 << 16, dtype="u2").view(half)
    assert np.array_equal(encoded(source, name), cast(source, name).view("u1"))


def near_ties(name):
    """Numbers halfway between two neighbours of a type, the neighbours, and numbers beside."""
    values = CODES.view(name).astype("f8")
    finite = np.unique(values[np.isfinite(values)])
    middle = (finite[1:] + finite[:-1]) / 2
    beyond = finite[-1] + (finite[-1] - finite[-2]) * np.array([0.25, 0.5, 0.75, 1, 2])
    values = np.concatenate([middle, finite, beyond, -beyond])
    return np.concatenate(
        [values * (1 + f * 2.0**-e) for e in (23, 24, 40, 52) for f in (-1, 0, 1)]
    )


@needs_ml_dtypes
@added_float8
@pytest.mark.parametrize("wide", ["float32", "float64"])
def test_floats_to_float8_as_ml_dtypes(name, wide):
    random = np.random.default_rng(FLOAT8.index(name))
    size = np.dtype(wide).itemsize
    high = np.arange(1 << 16, dtype=f"u{size}") << (8 * size - 16)
    rests = [0, 1, 0x7FFF, 0x8000, 0x8001, (1 << (8 * size - 16)) - 1]
    everywhere = np.concatenate([high | np.array(r, high.dtype) for r in rests]).view(wide)
    spread = random.uniform(-2, 2, 200_000) * 2.0 ** random.integers(-20, 20, 200_000)
    for source in (everywhere, cast(near_ties(name), wide), cast(spread, wide)):
        assert np.array_equal(encoded(source, name), cast(source, name).view("u1"))
    for width in ("c8", "c16"):
        source = np.empty(spread.shape, width)
        source.real, source.imag = spread, random.permutation(spread)
        assert np.array_equal(encoded(source, name), cast(source, name).view("u1"))


@needs_ml_dtypes
@added_float8
@pytest.mark.parametrize("whole", [t for t in DTYPES if t.startswith(("int", "uint", "bool"))])
def test_integers_to_float8_as_ml_dtypes(name, whole):
    if whole == "bool":
        source = np.array([False, True])
    else:
        info = np.iinfo(whole)
        random = np.random.default_rng(FLOAT8.index(name))
        source = random.integers(info.min, info.max, 100_000, whole, endpoint=True)
        source >>= random.integers(0, info.bits, source.size).astype(whole)
        ties = near_ties(name)
        inside = ties[(ties >= info.min) & (ties < 2.0 * (info.max // 2 + 1))].astype(whole)
        beside = inside + np.ones((), whole)
        source = np.concatenate([source, inside, beside, np.array([info.min, info.max], whole)])
    assert np.array_equal(encoded(source, name), cast(source, name).view("u1"))
