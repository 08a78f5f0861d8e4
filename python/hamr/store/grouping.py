"""What a client does with many arrays at once."""

from __future__ import annotations

import hamr._native as _native

from .._base.element import element_of
from .._buffer.buffers import Buffer
from .arguments import flag_of, metadata_of, name_of_object, place_of, timeout_of
from .builder import Builder
from .group_plan import Plan
from .groups import Group, paths_of, read
from .ids import ObjectID, id_of, is_id
from .leases import Lease
from .patience import seconds_until, until_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .._base.allocator import Allocator, AllocatorName
    from .._base.place import Device


class Grouping:
    """The groups of a client."""

    if TYPE_CHECKING:  # what a client has
        get: Any
        get_name: Any
        _found: Any
        _connected: Any
        _session: Any
        _taken: Any

    def put_group(
        self,
        arrays: Any,
        allocator: Allocator | int | AllocatorName | None = None,
        *,
        device: Device | None = None,
        name: str | None = None,
        metadata: Any = None,
        array_metadata: Any = None,
        evictable: bool = False,
        pinned: bool = False,
        session: bool = False,
    ) -> ObjectID:
        """Copy many arrays into one new object, a group, seal it, and return its id.

        ``arrays`` is a dict, list or tuple of what ``hamr.buffer`` accepts, or nested ones, such as
        a state_dict or a pytree. Keys are texts. Texts, numbers, booleans and None among the arrays
        are kept as they are. ``array_metadata`` has what JSON can hold by arrays' paths, such as
        ``"layers.0.weight"``. All other arguments are those of ``put``.

        Without ``allocator`` and ``device`` the group is on the device that has any of the arrays,
        else on the host. Arrays on several devices are a ValueError. Arrays of the same memory are
        stored once, such as weights that layers share. TypeError for anything else in the
        structure, with its path.
        """
        flags = _native.store_flags(evictable, pinned, True, session)
        name = None if name is None else name_of_object(name)
        if metadata is not None:
            metadata_of(metadata)
        plan = Plan(arrays, array_metadata)
        beside = allocator is None and device is None
        place = plan.place() if beside else place_of(allocator, device)
        text = metadata_of(plan.metadata(metadata))
        what = (plan.nbytes,), element_of("uint8"), *place, flags, text
        lease = Lease()
        made = _native.store_create(Buffer, lease, self._session(), *what)
        builder = Builder(lease, made)
        try:
            plan.write(made)
        except BaseException:
            builder._given_up()
            raise
        del lease, made, plan
        return self._taken(builder._seal(), name)

    def get_group(
        self,
        id: str | None = None,
        allocator: Allocator | int | AllocatorName | None = None,
        *,
        name: str | None = None,
        only: Iterable[str] | None = None,
        device: Device | None = None,
        wait: bool = False,
        timeout: float | None = None,
    ) -> Group:
        """The arrays of a group, in place and read-only, in the structure that they were put in.

        The first argument is an id, or a name that has not the form of one. ``only`` are paths of
        what is wanted, or their beginnings up to a dot: ``["layers.0"]``. Of dictionaries the rest
        is left out; in lists and tuples it is None. With ``allocator`` or ``device`` all elements
        are copied there at once, and can be written to. ``wait`` and ``timeout`` are as in ``get``.

        ValueError if the object is no group, or if nothing has one of the paths.
        """
        wanted, wait = paths_of(only), flag_of("wait", wait)
        until = until_of(timeout_of(timeout))
        if id is not None and name is None and not is_id(id):
            id, name = None, id
        if name is not None:
            if id is not None:
                raise TypeError(f"id is {id!r} and name is {name!r}: accepted is one of them")
            id = self.get_name(name, wait, seconds_until(until))
        known = id_of(id)
        if wait:
            self._found(known, False, True, seconds_until(until))
        *_, told, _problem = _native.store_info(self._connected(), known)
        return read(known, lambda: self.get(known, allocator, device=device), told, wanted)
