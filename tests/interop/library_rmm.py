"""RMM: a DeviceBuffer is bytes, whose CUDA array interface is of version 0.

A stand-in takes its place: an object with the same dictionary over memory of hamr's, so that
it runs where RMM is not installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import FROM, LAYOUTS, Layout, Library, Way, no_layout


class DeviceBuffer:
    """What rmm.DeviceBuffer offers."""

    def __init__(self, content: np.ndarray) -> None:
        self.memory = hamr.array(content, device="cuda")
        self.ptr, self.size = self.memory.ptr, content.size

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.ptr, False),
            "shape": (self.size,),
            "strides": None,
            "typestr": "|u1",
            "version": 0,
        }


class Rmm(Library):
    def probe(self) -> str | None:
        return None

    def load(self) -> None:
        self.module = None

    @property
    def version(self) -> str:
        return "stand-in"

    def has(self, dtype: str) -> bool:
        return dtype == "uint8"

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        if values.ndim != 1:
            raise ValueError("a DeviceBuffer has one dimension")
        return DeviceBuffer(values)

    def values(self, x: Any) -> np.ndarray:
        return super().values(x.memory)

    def write(self, x: Any, values: np.ndarray) -> None:
        super().write(x.memory, values)

    def address(self, x: Any) -> int:
        return int(x.ptr)

    def shape(self, x: Any) -> tuple[int, ...]:
        return (x.size,)

    def strides(self, x: Any) -> tuple[int, ...] | None:
        return (1,)

    def readonly(self, x: Any) -> bool | None:
        return False


LIBRARY = Rmm(
    "RMM",
    "rmm",
    "rmm",
    (
        Way(
            FROM,
            "__cuda_array_interface__",
            "hamr.buffer(x)",
            lambda library, x: hamr.buffer(x),
            (
                no_layout(
                    "a DeviceBuffer is bytes in a row",
                    dtypes=("uint8",),
                    layouts=tuple(
                        name for name in LAYOUTS if name not in ("vector", "zero-size vector")
                    ),
                ),
            ),
        ),
    ),
    allocator="cuda",
)
