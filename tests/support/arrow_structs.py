"""Arrow's C structs by ctypes: producers and consumers that need no Arrow library."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np

FORMATS = {
    "int8": "c", "uint8": "C", "int16": "s", "uint16": "S", "int32": "i", "uint32": "I",
    "int64": "l", "uint64": "L", "float16": "e", "float32": "f", "float64": "g",
}  # fmt: skip

CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 10, 11, 13


class Schema(ctypes.Structure):
    """ArrowSchema."""


class Array(ctypes.Structure):
    """ArrowArray."""


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.c_void_p),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class DeviceArray(ctypes.Structure):
    """ArrowDeviceArray."""

    _fields_ = (
        ("array", Array),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    )


class Stream(ctypes.Structure):
    """ArrowArrayStream."""

    _fields_ = tuple(
        (name, ctypes.c_void_p)
        for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")
    )


NAMES = {
    Schema: b"arrow_schema",
    Array: b"arrow_array",
    DeviceArray: b"arrow_device_array",
    Stream: b"arrow_array_stream",
}
KINDS = {name: kind for kind, name in NAMES.items()}

_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_TEXT = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]

# Objects are passed by their addresses: a destructor must not count references.
_api = ctypes.PyDLL(None)
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _RELEASE]
_name_of = _api.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
_pointer_of = _api.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]


# What a consumer does.


def inside(capsule: Any) -> Any:
    """The struct that a capsule holds; it keeps the capsule."""
    name = _name_of(id(capsule))
    struct = KINDS[name].from_address(_pointer_of(id(capsule), name))
    struct.capsule = capsule
    return struct


def array_of(struct: Any) -> Any:
    """The ArrowArray in an ArrowDeviceArray; others are their own."""
    return struct.array if isinstance(struct, DeviceArray) else struct


def move(capsule: Any) -> Any:
    """The struct's bytes elsewhere; nothing is left in the capsule."""
    struct = inside(capsule)
    moved = type(struct).from_buffer_copy(struct)
    array_of(struct).release = None
    return moved


def release(struct: Any) -> None:
    """Call the struct's own release, without the GIL."""
    array = array_of(struct)
    _RELEASE(array.release)(ctypes.addressof(array))


def release_on_a_thread(struct: Any) -> None:
    """The same on a thread that Python never saw."""
    array, thread = array_of(struct), ctypes.c_ulong()
    address = ctypes.c_void_p(ctypes.addressof(array))
    made = libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(array.release), address)
    assert made == 0
    assert libc.pthread_join(thread, None) == 0


def data_of(array: Any) -> int:
    """The address of the second buffer; 0 is NULL."""
    return (ctypes.c_void_p * 2).from_address(array.buffers)[1] or 0


def values(array: Any, dtype: Any) -> list[Any]:
    """The elements that an array in the host's memory describes."""
    size = np.dtype(dtype).itemsize
    start = data_of(array) + array.offset * size
    raw = ctypes.string_at(start, array.length * size) if array.length else b""
    return np.frombuffer(raw, dtype).tolist()


# What a producer does.

_numbers = itertools.count(1)
_in_use: dict[int, Structs] = {}  # what a struct points to lives until its release

#: Releases of what was released before.
stray: list[int] = []


@_RELEASE
def _release_array(address: int) -> None:
    _released(Array.from_address(address), "releases")


@_RELEASE
def _release_schema(address: int) -> None:
    _released(Schema.from_address(address), "schema_releases")


@_RELEASE
def _release_stream(address: int) -> None:
    _released(Stream.from_address(address), "stream_releases")


def _released(struct: Any, counter: str) -> None:
    number = struct.private_data
    struct.release = None
    made = _in_use.get(number)
    if made is None:
        stray.append(number)
        return
    setattr(made, counter, getattr(made, counter) + 1)
    made.given -= 1
    if made.given == 0:
        del _in_use[number]


@_RELEASE
def _end_capsule(capsule: int) -> None:
    name = _name_of(capsule)
    address = _pointer_of(capsule, name)
    array = array_of(KINDS[name].from_address(address))
    if array.release:
        _RELEASE(array.release)(ctypes.addressof(array))
    libc.free(address)


class Structs:
    """A schema and an array by their fields, right ones of an array unless they are changed.

    ``releases`` counts releases of arrays, ``schema_releases`` those of schemas,
    ``given`` what was handed out and not released yet.
    """

    def __init__(self, content: Any = None, schema: Any = (), **changes: Any) -> None:
        self.releases = self.schema_releases = self.stream_releases = self.given = 0
        self.content = np.arange(6, dtype="i4") if content is None else np.asarray(content)
        self.number = next(_numbers)
        self.kept: list[Any] = [self.content]
        fields = {
            "format": FORMATS.get(self.content.dtype.name, "").encode(),
            "name": b"",
            "flags": 2,
            "release": _address(_release_schema),
            **dict(schema),
        }
        self.schema = self._filled(Schema, fields)
        fields = {
            "length": self.content.size,
            "n_buffers": 2,
            "buffers": [None, self.content.ctypes.data],
            "release": _address(_release_array),
            **changes,
        }
        self.array = self._filled(Array, fields)

    def _filled(self, kind: Any, fields: dict[str, Any]) -> Any:
        struct = kind(private_data=self.number)
        for name, value in fields.items():
            setattr(struct, name, self._field(value))
        return struct

    def _field(self, value: Any) -> Any:
        """A pointer to what C sees as one, of a list, bytes-like object or struct."""
        if isinstance(value, list):
            value = [ctypes.addressof(x) if isinstance(x, ctypes.Structure) else x for x in value]
            value = (ctypes.c_void_p * max(len(value), 1))(*value)
        elif isinstance(value, bytearray):
            value = (ctypes.c_char * len(value)).from_buffer(value)
        elif not isinstance(value, ctypes.Structure):
            self.kept.append(value)
            return value
        self.kept.append(value)
        return ctypes.addressof(value)

    def capsule(self, struct: Any) -> Any:
        """A capsule of a copy of a struct, as every producer makes them."""
        address = libc.malloc(ctypes.sizeof(struct))
        ctypes.memmove(address, ctypes.addressof(struct), ctypes.sizeof(struct))
        self.hand_out(struct)
        return _new(address, NAMES[type(struct)], _end_capsule)

    def hand_out(self, struct: Any) -> None:
        if array_of(struct).release:
            self.given += 1
            _in_use[self.number] = self


class HostArray(Structs):
    """Offers the array by ``__arrow_c_array__`` alone."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self.capsule(self.schema), self.capsule(self.array)


class OnDevice(Structs):
    """Offers the array by ``__arrow_c_device_array__`` alone; ``event`` is CUDA's handle."""

    def __init__(
        self,
        *arguments: Any,
        device_type: int = CPU,
        device_id: int = -1,
        event: int | None = None,
        **changes: Any,
    ) -> None:
        super().__init__(*arguments, **changes)
        self.device_type, self.device_id = device_type, device_id
        self.event = None if event is None else ctypes.c_uint64(event)

    def __arrow_c_device_array__(
        self, requested_schema: Any = None, **later: Any
    ) -> tuple[Any, Any]:
        event = None if self.event is None else ctypes.addressof(self.event)
        struct = DeviceArray(self.array, self.device_id, self.device_type, event)
        return self.capsule(self.schema), self.capsule(struct)


class Chunks(Structs):
    """Offers other Structs' arrays by ``__arrow_c_stream__``; ``failing`` is a step of it."""

    def __init__(self, *chunks: Structs, failing: str = "", **schema: Any) -> None:
        super().__init__(chunks[0].content if chunks else None, schema)
        self.chunks, self.failing = chunks, failing
        self.error = ctypes.create_string_buffer(b"the disk is gone")
        self.callbacks = (_GET(self._get_schema), _GET(self._get_next), _TEXT(self._text))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.coming = iter(self.chunks)
        return self.capsule(
            Stream(*map(_address, self.callbacks), _address(_release_stream), self.number)
        )

    def _get_schema(self, stream: int, out: int) -> int:
        if self.failing == "schema":
            return 5
        self.hand_out(self.schema)
        ctypes.memmove(out, ctypes.addressof(self.schema), ctypes.sizeof(Schema))
        return 0

    def _get_next(self, stream: int, out: int) -> int:
        chunk = next(self.coming, None)
        if chunk is None and self.failing == "end":
            return 5
        if chunk is None:
            ctypes.memset(out, 0, ctypes.sizeof(Array))
            return 0
        chunk.hand_out(chunk.array)
        ctypes.memmove(out, ctypes.addressof(chunk.array), ctypes.sizeof(Array))
        return 0

    def _text(self, stream: int) -> int:
        return ctypes.addressof(self.error)


def _address(callback: Any) -> int | None:
    return ctypes.cast(callback, ctypes.c_void_p).value


def metadata(entries: dict[str, str]) -> bytearray:
    """What a schema's metadata points to."""
    made = bytearray(np.int32(len(entries)).tobytes())
    for text in itertools.chain.from_iterable(entries.items()):
        made += np.int32(len(text.encode())).tobytes() + text.encode()
    return made


class Only:
    """An object of nothing but another one's methods of the names given."""

    def __init__(self, source: Any, *names: str) -> None:
        for name in names or ("__arrow_c_array__",):
            setattr(self, name, getattr(source, name))
