"""Reading DLPack capsules, which C does: ``native/dlpack_import.c``."""

from __future__ import annotations

from .. import _native
from .cuda_array_interface import wait_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

NAME = "__dlpack__"


def adopt(cls: type[_A], obj: Any, stream: int, transfer: int, wait: Any) -> _A:
    """An array of a class over the memory of a tensor that an object exports."""
    return _native.adopt_dlpack(cls, obj, stream, transfer, wait_of(wait))
