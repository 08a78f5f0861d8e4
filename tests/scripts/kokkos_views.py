"""Kokkos views of hamr's memory, in the library that is named: a line of JSON with what came out.

Its runtime starts threads and ends with the process, which is why it has one of its own.
"""

from __future__ import annotations

import ctypes
import json
import sys

import numpy as np

import hamr
from tests.support import space_rows

TYPES = ("int8", "uint16", "int32", "int64", "float32", "float64", "complex128")
LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.T,
    "every other row": lambda x: x[::2],
    "every third column": lambda x: x[:, 1::3],
    "both, turned": lambda x: x[1::2, ::2].T,
    "one row": lambda x: x[3:4],
    "nothing": lambda x: x[:0],
}
HOST = ("malloc", "cpp", "shared")


def view(function, x):
    """Call a function of the library's with a hamr array, which is not copied."""
    assert all(s >= 0 and s % x.itemsize == 0 for s in x.strides)
    function(
        ctypes.c_void_p(x.ptr),
        (ctypes.c_size_t * 2)(*x.shape),
        (ctypes.c_ssize_t * 2)(*x.strides),
    )


def numbers(dtype):
    return (np.arange(70) % 50).astype(dtype).reshape(7, 10)


def changed(x):
    """What change_... of views.cpp does to an array of NumPy's."""
    return (x + x + np.arange(len(x)).astype(x.dtype)[:, None]).astype(x.dtype)


def check(library, dtype, layout, allocator):
    values = numbers(dtype)
    b = hamr.buffer(values.copy()).copy(allocator)
    for name, expected in (("change", changed), ("turn_round", lambda x: x[::-1].copy())):
        with b.on("host", "rw") as array:
            part = LAYOUTS[layout](hamr.buffer(array))
            view(getattr(library, f"{name}_{dtype}"), part)
            del part
        wanted = LAYOUTS[layout](values)
        wanted[...] = expected(wanted)
        np.testing.assert_array_equal(b.get(), values)


def main():
    library = ctypes.CDLL(sys.argv[1])
    library.start()
    others = [
        name
        for space in space_rows.NAMES
        if space != "host" and not space_rows.absent(space)
        for name in space_rows.allocators(space)
    ]
    cases = [
        *((dtype, layout, "malloc") for dtype in TYPES for layout in LAYOUTS),
        *(("float64", layout, name) for layout in LAYOUTS for name in (*HOST[1:], *others)),
    ]
    found = {}
    for case in cases:
        try:
            check(library, *case)
            found[" ".join(case)] = "right"
        except AssertionError as error:
            found[" ".join(case)] = str(error)
    library.end()
    print(json.dumps({"version": library.version(), "others": others, "cases": found}))


main()
