"""Buffers of memory that another process, or this one, has shared by a handle."""

from __future__ import annotations

import socket
from array import array
from operator import index

import hamr._native as _native

from .._base.unopened import Unopened, fail
from .buffers import Buffer
from .shares import SharedHandle, check_socket, close_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_MAGIC = b"hamrshr\x01"
_HEADER, _LONGEST, _MOST_DESCRIPTORS = 16, 4096, 2


def _opened_by(handle: SharedHandle) -> Buffer:
    frame, descriptors = handle._begin()
    try:
        return _native.open_shared(Buffer, frame, [*descriptors])
    finally:
        handle._end()


def _numbers(descriptors: Any) -> list[int]:
    try:
        return [] if descriptors is None else [index(each) for each in descriptors]
    except TypeError:
        raise TypeError(f"descriptors is {descriptors!r}: accepted is a list of int") from None


def open_shared(source: Any, descriptors: Iterable[int] | None = None) -> Buffer:
    """A buffer of the memory that another process, or this one, has shared by ``Buffer.share()``.

    ``source`` is a handle, a connected UNIX socket that receives one, or the result of a handle's
    ``to_bytes()``. ``descriptors`` go with the latter alone, and stay the caller's. The buffer is
    the same memory, for reading and writing unless it was shared for reading only. The handle's
    maker has waited for the work on it. The memory lasts as long as the buffer and whatever shares
    it, even after its maker has ended, with one exception: memory that ``hamr.Allocator.cuda`` or
    CUDA libraries have allocated belongs to their process, and must not be used after that has
    ended.

    EOFError if the socket's other end was closed, ValueError if no handle comes, and
    BackendUnavailable if this process does not have the device.
    """
    if type(source) is socket.socket and descriptors is None:
        found = _native.receive_shared(Buffer, source)
        if found is not None:
            return found
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _native.open_shared(Buffer, bytes(source), _numbers(descriptors))
    if descriptors is not None:
        raise TypeError("descriptors are accepted with what to_bytes() returned only")
    if isinstance(source, SharedHandle):
        return _opened_by(source)
    if isinstance(source, Unopened):
        fail(source)
    if not isinstance(source, socket.socket):
        raise TypeError(
            f"source is {source!r}: accepted are a connected UNIX socket, a hamr.SharedHandle, and "
            "what its to_bytes() returned"
        )
    check_socket(source)
    frame, received = _received(source)
    try:
        return _native.open_shared(Buffer, frame, received)
    finally:
        close_all(received)


def _received(connection: socket.socket) -> tuple[bytes, list[int]]:
    """A frame, and its descriptors, which are the caller's."""
    stream = connection.type == socket.SOCK_STREAM
    room = socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS)
    first = _HEADER if stream else _LONGEST + 1
    frame, messages, flags, _ = connection.recvmsg(first, room, socket.MSG_CMSG_CLOEXEC)
    descriptors = array("i")
    for level, kind, data in messages:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) // 4 * 4])
    try:
        if flags & socket.MSG_CTRUNC:
            raise ValueError(
                "descriptors were lost: more came than a handle has, or this process has no room"
            )
        if not frame:
            raise EOFError("the socket's other end was closed: no handle came")
        if stream:
            frame += _exactly(connection, _HEADER - len(frame))
            frame += _exactly(connection, _length(frame) - _HEADER)
    except BaseException:
        close_all(descriptors)
        raise
    return frame, [*descriptors]


def _length(header: bytes) -> int:
    length = int.from_bytes(header[12:14], "little")
    if not header.startswith(_MAGIC) or not _HEADER <= length <= _LONGEST:
        raise ValueError(f"what came over the socket is no handle: it begins with {header!r}")
    return length


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError("the socket's other end was closed in the middle of a handle")
        data += more
    return data
