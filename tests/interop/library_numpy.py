"""NumPy: the buffer protocol, its array interface, DLPack and __array__."""

from __future__ import annotations

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    ADDED,
    FROM,
    TO,
    Library,
    OnlyArray,
    OnlyInterface,
    Way,
    refused,
    shared,
)

VERSION = tuple(int(part) for part in np.__version__.split(".")[:2])


def has_no_versioned_dlpack(library: Library) -> bool:
    return VERSION < (2, 1)


def has_no_bool_in_dlpack(library: Library) -> bool:
    return VERSION < (1, 25)


WAYS = (
    Way(
        FROM,
        "buffer",
        "hamr.buffer(x)",
        lambda library, x: hamr.buffer(x),
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
        "__array_interface__",
        "hamr.buffer(of the interface alone)",
        lambda library, x: hamr.buffer(OnlyInterface(x)),
        (
            refused(
                TypeError,
                "the typestr of types that ml_dtypes adds is that of raw bytes",
                by="hamr",
                match="typestr",
                dtypes=ADDED,
            ),
        ),
    ),
    Way(
        FROM,
        "__dlpack__",
        "hamr.from_dlpack(x)",
        lambda library, x: hamr.from_dlpack(x),
        (
            refused(
                (BufferError, TypeError),
                "NumPy's DLPack has NumPy's own types only",
                by="NumPy",
                match="DLPack only supports|readonly",
                dtypes=ADDED,
            ),
            refused(
                BufferError,
                "before NumPy 1.25 DLPack had no bool",
                by="NumPy",
                dtypes=("bool",),
                when=has_no_bool_in_dlpack,
            ),
            refused(
                BufferError,
                "before NumPy 2.1 its DLPack could not say read-only",
                by="NumPy",
                layouts=("read-only",),
                when=has_no_versioned_dlpack,
            ),
        ),
    ),
    Way(TO, "buffer", "np.asarray(b)", lambda library, b: np.asarray(b)),
    Way(
        TO,
        "__array_interface__",
        "np.asarray(of the interface alone)",
        lambda library, b: np.asarray(OnlyInterface(b)),
        (
            refused(
                AttributeError,
                "there is no typestr for them",
                by="hamr",
                match="no typestr",
                dtypes=ADDED,
            ),
        ),
    ),
    Way(
        TO,
        "__dlpack__",
        "np.from_dlpack(b)",
        lambda library, b: np.from_dlpack(b),
        (
            refused(
                BufferError,
                "before NumPy 2.1 it asks for DLPack that could not say read-only",
                by="hamr",
                match="read-only",
                layouts=("read-only",),
                when=has_no_versioned_dlpack,
            ),
            refused(
                (BufferError, RuntimeError),
                "NumPy's DLPack has NumPy's own types only",
                by="NumPy",
                match="[Uu]nsupported dtype",
                dtypes=ADDED,
            ),
            refused(
                (BufferError, RuntimeError),
                "before NumPy 1.25 DLPack had no bool",
                by="NumPy",
                match="[Uu]nsupported dtype",
                dtypes=("bool",),
                when=has_no_bool_in_dlpack,
            ),
            shared(
                "before NumPy 2.1 what comes by DLPack is read-only in NumPy",
                readonly=True,
                when=lambda library: not np.from_dlpack(np.zeros(1)).flags.writeable,
            ),
        ),
    ),
    Way(
        TO,
        "__array__",
        "np.asarray(of __array__ alone)",
        lambda library, b: np.asarray(OnlyArray(b)),
    ),
)

LIBRARY = Library("NumPy", "numpy", "numpy", WAYS)
