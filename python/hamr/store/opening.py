"""Pickles of buffers of objects: they carry the id, and no elements."""

from __future__ import annotations

import hamr._native as _native

from .._base.element import element_of, item_size, name_of
from .._base.unopened import or_unopened
from .._buffer import pickling
from .._buffer.exported import end_of
from . import leases
from .client import client_of
from .errors import NotSealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)


def place_of(source: _native.Array) -> tuple[Any, ...] | None:
    """The arguments of ``opened`` for the same elements, or for a part of them, a view.

    None if they are not an object's. NotSealed if the object's maker may still write to it.
    """
    lease = leases.find(source)
    if lease is None:
        return None
    if not lease.sealed:
        raise NotSealed(f"object {lease.id} is not sealed: seal it, or pickle a copy")
    offset = source.ptr - lease.address
    return lease.path, str(lease.id), offset, name_of(source._element), source.shape, source.strides


@or_unopened
def opened(
    kind: type[_A],
    path: str,
    id: str,
    offset: int,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> _A:
    """The elements in place, by this process's connection to the store at ``path``."""
    whole, element = client_of(path).get(id), element_of(dtype)
    end = end_of(offset, item_size(element), shape, strides)
    if end > whole.nbytes:
        raise ValueError(
            f"elements end at byte {end}: accepted is within the {whole.nbytes} of {id}"
        )
    return _native.view(kind, whole, offset, shape, strides, element)


pickling.elsewhere.append((opened, place_of))
