"""Pillow: images, which have the array interface and, as rows of pixels, Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    FROM,
    LAYOUTS,
    Layout,
    Library,
    Way,
    copied,
    no_layout,
)

#: Of element types that have a mode.
MODES = {"uint8": "L", "uint16": "I;16", "int32": "I", "float32": "F"}
TYPES = tuple(MODES)


class Pillow(Library):
    def has(self, dtype: str) -> bool:
        return dtype in MODES

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        if values.ndim != 2:
            raise ValueError("an image has two dimensions")
        return self.module.fromarray(super().make(values, layout))

    def strides(self, x: Any) -> tuple[int, ...] | None:
        return tuple(np.asarray(x).strides)

    def shape(self, x: Any) -> tuple[int, ...]:
        return np.asarray(x).shape

    def readonly(self, x: Any) -> bool | None:
        return None


WAYS = (
    Way(
        FROM,
        "__array_interface__",
        "hamr.buffer(x)",
        lambda library, x: hamr.buffer(x),
        (
            no_layout(
                "an image has rows of pixels in order",
                dtypes=TYPES,
                layouts=tuple(name for name in LAYOUTS if name != "C"),
            ),
            copied("Pillow gives a copy of the pixels", dtypes=TYPES, layouts=("C",)),
        ),
    ),
)

LIBRARY = Pillow("Pillow", "pillow", "PIL.Image", WAYS)
