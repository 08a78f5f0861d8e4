"""In place of CuPy where that cannot be had: as much of it as the documents' blocks use.

Arrays are shared by ``__cuda_array_interface__``; what is computed goes by way of the host.
What misuses the emulated driver is printed at the end, so that the output is wrong.
"""

from __future__ import annotations

import atexit
from typing import Any

import numpy as np

from tests.cuda import driver


class ndarray:  # noqa: N801
    """Elements without gaps, in memory of this module's or of another's."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, owner: Any = None) -> None:
        self.shape, self.dtype, self._owner = shape, np.dtype(dtype), owner
        self.nbytes = int(np.prod(shape)) * self.dtype.itemsize
        self.ptr = driver.allocate(self.nbytes) if owner is None else owner[1]

    def __del__(self) -> None:
        if self._owner is None:
            driver.free(self.ptr)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = {"data": (self.ptr, False), "stream": driver.LEGACY, "version": 3}
        return {"shape": self.shape, "typestr": self.dtype.str, **data}

    def get(self) -> np.ndarray:
        return driver.read(self.ptr, self.shape, self.dtype)

    def _set(self, array: np.ndarray) -> ndarray:
        driver.write(self.ptr, np.ascontiguousarray(array, self.dtype))
        return self

    def __getitem__(self, key: Any) -> ndarray:
        if key is not Ellipsis:
            raise NotImplementedError(f"x[{key!r}]: the stand-in for CuPy has x[...]")
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        array = self.get()
        array[key] = _on_host(value)
        self._set(array)

    def __add__(self, other: Any) -> ndarray:
        return _on_device(self.get() + _on_host(other))

    def __mul__(self, other: Any) -> ndarray:
        return _on_device(self.get() * _on_host(other))

    def __iadd__(self, other: Any) -> ndarray:
        return self._set(self.get() + _on_host(other))

    def __imul__(self, other: Any) -> ndarray:
        return self._set(self.get() * _on_host(other))


def asarray(obj: Any) -> ndarray:
    """What ``obj`` shares by its interface, or a copy of an array on the host."""
    if isinstance(obj, ndarray):
        return obj
    found = getattr(obj, "__cuda_array_interface__", None)
    if found is None:
        return _on_device(np.asarray(obj))
    if found.get("strides") is not None:
        raise NotImplementedError("the stand-in for CuPy has no strides")
    return ndarray(found["shape"], found["typestr"], (obj, found["data"][0]))


def arange(*arguments: Any, dtype: Any = None) -> ndarray:
    """As NumPy's."""
    return _on_device(np.arange(*arguments, dtype=dtype))


def _on_device(array: np.ndarray) -> ndarray:
    return ndarray(array.shape, array.dtype)._set(array)


def _on_host(value: Any) -> Any:
    return value.get() if isinstance(value, ndarray) else value


@atexit.register
def _tell_of_misuse() -> None:
    if driver.emulator is not None:
        driver.emulator.finish()
        for line in driver.emulator.violations():
            print(line)
