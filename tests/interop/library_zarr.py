"""zarr: what it stores of NumPy's arrays over hamr's memory, whose types it compares by number."""

from __future__ import annotations

from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    ADDED,
    FROM,
    SENT,
    TO,
    Layout,
    Library,
    Way,
    contents,
    refused,
)


class Zarr(Library):
    def has(self, dtype: str) -> bool:
        return dtype not in ADDED

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        return self._stored(super().make(values, layout))

    def strides(self, x: Any) -> tuple[int, ...] | None:
        return None

    def readonly(self, x: Any) -> bool | None:
        return None

    def _stored(self, array: np.ndarray) -> Any:
        return self.module.create_array(store=self.module.storage.MemoryStore(), data=array)


def store(library: Any, b: hamr.Buffer, other: np.ndarray) -> None:
    """What is stored, by one array and by a part of another, is what the buffer held."""
    array = np.asarray(b)
    stored = library._stored(array)
    np.testing.assert_array_equal(stored[...], contents(b), strict=True)
    stored[...] = other
    stored[...] = array
    np.testing.assert_array_equal(stored[...], contents(b), strict=True)


WAYS = (
    Way(
        FROM,
        "none",
        "hamr.buffer(x)",
        lambda library, x: hamr.buffer(x),
        (refused(TypeError, "its chunks are compressed: pass x[...]", by="hamr"),),
    ),
    Way(
        TO,
        "buffer",
        "zarr.create_array(data=np.asarray(b))",
        lambda library, b: library._stored(np.asarray(b)),
        check=store,
        done=SENT,
    ),
)

LIBRARY = Zarr("zarr", "zarr", "zarr", WAYS)
