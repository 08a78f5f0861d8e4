"""xarray: its arrays are NumPy's, with names."""

from __future__ import annotations

from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import ADDED, FROM, TO, Layout, Library, Way, refused, shared


class Xarray(Library):
    def make(self, values: np.ndarray, layout: Layout) -> Any:
        return self.module.DataArray(super().make(values, layout))

    def address(self, x: Any) -> int:
        return super().address(x if isinstance(x, hamr.Buffer) else x.values)

    def strides(self, x: Any) -> tuple[int, ...] | None:
        return tuple(x.values.strides)

    def readonly(self, x: Any) -> bool | None:
        return not x.values.flags.writeable


WAYS = (
    Way(
        FROM,
        "buffer",
        "hamr.buffer(x.values)",
        lambda library, x: hamr.buffer(x.values),
        (
            shared(
                "NumPy exports no buffer of types that ml_dtypes adds",
                dtypes=ADDED,
                source="__array_interface__",
            ),
        ),
    ),
    Way(
        FROM,
        "none",
        "hamr.buffer(x)",
        lambda library, x: hamr.buffer(x),
        (
            refused(
                (TypeError, NotImplementedError),
                "by Arrow it is a table: pass .values",
                by="hamr, or pyarrow",
            ),
        ),
    ),
    Way(TO, "__array__", "xr.DataArray(b)", lambda library, b: library.module.DataArray(b)),
)

LIBRARY = Xarray("xarray", "xarray", "xarray", WAYS)
