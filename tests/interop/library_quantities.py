"""astropy and pint: quantities, whose unit no buffer has, and astropy's masked arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import FROM, TO, Layout, Library, Way, refused


class Quantities(Library):
    """What pint and astropy have in common: elements, of NumPy's, and a unit."""

    @functools.cached_property
    def registry(self) -> Any:
        return self.module.UnitRegistry()

    def quantity(self, array: Any) -> Any:
        return self.registry.Quantity(array, "metre")

    def elements(self, x: Any) -> Any:
        return x if isinstance(x, hamr.Buffer) else x.magnitude

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        return self.quantity(super().make(values, layout))

    def values(self, x: Any) -> np.ndarray:
        return super().values(self.elements(x))

    def write(self, x: Any, values: np.ndarray) -> None:
        super().write(self.elements(x), values)

    def address(self, x: Any) -> int:
        return super().address(self.elements(x))

    def strides(self, x: Any) -> tuple[int, ...] | None:
        return super().strides(self.elements(x))

    def dtype(self, x: Any) -> str | None:
        return super().dtype(self.elements(x))

    def readonly(self, x: Any) -> bool | None:
        return super().readonly(self.elements(x))


class Astropy(Quantities):
    def elements(self, x: Any) -> Any:
        # Without dimensions .value is a number.
        return x if isinstance(x, hamr.Buffer) else x.view(np.ndarray)

    def quantity(self, array: Any) -> Any:
        return self.module.Quantity(array, self.module.m, copy=False, dtype=None)


class Masked(Library):
    def make(self, values: np.ndarray, layout: Layout) -> Any:
        return self.module.Masked(super().make(values, layout), mask=False)


def _refused(what: str, instead: str) -> tuple:
    reason = f"its {what} would be lost: pass {instead}"
    return (refused(TypeError, reason, by="hamr", match=f"{what}.* would be lost: pass {instead}"),)


def ways(library: str, plain: str) -> tuple[Way, ...]:
    return (
        Way(
            FROM,
            "none",
            "hamr.buffer(x)",
            lambda library, x: hamr.buffer(x),
            _refused("unit", plain),
        ),
        Way(
            TO,
            "buffer",
            f"{library}(np.asarray(b), …)",
            lambda library, b: library.quantity(np.asarray(b)),
        ),
    )


LIBRARIES = [
    Astropy("astropy", "astropy", "astropy.units", ways("Quantity", ".value")),
    Masked(
        "astropy.Masked",
        "astropy",
        "astropy.utils.masked",
        (
            Way(
                FROM,
                "none",
                "hamr.buffer(x)",
                lambda library, x: hamr.buffer(x),
                _refused("mask", ".unmasked"),
            ),
        ),
    ),
    Quantities("pint", "pint", "pint", ways("Quantity", ".magnitude")),
]
