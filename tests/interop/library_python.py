"""Python's standard library: memoryview, and pickles whose buffers travel out of band."""

from __future__ import annotations

import pickle
import platform
from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    ADDED,
    FROM,
    NOT_COMPACT,
    TO,
    Layout,
    Library,
    Way,
    copied,
    no_layout,
    refused,
)


def _pickled(library: Library, b: hamr.Buffer) -> hamr.Buffer:
    outside: list[pickle.PickleBuffer] = []
    content = pickle.dumps(b, 5, buffer_callback=outside.append)
    return pickle.loads(content, buffers=outside)


class Python(Library):
    @property
    def version(self) -> str:
        return platform.python_version()

    def makes(self, dtype: str) -> bool:
        """Whether memoryview casts to a type; it can hold more."""
        if dtype in ADDED:
            return False
        try:
            memoryview(bytes(16)).cast(np.dtype(dtype).char)
        except ValueError:
            return False
        return True

    def make(self, values: np.ndarray, layout: Layout) -> memoryview:
        item = values.dtype.itemsize
        form, room = values.dtype.char, bytearray(max(layout.room, layout.size) * item)
        if values.ndim == 1:
            view = memoryview(room).cast(form)[:: layout.strides[0]]
        else:
            view = memoryview(room).cast(form, list(values.shape))
        np.asarray(view)[...] = values
        return view.toreadonly() if layout.readonly else view

    def values(self, x: Any) -> np.ndarray:
        return super().values(_array(x))

    def write(self, x: Any, values: np.ndarray) -> None:
        super().write(_array(x), values)

    def address(self, x: Any) -> int:
        return super().address(_array(x))

    def dtype(self, x: Any) -> str | None:
        return super().dtype(_array(x))

    def readonly(self, x: Any) -> bool | None:
        return x.readonly


def _array(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, memoryview) else x


WAYS = (
    Way(
        FROM,
        "buffer",
        "hamr.buffer(memoryview)",
        lambda library, x: hamr.buffer(x),
        (
            no_layout(
                "memoryview casts to C order, without dimensions of no elements",
                layouts=("F", "strided", "negative", "zero-size"),
            ),
        ),
    ),
    Way(
        TO,
        "buffer",
        "memoryview(b)",
        lambda library, b: memoryview(b),
        (
            refused(
                BufferError,
                "the buffer protocol has no format for them",
                by="hamr",
                match="no format",
                dtypes=ADDED,
            ),
        ),
    ),
    Way(
        TO,
        "pickle",
        "pickle, protocol 5, out of band",
        _pickled,
        (copied("elements with gaps are copied together", layouts=NOT_COMPACT),),
    ),
)

LIBRARY = Python("Python", "", "pickle", WAYS)
