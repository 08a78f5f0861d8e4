"""Dask: what its workers send each other."""

from __future__ import annotations

from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    FROM,
    NOT_COMPACT,
    TO,
    Layout,
    Library,
    Way,
    copied,
    refused,
)


class Dask(Library):
    def load(self) -> None:
        super().load()
        import distributed.protocol

        self.protocol = distributed.protocol

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        return self.module.from_array(super().make(values, layout))


def _sent(library: Any, b: hamr.Buffer) -> hamr.Buffer:
    header, frames = library.protocol.serialize(b)
    return library.protocol.deserialize(header, frames)


WAYS = (
    Way(
        FROM,
        "none",
        "hamr.buffer(x)",
        lambda library, x: hamr.buffer(x),
        (refused(TypeError, "a Dask array is work to be done", by="hamr", match="cannot be"),),
    ),
    Way(
        TO,
        "pickle",
        "distributed.protocol.serialize(b), deserialize",
        _sent,
        (copied("elements with gaps are copied together", layouts=NOT_COMPACT),),
    ),
)

LIBRARY = Dask("Dask", "distributed", "dask.array", WAYS)
