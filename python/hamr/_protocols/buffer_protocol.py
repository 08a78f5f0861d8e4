"""Reading the buffer protocol (PEP 3118), in C: ``native/protocols/buffer_import.c``."""

from __future__ import annotations

import hamr._native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

NAME = "buffer"


def adopt(cls: type[_A], obj: Any, stream: int, transfer: int, wait: Any) -> _A | None:
    """An array of a class over an object's buffer; None for element types that hamr lacks."""
    del wait  # host memory has no stream
    return _native.adopt_buffer(cls, obj, stream, transfer)
