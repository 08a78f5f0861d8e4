"""A new group whose arrays are made in the memory of its object."""

from __future__ import annotations

import json
from bisect import bisect_left
from contextlib import suppress
from threading import RLock

import hamr._native as _native

from .._base.allocator import Transfer
from .._base.element import TABLE, element_of, name_of
from .._base.errors import DeviceError
from .._base.library import core
from .._base.parts import UNIT, Parts
from .._buffer.buffers import Buffer, buffer
from .._buffer.many import copy_all
from .._buffer.pointers import dimensions_of
from .arguments import flag_of, json_of, metadata_of, text_of
from .builder import SealedAtEnd
from .group_plan import Tree, clashes, directory_of, facts_of, metadata_with
from .groups import ALIGNMENT, BYTES, KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .builder import Builder
    from .ids import ObjectID


def rounded(nbytes: int) -> int:
    """The bytes that are handed out where a user asked for so many."""
    return -(-nbytes // UNIT) * UNIT


def room_of(nbytes: int) -> int:
    """The bytes of an object behind the arrays, for the directory: more lies where arrays may."""
    return (64 << 10) + nbytes // 4096


class GroupBuilder(SealedAtEnd):
    """The memory of a new group, to make its arrays in. ``Client.build_group`` returns one.

    Arrays are made by ``empty``, or by torch and CuPy inside
    ``hamr.allocators.use_in_torch(space)`` and ``use_in_cupy(space)``. ``add`` makes them a part of
    the group. The end of the ``with`` block, or ``seal()``, seals the group without a copy, after
    all work on its device. An exception, or ``abort()``, discards it. What shares the memory keeps
    it. Nothing must write there any more: on a device writes fail, on the host nobody else sees
    them. ``id`` is that of the group, ``device`` is -1 on the host. ``metadata`` may be set until
    the seal.
    """

    def __init__(
        self,
        client: Any,
        builder: Builder,
        nbytes: int,
        naming: tuple[str | None, bool | None],
        metadata: Any,
    ) -> None:
        lease, whole = builder._taken()
        self._client, self._builder, self._base = client, builder, whole.ptr
        self._allocator, self.device = whole._allocator, whole.device
        self.id: ObjectID = builder.id
        self._naming, self.metadata = naming, metadata
        self._lock = RLock()
        self._tree: dict[str, Any] = {}
        self._is_array: dict[str, bool] = {}  # by paths
        self._types: dict[int, int] = {}
        self._rows: list[list[int]] = []
        self._metadata: dict[str, Any] = {}  # of arrays
        self._sources: list[_native.Array] = []  # keeps them
        self._places = _Places(self._base)
        called = self.id if naming[0] is None else repr(naming[0])
        self._parts = Parts(lease, nbytes, self.device, f"the group {called}")

    def __repr__(self) -> str:
        state = "finished"
        if not self._is_finished():
            state = f"{len(self._rows)} arrays in {self.bytes} bytes"
        return f"<hamr.store.GroupBuilder of {self.id}, {state}>"

    def _is_finished(self) -> bool:
        return self._builder._is_finished()

    def _whole(self) -> Buffer:
        """All bytes, with those for the directory; an error if the group is finished."""
        lease, whole = self._builder._taken()
        lease.token()  # refuses a forked child
        return whole

    @property
    def bytes(self) -> int:
        """The bytes for arrays, with what the size asked for was rounded up to."""
        return self._parts.size

    @property
    def free(self) -> int:
        """The bytes that nothing has."""
        self._whole()
        return self._parts.free()

    @property
    def used(self) -> int:
        """The bytes that arrays have, with those that torch keeps for more."""
        return self.bytes - self.free

    def empty(self, shape: int | tuple[int, ...], dtype: Any = "float64") -> Buffer:
        """A buffer in the memory of the group, whose elements are not initialised.

        Its bytes are rounded up to multiples of 512. They are free again when nothing shares the
        buffer; what is added is kept. OutOfMemory if there is no room.
        """
        self._whole()
        element, sizes = element_of(dtype), dimensions_of(shape)
        nbytes = TABLE[element][3]
        for each in sizes:
            if each < 0:
                raise ValueError(f"shape is {shape!r}: accepted are sizes from 0 on")
            nbytes *= each
        part = self._parts.take(nbytes)
        place = None if self.device < 0 else self.device
        return Buffer.from_pointer(
            part.address, sizes, dtype, self._allocator, device=place, owner=part
        )

    def add(self, path: str, array: Any, metadata: Any = None, *, copy: bool = False) -> None:
        """Make an array a part of the group, under a key of its own, without a copy.

        ``array`` is what ``hamr.buffer`` accepts. It lies in the memory of the group, at a multiple
        of 256 bytes, with its elements in C order, and has no bytes in common with what was added
        before, unless both begin at one place. With ``copy`` what does not is copied to new memory
        of the group. Dictionaries, lists and tuples of arrays, texts, numbers, booleans and
        None are added as ``put_group`` takes them; no two arrays have one path. ``metadata`` is
        anything that JSON can hold.

        ValueError with the path for arrays that do not fit; nothing was added then.
        """
        path, copy = text_of("path", path), flag_of("copy", copy)
        told = None if metadata is None else json.loads(json_of("metadata", metadata))
        tree = Tree({path: array})
        sources, paths = tree.sources(), tree.paths()
        if told is not None and paths != [path]:
            raise ValueError(f"metadata is {metadata!r}: accepted is None for what is no array")
        self._whole()
        with self._lock:
            self._whole()
            if path in self._tree:
                raise ValueError(f"path is {path!r}, which was added before: accepted are others")
            for each, is_array in tree.is_array.items():
                if clashes(self._is_array, each, is_array):
                    raise ValueError(
                        f"arrays has the path {each[1:]!r} already: accepted are arrays whose "
                        "paths nothing else has"
                    )
            new = tree.is_array.keys() - self._is_array.keys()
            before = len(self._rows)
            self._places.keep()
            try:
                for i, each in enumerate(paths):
                    error = self._unfit(each, sources[i])
                    if error is not None:
                        if not copy:
                            raise error
                        sources[i] = self._copied(sources[i])
                    self._append(sources[i], self._places.note(sources[i], each))
                if told is not None:
                    self._metadata[path] = told
                self._is_array.update(tree.is_array)
                self._tree[path] = _renumbered(tree.json[path], before)
            except BaseException:  # KeyboardInterrupt comes anywhere
                for told_of in (self._tree, self._metadata):
                    told_of.pop(path, None)
                for made in (self._rows, self._sources):
                    del made[before:]
                for each in new:
                    self._is_array.pop(each, None)
                self._places.undo()
                raise

    def _append(self, source: _native.Array, at: int) -> None:
        kind = self._types.setdefault(source._element, len(self._types))
        # The user's own may be closed, or grow.
        rows = [[0, 0, *source.shape]]
        self._sources += _native.views(_native.Array, source, rows, (source._element,))
        self._rows.append([at, kind, *source.shape])

    def _copied(self, source: _native.Array) -> Buffer:
        made = self.empty(source.shape, name_of(source._element))
        copy_all(("arrays", "arrays"), [made], [source], (None, None), Transfer.sync, None)
        return made

    def _unfit(self, path: str, source: _native.Array) -> ValueError | None:
        """Why an array cannot be a part of the group where it lies."""
        nbytes, at = source.nbytes, source.ptr - self._base
        if not nbytes:
            return None
        if source.device != self.device or not 0 <= at <= self.bytes - nbytes:
            return ValueError(
                f"arrays[{path!r}] lies in other memory: accepted are arrays of empty(), those "
                "that torch or CuPy makes inside hamr.allocators.use_in_torch(space) or "
                "use_in_cupy(space), and others with copy=True"
            )
        if not source.is_contiguous:
            return ValueError(
                f"arrays[{path!r}] has the strides {source.strides} and the shape {source.shape}: "
                "accepted are elements in C order, or copy=True"
            )
        if at % ALIGNMENT:
            return ValueError(
                f"arrays[{path!r}] begins at byte {at} of the group: accepted are multiples of "
                f"{ALIGNMENT}, or copy=True"
            )
        other = self._places.other(at, nbytes)
        if other is not None:
            return ValueError(
                f"arrays[{path!r}] has bytes in common with arrays[{other!r}]: accepted are arrays "
                "that begin at one place or have none, or copy=True"
            )
        return None

    def seal(self) -> ObjectID:
        """Let others get the group, after all work on its device, and return its id.

        As ``Builder.seal``. NameTaken if another object has the name by now: the group is discarded
        then. If the directory does not fit, or metadata are wrong, the group stays as it was, and
        can be sealed later.
        """
        self._whole()
        with self._lock:
            whole = self._whole()
            if self.metadata is not None:
                metadata_of(self.metadata)
            text = directory_of(self._tree, self._types, self._rows, self._metadata or None)
            at, part = self.bytes, None
            if len(text) > whole.nbytes - at:
                part = self._parts.take(len(text))
                at = part.address - self._base
            self._settle()
            [to] = _native.views(_native.Array, whole, [[at, 0, len(text)]], (BYTES,))
            copy_all(("arrays",) * 2, [to], [buffer(text)], (None, None), Transfer.sync, None)
            del to, whole
            told = metadata_with(facts_of(self._rows, at, text), self.metadata)
            session = self._client._connected()
            _native.store_set_metadata(session, self.id, metadata_of(told))
            # An earlier seal may have been interrupted once nothing was handed out any more.
            was_over = self._parts.lease is None
            is_held = self._end() > 0 or was_over
            del part
            sealed = self._builder._seal(is_held)
            return self._client._taken(sealed, *self._naming)  # type: ignore[no-any-return]

    def _settle(self) -> None:
        """Wait for all work on the memory."""
        if self.device >= 0:
            core().SynchronizeDevice("cuda", self.device)
        for source in self._sources:
            _native.settle(source)

    def abort(self) -> None:
        """Discard the group, after all work on its device. What shares its memory keeps it."""
        self._whole()
        with self._lock:
            self._whole()
            try:
                self._settle()
            finally:
                try:
                    self._end()
                finally:
                    self._builder.abort()

    def _end(self) -> int:
        """Hand out no more memory; how many parts torch has."""
        self._sources.clear()
        return self._parts.close()

    def _given_up(self) -> None:
        """Abort after another error, which is the one that is raised."""
        with suppress(DeviceError):
            self._settle()
        try:
            self._end()
        finally:
            self._builder._given_up()


class _Places:
    """Where the arrays of a group lie: its memory begins at an address."""

    def __init__(self, base: int) -> None:
        self._base = base
        self._starts: list[int] = []  # offsets, in order
        self._most: dict[int, tuple[int, str]] = {}  # by offset, the bytes of the longest, its path
        #: What was noted since ``keep``: offset, and what was there.
        self._before: list[tuple[int, tuple[int, str] | None]] = []

    def other(self, at: int, nbytes: int) -> str | None:
        """The path of an array that begins elsewhere, and has bytes in common."""
        i = bisect_left(self._starts, at)
        behind = i + (at in self._most)
        for start in self._starts[max(i - 1, 0) : i] + self._starts[behind : behind + 1]:
            if start < at + nbytes and at < start + self._most[start][0]:
                return self._most[start][1]
        return None

    def note(self, source: _native.Array, path: str) -> int:
        """Where an array begins from now on."""
        at, nbytes = (source.ptr - self._base, source.nbytes) if source.nbytes else (0, 0)
        known = self._most.get(at)
        self._before.append((at, known))
        if nbytes > (known or (0,))[0]:
            self._most[at] = nbytes, path
        if nbytes and known is None:
            self._starts.insert(bisect_left(self._starts, at), at)
        return at

    def keep(self) -> None:
        """Undo nothing of what was noted before."""
        self._before.clear()

    def undo(self) -> None:
        """Forget what was noted since ``keep``, the last of it perhaps in part."""
        while self._before:
            at, known = self._before[-1]
            if known is not None:
                self._most[at] = known
            elif self._most.pop(at, None):
                i = bisect_left(self._starts, at)
                if self._starts[i : i + 1] == [at]:
                    del self._starts[i]
            del self._before[-1]


def _renumbered(node: Any, by: int) -> Any:
    """A tree as JSON whose arrays are numbered from another number on."""
    if type(node) is int:
        return node + by
    if isinstance(node, dict):
        return {key: _renumbered(each, by) for key, each in node.items()}
    if isinstance(node, list) and node[0] in KINDS:
        return [node[0], *(_renumbered(each, by) for each in node[1:])]
    return node
