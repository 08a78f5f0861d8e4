"""Reading Arrow's C data interface, C device data interface and C stream interface.

C reads the capsules: ``native/protocols/arrow_import.c`` and, for what they describe,
``native/protocols/arrow_layout.c``. This module orders work after a producer's event.
"""

from __future__ import annotations

import hamr._native as _native

from .._base.library import core
from .._base.stream import Stream
from .wait_setting import wait_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

NAME = "__arrow_c_device_array__"  # and, without it, __arrow_c_array__ and __arrow_c_stream__


def adopt(cls: type[_A], obj: Any, stream: int, transfer: int, wait: Any) -> _A:
    """An array of a class over an Arrow array's elements, which are read-only.

    Lists of a fixed size become dimensions. Work on a device's memory runs after the producer's
    event, unless ``wait`` is false. TypeError for other element types and dictionary encoding,
    ValueError for nulls and several chunks, BufferError for a device that is not CUDA's.
    """
    followers = []  # streams, which must live until the memory knows them

    def order(address: int, event: int) -> int:
        from .._base.location import device_of_address

        follower = Stream(device=max(device_of_address(address), 0))
        core().StreamWaitEvent(*follower._named(), event)
        followers.append(follower)
        return follower.ptr

    return _native.adopt_arrow(cls, obj, stream, transfer, order if wait_of(wait) else None)
