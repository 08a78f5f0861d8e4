"""hamr.from_dlpack: the array API standard's way to take another library's array."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator
from .._base.cuda_devices import current_device
from .._base.place import device_of_spelling
from .._base.stream import blocks, entered
from .._protocols.dlpack import CPU, CUDA, NAME, adopt
from .._protocols.fields import exact, short
from .._protocols.location import stream_near
from .._protocols.meaning import refuse_meaning
from .._protocols.wait_setting import wait_of
from .buffers import Buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HOST = -1


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Buffer:
    """A buffer of the elements of ``x``, an object with ``__dlpack__`` or a DLPack capsule.

    ``device`` is where the elements shall be: None is where they are, -1 or (1, 0) the host,
    n or (2, n) CUDA device n; "cpu", "cuda", "cuda:n" and device objects of PyTorch, JAX
    and CuPy mean the same. With a ``copy`` of True they are copied to memory of hamr's own,
    with None only if they are elsewhere, with False never; the producer is told of False.
    Without a copy the memory of ``x`` is shared, and kept alive. The buffer's stream is that of a
    ``with stream:`` block, else the default stream.

    Errors of the producer are passed on. TypeError for elements that hamr does not have;
    ValueError for a tensor that cannot be right, or a device that does not exist; BufferError for
    another kind of device, or if ``copy=False`` would need a copy; BackendUnavailable for CUDA
    without a driver.
    """
    refuse_meaning(x)
    if device is None and copy is None and (not entered or blocks() is None):  # chained is slower
        known = _native.adopt_dlpack(Buffer, x, 0, 1, wait_of(None))
        shared = adopt(Buffer, x, 0, 1, None) if known is None else known
        shared._source = NAME
        return shared
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"copy is {short(copy)}: accepted are True, False and None")
    place = None if device is None else _place_of(device)
    order = None if blocks() is None else stream_near(None, x)
    number = 0 if order is None else order._value
    shared = adopt(Buffer, x, number, 1, None, False if copy is False else None)
    shared._source = NAME
    if order is None and blocks() is not None:  # only now a capsule says where its memory is
        order = stream_near(None, shared)
    if order is not None:
        shared._set_order(order._value, shared._transfer, order)
    if place is None or place == shared.device:
        return shared.copy() if copy else shared
    if copy is False:
        raise BufferError(
            f"copy is False: the elements are on {_name_of(shared.device)}, "
            f"and device is {short(device)}"
        )
    if place == _HOST:
        return shared.copy(Allocator.malloc)
    return shared.copy(Allocator.cuda, place)


def _place_of(device: Any) -> int:
    """The number of a device, or -1 for the host."""
    accepted = (
        "accepted are None, -1 or (1, 0) for the host, n or (2, n) for CUDA device n, 'cpu', "
        "'cuda:n' and device objects of PyTorch, JAX and CuPy"
    )
    if not isinstance(device, (int, tuple)):
        try:
            host, named = device_of_spelling(device)
        except (TypeError, ValueError) as error:
            raise type(error)(f"device is {short(device)}: {accepted}") from None
        return _HOST if host else current_device() if named < 0 else named
    pair = device if isinstance(device, tuple) else (CUDA, device)
    kind, number = map(exact, pair) if len(pair) == 2 else (None, None)
    if kind is None or number is None:
        raise TypeError(f"device is {short(device)}: {accepted}")
    if kind not in (CPU, CUDA):
        raise BufferError(f"device is {short(device)}: {accepted}")
    if (kind == CPU and number == 0) or (pair is not device and number == _HOST):
        return _HOST
    if kind == CPU or not 0 <= number < 2**31:
        raise ValueError(f"device is {short(device)}: {accepted}")
    return number


def _name_of(device: int) -> str:
    return "the host" if device < 0 else f"CUDA device {device}"
