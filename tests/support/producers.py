"""Arrays of every kind, objects that offer one protocol each, and ways to run and compare them."""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hamr
from tests.support.paths import PATHS

ALLOCATORS = [hamr.Allocator.malloc, hamr.Allocator.cpp]

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip

FLOAT8 = [
    "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip

#: What adds bfloat16 and float8 to NumPy, and those that it adds; nothing where it is absent.
ml_dtypes = importlib.util.find_spec("ml_dtypes") and importlib.import_module("ml_dtypes")
ADDED = [name for name in ("bfloat16", *FLOAT8) if hasattr(ml_dtypes, name)]


class Interface:
    """An object whose only protocol is __array_interface__."""

    def __init__(self, **fields: Any) -> None:
        self.__array_interface__ = fields


def interface_of(array: np.ndarray, **changes: Any) -> Interface:
    """The array behind its array interface, with entries changed or, by ..., left out."""
    made = Interface(**{**array.__array_interface__, **changes})
    for key in [key for key, value in changes.items() if value is ...]:
        del made.__array_interface__[key]
    made.array = array
    return made


class Exporter:
    """An object whose only protocol is the buffer protocol (from Python 3.12 on)."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.content)


# Each takes an array in C order and returns one with the same elements, laid out otherwise.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "c": lambda a: a,
    "fortran": lambda a: np.asfortranarray(a) if a.ndim else a,
    "strided": lambda a: _inside(a, lambda n: (2 * n, slice(0, 2 * n, 2))),
    "offset": lambda a: _inside(a, lambda n: (n + 3, slice(2, n + 2))),
    "negative": lambda a: _inside(a, lambda n: (n, slice(None, None, -1))),
    "axes swapped": lambda a: np.ascontiguousarray(a.T).T if a.ndim else a,
}


def _inside(a: np.ndarray, part: Callable[[int], tuple[int, slice]]) -> np.ndarray:
    parts = [part(n) for n in a.shape]
    room = np.zeros([n for n, _ in parts], a.dtype)
    view = room[(..., *(s for _, s in parts))]
    view[...] = a
    return view


shapes = st.one_of(
    st.just(()),
    st.tuples(st.integers(0, 12)),
    hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4),
)
dtypes = st.sampled_from(DTYPES)
#: NumPy's types, and those of the added ones that hold 0 to 100 without infinity or NaN.
counting_dtypes = st.sampled_from(
    [*DTYPES, *(n for n in ADDED if not n.endswith(("e3m4", "b11fnuz", "e8m0fnu")))]
)
layouts = st.sampled_from(sorted(LAYOUTS))
allocators = st.sampled_from(ALLOCATORS)


def elements(dtype: str, tame: bool = False) -> st.SearchStrategy[Any]:
    """Values of a type; tame ones are in the range of every number type."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return st.booleans()
    if tame and kind in "iu":
        return st.integers(0, 127)
    width = 8 * np.dtype(dtype).itemsize // (2 if kind == "c" else 1)
    if tame and kind in "fc":
        return st.integers(0, 127 * 8).map(lambda n: n / 8)
    if kind == "f":
        return st.floats(width=width)
    if kind == "c":
        return st.builds(complex, st.floats(width=width), st.floats(width=width))
    return hnp.from_dtype(np.dtype(dtype))


@st.composite
def arrays(
    draw: st.DrawFn,
    dtype: str | None = None,
    shape: tuple[int, ...] | None = None,
    tame: bool = False,
    broadcast: bool = True,
) -> np.ndarray:
    """Arrays of any type, shape and layout, among them read-only ones that repeat elements."""
    dtype = draw(dtypes) if dtype is None else dtype
    shape = draw(shapes) if shape is None else shape
    if dtype in ADDED:
        size = np.dtype(dtype).itemsize
        a = draw(hnp.arrays(f"u{size}", shape)).view(dtype)  # any bits
    else:
        a = draw(hnp.arrays(dtype, shape, elements=elements(dtype, tame)))
    if broadcast and a.ndim and a.shape[0] and draw(st.integers(0, 5)) == 0:
        return np.broadcast_to(a[:1], a.shape)
    return LAYOUTS[draw(layouts)](a)


def in_memory(array: np.ndarray, allocator: hamr.Allocator) -> hamr.Buffer:
    """A buffer of hamr's own with the array's elements."""
    return hamr.Buffer(array.shape, array.dtype, allocator, data=array)


def cast(array: Any, dtype: Any) -> np.ndarray:
    """NumPy's astype, without its warnings."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(array).astype(dtype)


def assert_same(buffer: hamr.Buffer, expected: np.ndarray) -> None:
    """Type, shape and every element are those of the array; NaNs are alike."""
    expected = np.asarray(expected)
    found = np.asarray(buffer.get_host_accessible())
    assert found.dtype == expected.dtype
    assert buffer.shape == found.shape == expected.shape
    assert buffer.size() == expected.size
    np.testing.assert_array_equal(found, expected, strict=True)


def text_of(array: np.ndarray) -> str:
    """What str() of a buffer is, worked out by NumPy and Python."""
    if array.ndim > 1 and array.size:
        return _rows_of(array, 1)
    if not array.ndim:
        return number_text(array[()])
    words = [number_text(x) for x in array.ravel()]
    lines = [", ".join(words[i : i + 8]) for i in range(0, len(words), 8)]
    return "{" + ", \n".join(lines) + "}"


def _rows_of(array: np.ndarray, depth: int) -> str:
    if array.ndim == 1:
        return "{" + ", ".join(number_text(x) for x in array) + "}"
    feeds = "\n" * (array.ndim - 1) + " " * depth
    return "{" + f",{feeds}".join(_rows_of(row, depth + 1) for row in array) + "}"


def number_text(x: Any) -> str:
    """Python's repr, with the digits that the type needs and without '.0'."""
    if isinstance(x, (bool, np.bool_, int, np.integer)):
        return str(x)
    if isinstance(x, (complex, np.complexfloating)):
        imaginary = number_text(x.imag)
        if x.real == 0 and math.copysign(1, x.real) > 0:
            return f"{imaginary}j"
        sign = "" if imaginary[0] == "-" else "+"
        return f"({number_text(x.real)}{sign}{imaginary}j)"
    if not np.isfinite(x):
        return str(float(x))
    scientific = np.format_float_scientific(x, unique=True, trim="-", exp_digits=2)
    exponent = int(scientific.partition("e")[2])
    if -4 <= exponent < 16:
        return f"{Decimal(scientific):f}"
    return scientific


def run_python(
    code: str, *arguments: str, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in an interpreter of its own, away from the source tree."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        text=True,
        capture_output=True,
        check=False,
        cwd="/",
        env={**os.environ, **PATHS, **environment},
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done
