"""mpi4py: its memory, and messages of a process to itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    ADDED,
    FROM,
    NOT_COMPACT,
    SENT,
    TO,
    Layout,
    Library,
    OnlyDlpack,
    Way,
    contents,
    no_layout,
    refused,
)


class Mpi(Library):
    @property
    def version(self) -> str:
        first = self.module.Get_library_version().partition(",")[0]
        return f"{super().version} on {first}"

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        memory = self.module.buffer.allocate(values.nbytes)
        np.asarray(memory)[...] = values.reshape(-1)
        return memory.toreadonly() if layout.readonly else memory

    def values(self, x: Any) -> np.ndarray:
        return np.array(x)

    def write(self, x: Any, values: np.ndarray) -> None:
        np.asarray(x)[...] = values

    def address(self, x: Any) -> int:
        return np.asarray(x).ctypes.data

    def shape(self, x: Any) -> tuple[int, ...]:
        return np.asarray(x).shape

    def strides(self, x: Any) -> tuple[int, ...] | None:
        return tuple(np.asarray(x).strides)

    def readonly(self, x: Any) -> bool | None:
        return not np.asarray(x).flags.writeable


def seen(library: Library, b: Any, like: hamr.Buffer) -> np.ndarray:
    """The memory that mpi4py finds in an object, as an array."""
    memory = library.module.buffer(b)
    assert memory.nbytes == like.nbytes
    return np.ndarray(like.shape, like.dtype, memory, 0, like.strides)


def _numbers(values: np.ndarray) -> np.ndarray:
    """Values of a type that MPI has, so that the buffer's alone is in question."""
    return values.view(f"u{values.itemsize}") if values.dtype.name in ADDED else values


def _order(b: hamr.Buffer) -> str:
    return "F" if b.is_fortran_contiguous and not b.is_contiguous else "C"


def send(library: Library, b: hamr.Buffer, other: np.ndarray) -> None:
    """What is sent arrives in the order in which it lies in memory."""
    values = _numbers(contents(b))
    received = np.empty(b.shape, values.dtype, _order(b))
    one = library.module.COMM_SELF
    one.Sendrecv(b, 0, 0, received, 0, 0)
    np.testing.assert_array_equal(received, values)


def receive(library: Library, b: hamr.Buffer, other: np.ndarray) -> None:
    """What is received is in the buffer."""
    sent = np.array(_numbers(other), order=_order(b))
    one = library.module.COMM_SELF
    one.Sendrecv(sent, 0, 0, b, 0, 0)
    np.testing.assert_array_equal(contents(b), other)


CONTIGUOUS = refused(
    BufferError,
    "mpi4py sends what has no gaps; a derived MPI datatype describes gaps",
    by="mpi4py",
    match="contiguous|negative",
    layouts=NOT_COMPACT,
)
READ_ONLY = refused(
    BufferError,
    "nothing is received into read-only memory",
    by="mpi4py",
    match="not writable",
    layouts=("read-only",),
)
EMPTY_BY_DLPACK = refused(
    BufferError,
    "mpi4py wants other strides by DLPack where there are no elements",
    by="mpi4py",
    match="contiguous",
    layouts=("zero-size",),
)

#: By the buffer protocol, which comes first, but which has no format for these.
EMPTY_ADDED = replace(EMPTY_BY_DLPACK, dtypes=ADDED)

WAYS = (
    Way(
        TO,
        "buffer",
        "MPI.buffer(b)",
        lambda library, b: seen(library, b, b),
        (CONTIGUOUS,),
    ),
    Way(
        TO,
        "__dlpack__",
        "MPI.buffer(of DLPack alone)",
        lambda library, b: seen(library, OnlyDlpack(b), b),
        (CONTIGUOUS, EMPTY_BY_DLPACK),
    ),
    Way(
        TO,
        "buffer",
        "comm.Send(b)",
        lambda library, b: None,
        (CONTIGUOUS, EMPTY_ADDED),
        check=send,
        done=SENT,
    ),
    Way(
        TO,
        "buffer",
        "comm.Recv(b)",
        lambda library, b: None,
        (CONTIGUOUS, READ_ONLY, EMPTY_ADDED),
        check=receive,
        done=SENT,
    ),
)

LIBRARY = Mpi("mpi4py", "mpi4py", "mpi4py.MPI", WAYS)


class Memory(Mpi):
    """Memory that MPI gives, which is bytes."""

    def makes(self, dtype: str) -> bool:
        return dtype == "uint8"


MEMORY = Memory(
    "mpi4py.MPI.buffer",
    "mpi4py",
    "mpi4py.MPI",
    (
        Way(
            FROM,
            "buffer",
            "hamr.buffer(x)",
            lambda library, x: hamr.buffer(x),
            (
                no_layout(
                    "it is a row of bytes",
                    layouts=("C", "F", *NOT_COMPACT, "zero-size", "0-d", "size-1"),
                ),
            ),
        ),
    ),
)
