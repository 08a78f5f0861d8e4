"""What a client does with many arrays at once."""

from __future__ import annotations

from contextlib import suppress

import hamr._native as _native

from .._base.element import element_of
from .._base.size import size_of
from .._buffer.buffers import Buffer
from .arguments import flag_of, lasting_of, metadata_of, name_of_object, place_of, timeout_of
from .builder import Builder
from .errors import NameTaken, ObjectNotFound
from .group_builder import GroupBuilder, room_of, rounded
from .group_plan import Plan
from .groups import Group, paths_of, read
from .ids import ObjectID, is_id
from .leases import Lease
from .patience import seconds_until, until_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike
    from typing import Any

    from .._base.allocator import Allocator, AllocatorName
    from .._base.place import Device


#: HAMR_STORE_WHOLE of hamr/store_functions.h: all of the object is written.
WHOLE = 1 << 16


class Grouping:
    """The groups of a client."""

    if TYPE_CHECKING:  # what a client has
        _at: Any
        get_name: Any
        _known: Any
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
        replace: bool = False,
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
        lasting = lasting_of(name, replace, session)
        flags = _native.store_flags(evictable, pinned, True, session if lasting is None else True)
        naming = None if name is None else name_of_object(name), lasting
        if metadata is not None:
            metadata_of(metadata)
        plan = Plan(arrays, array_metadata)
        beside = allocator is None and device is None
        place = plan.place() if beside else place_of(allocator, device)
        return self._put_plan(plan, place, flags, plan.metadata(metadata), naming)

    def _put_plan(
        self,
        plan: Plan,
        place: tuple[int, int],
        flags: int,
        metadata: Any,
        naming: tuple[str | None, bool | None],
        told: Callable[[int], object] | None = None,
    ) -> ObjectID:
        what = (plan.nbytes,), element_of("uint8"), *place, flags | WHOLE, metadata_of(metadata)
        lease = Lease()
        made = _native.store_create(Buffer, lease, self._session(), *what)
        builder = Builder(lease, made)
        try:
            plan.write(made, told)
        except BaseException:
            builder._given_up()
            raise
        del lease, made
        return self._taken(builder._seal(), *naming)  # type: ignore[no-any-return]

    def build_group(
        self,
        name: str | None = None,
        *,
        bytes: int | str,  # noqa: A002
        device: Device | None = None,
        metadata: Any = None,
        evictable: bool = False,
        pinned: bool = False,
        session: bool = False,
        replace: bool = False,
    ) -> GroupBuilder:
        """A GroupBuilder: memory of a new group, in which its arrays are made, not copied.

        ``bytes`` is a number or a text, as "20GiB": the sizes of all arrays, each rounded up to 512
        bytes, and what libraries take beside them. Room for the directory is added. The memory is
        the host's, or that of ``device``. The group gets its ``name`` when it is sealed. All other
        arguments are those of ``put_group``.

        StoreFull if there is no room, NameTaken if another object has the name, unless the group
        will ``replace`` it.
        """
        lasting = lasting_of(name, replace, session)
        flags = _native.store_flags(evictable, pinned, True, session if lasting is None else True)
        name = None if name is None else name_of_object(name)
        size = rounded(size_of("bytes", bytes))
        if size > 2**62:
            raise ValueError(f"bytes is {bytes!r}: accepted are 0 ... 2**62 bytes")
        if metadata is not None:
            metadata_of(metadata)
        place = place_of(None, device)
        if name is not None and lasting is None:
            with suppress(ObjectNotFound):
                other = self.get_name(name)
                error = NameTaken(f"the name {name!r} is that of object {other}")
                error.id = other
                raise error
        what = (size + room_of(size),), element_of("uint8"), *place, flags, ""
        lease = Lease()
        made = _native.store_create(Buffer, lease, self._session(), *what)
        return GroupBuilder(self, Builder(lease, made), size, (name, lasting), metadata)

    def load_group(
        self,
        path: str | PathLike[str],
        allocator: Allocator | int | AllocatorName | None = None,
        *,
        device: Device | None = None,
        name: str | None = None,
        only: Iterable[str] | None = None,
        metadata: Any = None,
        progress: bool = False,
        evictable: bool = False,
        pinned: bool = False,
        session: bool = False,
        replace: bool = False,
    ) -> ObjectID:
        """Put the arrays of a safetensors file, or of a folder's files, as one group.

        The group is a dict of the arrays by their names. It is on the host unless ``allocator`` or
        ``device`` says otherwise. Of a folder with an index, as ``model.safetensors.index.json``,
        the files are those that the index names; without one they are all whose names end with
        ``.safetensors``. ``only`` are names of what is wanted, or their beginnings up to a dot. The
        group's metadata are the files' own, as far as no two files differ, unless ``metadata`` are
        given. ``progress`` shows a bar of tqdm, where that is installed. All other arguments are
        those of ``put``.

        The bytes go from the pages of the file to the group, without memory in between. Who makes
        a file shorter meanwhile ends the process with SIGBUS, as with all files that are mapped.

        ValueError for a file that is no safetensors file or that has an element type without an
        equivalent, and for two arrays of one name. ImportError without the package safetensors.
        """
        from .files import arrays_of, bar_of

        lasting = lasting_of(name, replace, session)
        flags = _native.store_flags(evictable, pinned, True, session if lasting is None else True)
        wanted = paths_of(only)
        naming = None if name is None else name_of_object(name), lasting
        if metadata is not None:
            metadata_of(metadata)
        place = place_of(allocator, device)
        shows = flag_of("progress", progress)
        arrays, says = arrays_of(path, wanted)
        plan = Plan(arrays, None)
        del arrays
        what = plan.metadata(says or None if metadata is None else metadata)
        bar = bar_of(plan.copied, str(path)) if shows else None
        try:
            if bar is None:
                return self._put_plan(plan, place, flags, what, naming)
            with bar:
                return self._put_plan(plan, place, flags, what, naming, bar.update)
        except ValueError as error:
            if metadata is not None or not str(error).startswith("metadata is"):
                raise
            told = str(error).removeprefix("metadata")
            raise ValueError(f"metadata of {path}{told}; metadata={{}} leaves them out") from None

    def get_group(
        self,
        id: str | None = None,
        allocator: Allocator | int | AllocatorName | None = None,
        *,
        name: str | None = None,
        only: Iterable[str] | None = None,
        private: bool = False,
        device: Device | None = None,
        wait: bool = False,
        timeout: float | None = None,
    ) -> Group:
        """The arrays of a group, in place and read-only, in the structure that they were put in.

        The first argument is an id, or a name that has not the form of one. ``only`` are paths of
        what is wanted, or their beginnings up to a dot: ``["layers.0"]``. Of dictionaries the rest
        is left out; in lists and tuples it is None. With ``allocator`` or ``device`` all elements
        are copied there at once, unless they are there. ``private`` arrays can be written to, and
        nobody else sees it: on the host their pages are the group's until they are written to, on a
        device what is wanted is copied beside it. ``wait`` and ``timeout`` are as in ``get``.

        ValueError if the object is no group, or if nothing has one of the paths.
        """
        wanted, wait = paths_of(only), flag_of("wait", wait)
        private = flag_of("private", private)
        until = until_of(timeout_of(timeout))
        if id is not None and name is None and not is_id(id):
            id, name = None, id
        known = self._known(id, name, wait, until)
        if wait:
            self._found(known, False, True, seconds_until(until))
        *_, told, _problem = _native.store_info(self._connected(), known)
        place = None if allocator is None and device is None else place_of(allocator, device)
        found = lambda: self._at(place, self._found(known, False, False, None, private))  # noqa: E731
        return read(known, found, told, wanted, private)
