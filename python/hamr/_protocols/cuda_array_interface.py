"""Reading __cuda_array_interface__, all versions.

C reads the simplest form, which libraries send (``_native.adopt_known``). This module reads
all other forms, and raises errors.
"""

from __future__ import annotations

import hamr._native as _native

from .fields import check, exact, pair_of, read, short, unreadable
from .wait_setting import wait_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

NAME = "__cuda_array_interface__"

_REQUIRED = ("shape", "typestr", "data", "version")
_ANY = -1  # the runtimes are asked whose memory it is


def adopt(cls: type[_A], obj: Any, stream: int, transfer: int, wait: Any) -> _A | None:
    """An array of a class over the memory that the interface of ``obj`` describes.

    Work on it runs after the present work of the producer's stream, unless ``wait`` is
    false. None if the interface names no stream and the object has DLPack, by which the
    producer learns the consumer's stream: arrays of PyTorch and JAX may be in use though
    the interface does not say so.
    """
    has_dlpack = hasattr(obj, "__dlpack__")
    try:
        interface = getattr(obj, NAME)
    except Exception as error:
        if has_dlpack:
            return None
        raise unreadable(obj, NAME, error) from error
    if has_dlpack and not (isinstance(interface, dict) and interface.get("stream")):
        return None
    return adopt_interface(cls, obj, interface, stream, transfer, wait_of(wait))


def adopt_interface(
    cls: type[_A], obj: Any, interface: Any, stream: int, transfer: int, wait: bool
) -> _A:
    """An array of a class over the memory that an interface dictionary of ``obj`` describes."""
    fields, typestr, shape, strides, version = read(NAME, interface, _REQUIRED)
    if version < 0:
        raise ValueError(f"version is {version}: accepted are 0 and later")
    pointer, readonly = pair_of(fields["data"])
    producer = _producer(fields.get("stream"))
    element = check(obj, typestr, shape, strides, pointer, 0, -1, fields.get("mask"), version)
    return _native.adopt_device(
        cls,
        element,
        _ANY,
        _ANY,
        stream,
        transfer,
        pointer,
        shape,
        strides,
        readonly,
        obj,
        producer if wait else 0,
    )


def _producer(stream: Any) -> int:
    """The stream that the producer's work is on; 0 if there is nothing to wait for."""
    if stream is None:
        return 0
    handle = exact(stream)
    if handle is None:
        raise TypeError(f"stream is {short(stream)}: accepted are None and an int")
    if not 0 <= handle < 2**64:
        raise ValueError(f"stream is {short(stream)}: accepted are 1 ... 2**64-1")
    if handle == 0:
        raise ValueError(
            "stream is 0: forbidden, since it does not say which default stream; "
            "accepted are None, 1 for the legacy one, 2 for the per-thread one, or a handle"
        )
    return handle
