"""Numba: the CUDA array interface, on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    ADDED,
    FROM,
    TO,
    Layout,
    Library,
    Way,
    no_layout,
)


class Numba(Library):
    def load(self) -> None:
        super().load()
        self.module.to_device(np.zeros(1, "f4"))  # raises without a device

    def has(self, dtype: str) -> bool:
        return dtype not in ADDED

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        item = values.dtype.itemsize
        room = self.module.to_device(np.zeros(max(layout.room, layout.size, 1), values.dtype))
        x = self._part(room, layout.first * item, layout.shape, layout.byte_strides(item))
        self.write(x, values)
        return x

    def values(self, x: Any) -> np.ndarray:
        values = np.empty(x.shape, x.dtype)  # what is not contiguous Numba does not copy
        for position, cell in self._cells(x):
            values[position] = cell.copy_to_host()[0]
        return values

    def write(self, x: Any, values: np.ndarray) -> None:
        # One element at a time: a kernel would be compiled for each type and layout.
        for position, cell in self._cells(x):
            cell.copy_to_device(values[position].reshape(1))
        self.synchronize()

    def address(self, x: Any) -> int:
        return x.__cuda_array_interface__["data"][0]

    def readonly(self, x: Any) -> bool | None:
        return None

    def synchronize(self) -> None:
        self.module.synchronize()

    def _cells(self, x: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Each element's position, and an array of it alone."""
        for position in np.ndindex(x.shape):
            offset = sum(i * s for i, s in zip(position, x.strides, strict=True))
            yield position, self._part(x, offset, (1,), None)

    def _part(
        self, x: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...] | None
    ) -> Any:
        """An array that begins some bytes after another."""
        whole = x.__cuda_array_interface__
        start = whole["data"][0] + offset
        if 0 in shape:
            return self.module.to_device(np.zeros(shape, x.dtype))
        data = {"shape": shape, "strides": strides, "data": (start, False)}
        return self.module.as_cuda_array(_Described(x, {**whole, **data}))


class _Described:
    """Part of an array, by an interface of its own."""

    def __init__(self, owner: Any, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = interface


WAYS = (
    Way(
        FROM,
        "__cuda_array_interface__",
        "hamr.buffer(x)",
        lambda library, x: hamr.buffer(x),
        (no_layout("Numba's device arrays are writable", layouts=("read-only",)),),
    ),
    Way(
        TO,
        "__cuda_array_interface__",
        "cuda.as_cuda_array(b)",
        lambda library, b: library.module.as_cuda_array(b),
    ),
)

LIBRARY = Numba("Numba", "numba-cuda", "numba.cuda", WAYS, allocator="cuda")
