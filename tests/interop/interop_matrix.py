"""The cells of the matrix: element types, layouts, and what is expected of each cell.

A library is described by a subclass of Library, and its ways: each is a direction, a
protocol, the call that uses it, and rules. A cell that no rule is for must be shared.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import hamr

PLAIN = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
COMPLEX = ("complex64", "complex128")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
#: Types that NumPy has by ml_dtypes alone.
ADDED = ("bfloat16", *FLOAT8)
DTYPES = PLAIN + ADDED


@dataclass(frozen=True)
class Layout:
    """A shape, and where its elements are: strides and the first element, in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: int = 0
    room: int = 0
    readonly: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def byte_strides(self, itemsize: int) -> tuple[int, ...]:
        return tuple(s * itemsize for s in self.strides)


LAYOUTS = {
    "C": Layout((3, 5), (5, 1)),
    "F": Layout((3, 5), (1, 3)),
    "strided": Layout((3, 5), (20, 2), room=60),
    "negative": Layout((3, 5), (-5, -1), first=14),
    "zero-size": Layout((3, 0, 2), (2, 2, 1)),
    "0-d": Layout((), ()),
    # No step is ever taken along the dimension of one element, so its stride may be anything.
    "size-1": Layout((4, 1, 3), (3, 7, 1)),
    "vector": Layout((7,), (1,)),
    "strided vector": Layout((7,), (2,), room=14),
    "zero-size vector": Layout((0,), (1,)),
    "read-only": Layout((7,), (1,), readonly=True),
}
#: What has gaps, or runs backwards.
NOT_COMPACT = ("strided", "negative", "strided vector")
VECTORS = ("vector", "strided vector", "zero-size vector", "read-only")
NOT_VECTORS = tuple(name for name in LAYOUTS if name not in VECTORS)
EMPTY = ("zero-size", "zero-size vector")

FROM, TO = "from", "to"


@dataclass(frozen=True)
class Rule:
    """What is expected of some cells, and why."""

    outcome: str
    reason: str = ""
    error: type[Exception] | tuple[type[Exception], ...] = ()
    by: str = ""
    match: str = ""
    dtypes: tuple[str, ...] = DTYPES
    layouts: tuple[str, ...] = tuple(LAYOUTS)
    when: Callable[[Library], bool] | None = None
    source: str | None = None
    readonly: bool | None = None

    def is_for(self, library: Library, dtype: str, layout: str) -> bool:
        chosen = dtype in self.dtypes and layout in self.layouts
        return chosen and (self.when is None or self.when(library))


SHARED = Rule("shared")
SENT = Rule("sent")


def shared(reason: str, **where: Any) -> Rule:
    """Shared, but not in all the way that is expected without a rule."""
    return Rule("shared", reason, **where)


def copied(reason: str, **where: Any) -> Rule:
    """The library itself makes a copy."""
    return Rule("copied", reason, by="the library", **where)


def refused(
    error: type[Exception] | tuple[type[Exception], ...], reason: str, by: str, **where: Any
) -> Rule:
    """An error, raised by hamr or by the library."""
    return Rule("refused", reason, error, by, **where)


def no_layout(reason: str, **where: Any) -> Rule:
    """The library's arrays cannot be laid out so: making one raises, or lays it out otherwise."""
    return Rule("no such layout", reason, by="the library", **where)


def not_run(reason: str, **where: Any) -> Rule:
    """What would read memory that is not the array's, which hamr cannot prevent."""
    return Rule("not run", reason, by="the library", **where)


@dataclass(frozen=True)
class Way:
    """How arrays are handed over: the direction, the protocol and the call."""

    direction: str
    protocol: str
    call: str
    hand_over: Callable[[Any, Any], Any]
    rules: tuple[Rule, ...] = ()
    #: Whether what was made keeps the memory alive that it shares.
    keeps: bool = True
    #: What is checked instead of sharing; it raises where a cell is refused.
    check: Callable[[Any, hamr.Buffer, np.ndarray], None] | None = None
    #: The protocols it may be told by, where that is not the one alone.
    sources: tuple[str, ...] = ()
    #: What became of a cell that no rule is for.
    done: Rule = SHARED

    def rule(self, library: Library, dtype: str, layout: str) -> Rule | None:
        """The first rule for a cell."""
        found = (rule for rule in self.rules if rule.is_for(library, dtype, layout))
        return next(found, None)


@dataclass(eq=False)
class Library:
    """One library. As it stands here, one whose arrays are NumPy's, or hamr's."""

    name: str
    #: The distribution that it is installed from.
    distribution: str
    module_name: str
    ways: tuple[Way, ...]
    #: Where hamr's memory is taken for it.
    allocator: str = "malloc"
    #: Whether its arrays never change.
    immutable: bool = False
    #: Filters for the warnings that it gives.
    warnings: tuple[str, ...] = ()
    module: Any = field(default=None, repr=False)

    @property
    def package(self) -> str:
        """The name that it is imported by."""
        return self.module_name.partition(".")[0]

    def probe(self) -> str | None:
        """Why it is absent; None if it is there."""
        if importlib.util.find_spec(self.package) is None:
            return f"{self.name} is not installed"
        return None

    def load(self) -> None:
        """Import it; raises if it cannot be used."""
        self.module = importlib.import_module(self.module_name)

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.distribution)

    def has(self, dtype: str) -> bool:
        """Whether it has an element type."""
        return reference(dtype) is not None

    def makes(self, dtype: str) -> bool:
        """Whether arrays of a type can be made for the direction "from"."""
        return self.has(dtype)

    # What the checks do with an array of it.

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        """An array of its own with these values, laid out so."""
        return numpy_array(values, layout)

    def values(self, x: Any) -> np.ndarray:
        """What it reads, in new memory."""
        return contents(x) if isinstance(x, hamr.Buffer) else np.array(x)

    def write(self, x: Any, values: np.ndarray) -> None:
        if isinstance(x, hamr.Buffer):
            write(x, values)
        else:
            x[...] = values

    def address(self, x: Any) -> int:
        return x.ptr if isinstance(x, hamr.Buffer) else x.ctypes.data

    def shape(self, x: Any) -> tuple[int, ...]:
        return tuple(x.shape)

    def strides(self, x: Any) -> tuple[int, ...] | None:
        """Strides in bytes; None where its arrays have no strides."""
        return tuple(x.strides)

    def dtype(self, x: Any) -> str | None:
        """The name of its elements' type; None where its arrays are bytes."""
        return str(np.dtype(x.dtype))

    def readonly(self, x: Any) -> bool | None:
        """Whether it refuses to write; None where it has no such flag."""
        return x.readonly if isinstance(x, hamr.Buffer) else not x.flags.writeable

    def synchronize(self) -> None:
        """Wait for all it has begun."""


class OnlyInterface:
    """An object's array interface, and nothing else of it."""

    def __init__(self, obj: Any) -> None:
        self.keep = obj
        self.__array_interface__ = obj.__array_interface__


class OnlyCudaInterface:
    """An object's CUDA array interface, and nothing else of it."""

    def __init__(self, obj: Any) -> None:
        self.keep = obj
        self.__cuda_array_interface__ = obj.__cuda_array_interface__


class OnlyDlpack:
    """An object's DLPack methods, and nothing else of it."""

    def __init__(self, obj: Any) -> None:
        self.__dlpack__ = obj.__dlpack__
        self.__dlpack_device__ = obj.__dlpack_device__


class OnlyArray:
    """An object's __array__, and nothing else of it."""

    def __init__(self, obj: Any) -> None:
        self.__array__ = obj.__array__


class OnlyArrow:
    """An object's Arrow method for the host, and nothing else of it."""

    def __init__(self, obj: Any) -> None:
        self.__arrow_c_array__ = obj.__arrow_c_array__


class OnlyArrowDevice:
    """An object's Arrow method for devices, and nothing else of it."""

    def __init__(self, obj: Any) -> None:
        self.__arrow_c_device_array__ = obj.__arrow_c_device_array__


def reference(dtype: str) -> np.dtype[Any] | None:
    """NumPy's type of a name; None where only ml_dtypes has it, and is not installed."""
    if dtype in PLAIN:
        return np.dtype(dtype)
    if importlib.util.find_spec("ml_dtypes") is None:
        return None
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, dtype))


def sample(dtype: str, layout: Layout, start: int = 1) -> np.ndarray:
    """Values of a type, exact in it; another start gives others."""
    plain = np.arange(start, start + layout.size)
    if dtype == "bool":
        plain = plain % 3 == 0
    elif dtype in COMPLEX:
        plain = plain - 0.5j * plain
    elif dtype in FLOAT8:
        plain = plain % 13 - 6
    elif not dtype.startswith("uint"):
        plain = plain % 127 - 63
    return plain.astype(reference(dtype)).reshape(layout.shape)


def numpy_array(values: np.ndarray, layout: Layout) -> np.ndarray:
    """A NumPy array with these values, laid out so."""
    item = values.dtype.itemsize
    room = np.zeros(max(layout.room, layout.size, 1) * item, "u1")
    strides = layout.byte_strides(item)
    x: np.ndarray = np.ndarray(values.shape, values.dtype, room, layout.first * item, strides)
    x[...] = values
    x.flags.writeable = not layout.readonly
    return x


def hamr_array(values: np.ndarray, dtype: str, layout: Layout, allocator: str) -> hamr.Buffer:
    """A buffer with these values, laid out so."""
    count = max(layout.room, layout.size)
    if not layout.readonly and layout.strides == hamr.Buffer(layout.shape, "int8").strides:
        b = hamr.Buffer(layout.shape, dtype, allocator)
        write(b, values)
        return b
    room = hamr.Buffer(count, dtype, allocator)
    made = [
        hamr.Buffer.from_pointer(
            room.ptr + layout.first * room.itemsize,
            layout.shape,
            dtype,
            allocator,
            strides=layout.byte_strides(room.itemsize),
            owner=room,
            readonly=readonly,
        )
        for readonly in (False, layout.readonly)
    ]
    write(made[0], values)
    made[0].synchronize()
    return made[1]


def storage(b: hamr.Buffer) -> hamr.Buffer:
    """The same elements as unsigned integers, for types of which NumPy has no name."""
    if str(b.dtype) not in ADDED:
        return b
    unsigned = f"uint{8 * b.itemsize}"
    if not b.size():
        return hamr.Buffer(b.shape, unsigned)
    return hamr.Buffer.from_pointer(
        b.ptr, b.shape, unsigned, b.allocator, strides=b.strides, owner=b, device=b.device
    )


def write(b: hamr.Buffer, values: np.ndarray) -> None:
    """Write to a buffer, and wait until it is done."""
    target = storage(b)
    target[...] = values.view(target.typestr) if target is not b else values
    target.synchronize()


def contents(b: hamr.Buffer) -> np.ndarray:
    """What a buffer holds, in new memory."""
    if (dtype := str(b.dtype)) in ADDED:
        return np.array(storage(b).get_host_accessible()).view(reference(dtype))
    return np.array(b.get_host_accessible())


def asks_for_no_version(library: Library) -> bool:
    """Whether it takes DLPack from before version 1 only, which cannot say read-only."""
    array = np.zeros(1)
    array.flags.writeable = False
    try:
        library.module.from_dlpack(array)
    except BufferError:
        return True
    return False


NO_READ_ONLY = refused(
    BufferError,
    "the library asks for DLPack of before version 1, which could not say read-only",
    by="hamr",
    match="read-only",
    layouts=("read-only",),
    when=asks_for_no_version,
)
