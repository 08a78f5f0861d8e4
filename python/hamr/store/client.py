"""A process's connection to a store: making, finding and deleting objects."""

from __future__ import annotations

import os
from threading import RLock
from weakref import WeakSet

import hamr._native as _native

from .._base.element import element_of
from .._base.size import int_of
from .._buffer.buffers import Buffer
from .._buffer.pointers import dimensions_of
from .arguments import (
    elements_of,
    flag_of,
    lasting_of,
    metadata_of,
    name_of_object,
    place_of,
    place_or_beside,
    socket_of,
    text_of,
    timeout_of,
)
from .builder import Builder
from .description import ObjectInfo
from .events import Events
from .grouping import Grouping
from .ids import ObjectID, id_of
from .leases import Connection, Lease
from .name_order import in_either_order
from .patience import found_within, is_over, milliseconds_of, seconds_until, until_of
from .several import Several, list_of
from .watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Self, TypeAlias

    from .._base.allocator import Allocator, AllocatorName
    from .._base.place import Device

    IDs: TypeAlias = list[ObjectID]

#: All clients. In a forked child their locks are made anew: a thread may have held one.
_all: WeakSet[Client] = WeakSet()


class Client(Grouping, Several):
    """A connection to the store at ``path``; use ``connect``.

    Methods may be called from several threads, one after the other. Memory that ``get``, ``create``
    and so on return lasts as long as its buffer, and whatever shares its memory, even after
    ``close``. When the server has ended, calls raise StoreLost. Each call first looks for a new
    server at the path, and tells that server what this process has. A forked child makes its own
    connection at its first call.
    """

    def __init__(self, path: str | None = None) -> None:
        self._lock = RLock()
        _all.add(self)
        self._connection: Connection | None = None
        self._closed = False
        self.path = socket_of(path)
        self._connected()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"hamr.store.Client({self.path!r}{state})"

    def __reduce__(self) -> tuple[Any, ...]:
        return connect, (self.path,)

    def close(self) -> None:
        """Close the client.

        The connection ends with the last lease that was taken over it, and then ends calls that are
        in flight in other threads.
        """
        self._closed = True
        self._connection = None

    def _session(self) -> Connection:
        """The connection of this process."""
        found = self._connection
        if found is not None and found._is_here():
            return found
        with self._lock:
            if self._closed:
                raise ValueError("the client was closed")
            found = self._connection
            if found is None or not found._is_here():
                found = Connection()
                _native.store_connect(found, self.path)
                self.path = found.path
                self._connection = found
                if self._closed:  # meanwhile
                    self._connection = None
                    raise ValueError("the client was closed")
        return found

    def _connected(self) -> int:
        """The core's number of this process's connection."""
        return self._session()._token

    # Making objects.

    def create(
        self,
        shape: int | tuple[int, ...],
        dtype: Any = "float64",
        allocator: Allocator | int | AllocatorName | None = None,
        *,
        device: Device | None = None,
        metadata: Any = None,
        evictable: bool = False,
        pinned: bool = False,
        separate: bool = False,
        session: bool = False,
    ) -> Builder:
        """A Builder, whose ``buffer`` is the memory of a new object, to be written and sealed.

        ``allocator`` or ``device`` say where it is: host memory, or memory of a device that can be
        shared, ``cuda_vmm``. ``metadata`` is anything that JSON can hold; the server limits its
        bytes. The store may delete an ``evictable`` object when room is short, while nobody has a
        lease of it. It neither deletes nor spills a ``pinned`` one. Small objects share memory that
        their maker can write to as long as it lives; ``separate`` gives an object memory of its
        own. An object of the ``session`` is deleted when the session ends: with the client and its
        last lease, or with the process, however that ends. Host memory is zeros if it is separate
        or large. Other memory is not initialised.

        StoreFull if there is no room.
        """
        place = place_of(allocator, device)
        flags = _native.store_flags(evictable, pinned, separate, session)
        what = dimensions_of(shape), element_of(dtype), *place, flags, metadata_of(metadata)
        lease = Lease()
        made = _native.store_create(Buffer, lease, self._session(), *what)
        return Builder(lease, made)

    def put(
        self,
        array: Any,
        allocator: Allocator | int | AllocatorName | None = None,
        *,
        device: Device | None = None,
        name: str | None = None,
        metadata: Any = None,
        evictable: bool = False,
        pinned: bool = False,
        separate: bool = False,
        session: bool = False,
        replace: bool = False,
    ) -> ObjectID:
        """Copy an array into a new object, seal it, and return its id.

        ``array`` is anything that ``hamr.buffer`` accepts. Without ``allocator`` and ``device`` the
        object is where the array is: on its device, if that can share memory, else on the host.
        NameTaken if another object has the ``name``. With ``replace`` the new object takes it, as
        by the method ``replace``; if that fails, the old one still has it, and the new one is gone.
        """
        lasting = None if replace is False else lasting_of(name, replace, session)
        bound = session if lasting is None else True
        flags = _native.store_flags(evictable, pinned, separate, bound)
        text = None if metadata is None else metadata_of(metadata)
        name = None if name is None else name_of_object(name)
        source = elements_of(array)
        place = place_or_beside(allocator, device)
        made = _native.store_put(self._session(), source, *place, flags, text)
        return self._taken(made, name, lasting)

    def _named(self, id: ObjectID, name: str, lasting: bool | None) -> None:
        if lasting is None:
            _native.store_put_name(self._connected(), name, id, False)
        else:
            _native.store_replace(self._connected(), name, id, lasting)

    def _taken(self, made: _native.Owned, name: str | None, lasting: bool | None) -> ObjectID:
        """An object's id, with its name. Unless the id is taken, the object is deleted again."""
        if name is not None:
            try:
                self._named(made.id, name, lasting)
            except BaseException:
                made._end()  # at once: a traceback may keep it
                raise
        return made._taken  # type: ignore[no-any-return]

    # Getting and deleting objects.

    def get(
        self,
        id: str | None = None,
        allocator: Allocator | int | AllocatorName | None = None,
        *,
        name: str | None = None,
        device: Device | None = None,
        unsafe: bool = False,
        wait: bool = False,
        timeout: float | None = None,
    ) -> Buffer:
        """An object's elements, in place and read-only, by its id or by ``name=``.

        With ``allocator`` or ``device`` the elements are copied there, unless they are there. An
        object that is not sealed is NotSealed, except with ``unsafe``, which gives the memory as it
        is, for writing, too. A small object shares memory with others: ``unsafe`` gives it
        read-only, and not before one of the others is sealed. With ``wait`` the call waits until an
        object of the id or name exists and is sealed: StoreTimeout after ``timeout`` seconds.
        """
        wanted = None if allocator is None and device is None else place_of(allocator, device)
        unsafe, wait = flag_of("unsafe", unsafe), flag_of("wait", wait)
        until = until_of(timeout_of(timeout))
        known = self._known(id, name, wait, until)
        return self._at(wanted, self._found(known, unsafe, wait, seconds_until(until)))

    @staticmethod
    def _at(wanted: tuple[int, int] | None, found: Buffer) -> Buffer:
        """Elements where they are wanted."""
        if wanted is None or wanted == (found._allocator, found.device):
            return found
        return found.copy(wanted[0], device=wanted[1])

    def _known(self, id: str | None, name: str | None, wait: bool, until: float | None) -> ObjectID:
        """The id that a user gave, or that of a name."""
        if name is not None:
            if id is not None:
                raise TypeError(f"id is {id!r} and name is {name!r}: accepted is one of them")
            id = self.get_name(name, wait, seconds_until(until))
        return id_of(id)

    def _found(
        self, id: ObjectID, unsafe: bool, wait: bool, timeout: float | None, private: bool = False
    ) -> Buffer:
        def look(milliseconds: int) -> Buffer | None:
            what = id, unsafe, private, milliseconds
            return _native.store_get(Buffer, Lease(), self._session(), *what)

        return found_within(timeout, wait, look, f"object {id} was not sealed")

    def delete(self, id: str, force: bool = False) -> None:
        """Delete an object: nobody finds it any more. Its memory is freed with the last lease.

        With ``force`` it no longer counts against the limit, even while there are leases.
        """
        _native.store_delete(self._connected(), id_of(id), flag_of("force", force))

    # Names.

    @in_either_order
    def put_name(self, name: str, id: str, replace: bool = False) -> None:
        """Give an object a name. NameTaken if another object has it, unless ``replace`` is true.

        The object that had the name stays, without it; the method ``replace`` deletes that.
        The order of arguments is that of Go, C and C++. The other order, the id first, is
        deprecated.
        """
        id, name, replace = id_of(id), name_of_object(name), flag_of("replace", replace)
        _native.store_put_name(self._connected(), name, id, replace)

    def replace(self, name: str, id: str, lasting: bool = False) -> None:
        """Give a sealed object a name, and delete the object that had it, in one step.

        Nobody finds the old object any more, and its memory goes with its last lease. It stays if
        it has other names or is not sealed. ``lasting`` ends what ``session=True`` began: the
        object stays when the session ends. After an exception nothing was done, unless the call was
        interrupted or the server was lost, which may have done it before.
        """
        id, name, lasting = id_of(id), name_of_object(name), flag_of("lasting", lasting)
        _native.store_replace(self._connected(), name, id, lasting)

    def watch(self, name: str) -> Watch:
        """The ids of the objects that have a name: first the present one, then each new one.

        The Watch is an iterator that waits, for loops and for ``async for``. Close it in the end.
        When the server has ended it looks for another one for a second, and then raises StoreLost.
        It can be asked again afterwards.
        """
        return Watch(self._session, name_of_object(name))

    def get_name(self, name: str, wait: bool = False, timeout: float | None = None) -> ObjectID:
        """The id of the object with a name; ObjectNotFound without one. ``wait`` waits for one.

        ``timeout`` is in seconds; StoreTimeout after that.
        """
        seconds, wait, name = timeout_of(timeout), flag_of("wait", wait), name_of_object(name)

        def look(milliseconds: int) -> ObjectID | None:
            return _native.store_get_name(self._connected(), name, milliseconds)

        return found_within(seconds, wait, look, f"no object had the name {name!r}")

    def drop_name(self, name: str) -> None:
        """Take a name from its object."""
        name = name_of_object(name)
        _native.store_drop_name(self._connected(), name)

    # Looking at objects.

    def exists(self, id: str) -> bool:
        """Whether there is an object of an id, sealed or not."""
        id = id_of(id)
        return _native.store_exists(self._connected(), id)

    def info(self, id: str) -> ObjectInfo:
        """The facts about an object."""
        id = id_of(id)
        return ObjectInfo._of(_native.store_info(self._connected(), id))

    def metadata(self, id: str) -> Any:
        """An object's metadata, as its maker gave it, or None; ValueError if it is unreadable."""
        found = self.info(id).metadata
        if isinstance(found, ValueError):
            raise found
        return found

    def list(self, name: str = "") -> Iterator[ObjectInfo]:
        """All objects, the oldest first; with ``name`` those whose names begin with it."""
        return self._pages(text_of("name", name))

    def _pages(self, name: str) -> Iterator[ObjectInfo]:
        after = 0
        while True:
            page, after = _native.store_list(self._connected(), name, after)
            yield from map(ObjectInfo._of, page)
            if not after:
                return

    def wait(
        self, ids: Iterable[str], count: int | None = None, timeout: float | None = None
    ) -> tuple[IDs, IDs]:
        """Wait until ``count`` of the objects exist and are sealed; by default all of them.

        Returns those that are ready, and the others. After ``timeout`` seconds it returns even if
        fewer than ``count`` are ready. There may be up to 4,000 ids.
        """
        wanted = list(dict.fromkeys(map(id_of, list_of("ids", ids, "ids"))))
        most = len(wanted) if count is None else int_of("count", count)
        if not 0 <= most <= len(wanted):
            raise ValueError(f"count is {count}: accepted are 0 ... {len(wanted)}, as many as ids")
        until = until_of(timeout_of(timeout))
        while True:
            milliseconds = max(1, milliseconds_of(until))
            ready = _native.store_wait(self._connected(), wanted, most, milliseconds)
            if len(ready) >= most or is_over(until):
                return [i for i in wanted if i in ready], [i for i in wanted if i not in ready]

    def events(self) -> Events:
        """The events of objects from now on: an iterator that waits. Close it in the end."""
        return Events(self._session())

    def pin(self, id: str, pinned: bool = True) -> None:
        """Keep an object from being evicted or spilled, or end that."""
        id, pinned = id_of(id), flag_of("pinned", pinned)
        _native.store_pin(self._connected(), id, pinned)

    def set_evictable(self, id: str, evictable: bool = True) -> None:
        """Allow the store to delete an object when room is short, or end that."""
        id, evictable = id_of(id), flag_of("evictable", evictable)
        _native.store_set_evictable(self._connected(), id, evictable)

    def statistics(self) -> dict[str, Any]:
        """What the server counts: objects, leases, clients, and bytes of each memory."""
        return _native.store_figures(self._connected())


_clients: dict[str, Client] = {}
_clients_lock = RLock()


def connect(path: str | None = None) -> Client:
    """Connect to the store at a socket's path.

    The default is HAMR_STORE, else ``hamr/store.sock`` in XDG_RUNTIME_DIR, else a path in a folder
    of the user in ``/tmp``. StoreLost if no server answers there.
    """
    return Client(path)


def client_of(path: str) -> Client:
    """The process's client for buffers that were pickled."""
    with _clients_lock:
        found = _clients.get(path)
        if found is None:
            found = _clients[path] = Client(path)
        return found


def _after_fork() -> None:
    global _clients_lock
    _clients_lock = RLock()
    for client in _all:
        client._lock = RLock()


os.register_at_fork(after_in_child=_after_fork)
