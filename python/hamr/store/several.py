"""What a client does with many objects at once."""

from __future__ import annotations

import hamr._native as _native

from .._buffer.buffers import Buffer
from .._buffer.many import shared
from .arguments import flag_of, metadata_of, name_of_object, place_of, place_or_beside
from .ids import ObjectID, id_of, is_id
from .leases import Lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .._base.allocator import Allocator, AllocatorName
    from .._base.place import Device


def list_of(name: str, values: Any, what: str) -> list[Any]:
    """Several values that a user gave."""
    single = isinstance(values, (str, bytes, _native.Array))
    if single or not hasattr(type(values), "__iter__"):
        raise TypeError(f"{name} is {values!r:.200}: accepted are several {what}, as a list")
    return list(values)


class Several:
    """The calls of a client for many objects. They stay single ones."""

    if TYPE_CHECKING:  # what a client has
        _connected: Any
        _session: Any

    def put_many(
        self,
        arrays: Iterable[Any],
        allocator: Allocator | int | AllocatorName | None = None,
        *,
        device: Device | None = None,
        names: Iterable[str | None] | None = None,
        metadata: Any = None,
        evictable: bool = False,
        pinned: bool = False,
        separate: bool = False,
        session: bool = False,
    ) -> list[ObjectID]:
        """``put`` of each of the arrays, which does not wait for one before it begins the next.

        ``names`` are as many, of which some may be None. All other arguments are those of ``put``
        and hold for each object. After an exception there is none of the objects; its text begins
        with the item that it is about.
        """
        flags = _native.store_flags(evictable, pinned, separate, session)
        text = None if metadata is None else metadata_of(metadata)
        given = list_of("arrays", arrays, "arrays")
        called = [None] * len(given) if names is None else list_of("names", names, "names")
        called = [None if name is None else name_of_object(name) for name in called]
        if len(called) != len(given):
            raise ValueError(
                f"names are {len(called)}: accepted are {len(given)}, as many as arrays"
            )
        place = place_or_beside(allocator, device)
        sources = [shared(f"arrays[{i}]", each, None) for i, each in enumerate(given)]
        made = _native.store_put_many(self._session(), sources, called, *place, flags, text)
        return made._taken  # type: ignore[no-any-return]

    def get_many(
        self,
        ids: Iterable[str],
        allocator: Allocator | int | AllocatorName | None = None,
        *,
        device: Device | None = None,
    ) -> list[Buffer]:
        """``get`` of each of the objects, which does not wait for one before it asks for the next.

        What has not the form of an id is a name. After an exception no object has a lease more; its
        text begins with the item that it is about.
        """
        wanted = None if allocator is None and device is None else place_of(allocator, device)
        given = list_of("ids", ids, "ids and names")
        names = [None if is_id(each) else name_of_object(each) for each in given]
        known = [
            id_of(each) if name is None else "" for each, name in zip(given, names, strict=True)
        ]
        leases = [Lease() for _ in given]
        found = _native.store_get_many(Buffer, leases, self._session(), known, names)
        if wanted is None:
            return found
        return [
            each
            if wanted == (each._allocator, each.device)
            else each.copy(wanted[0], device=wanted[1])
            for each in found
        ]

    def delete_many(self, ids: Iterable[str], force: bool = False) -> None:
        """``delete`` of each of the objects, of which there may be up to 4,000, in one step.

        After an exception all of them are there, unless it is StoreLost.
        """
        known = list(map(id_of, list_of("ids", ids, "ids")))
        _native.store_delete_many(self._session(), known, flag_of("force", force))
