"""Groups: objects of many arrays in a structure of dictionaries, lists and tuples.

The elements of a group are the arrays and, behind them or between, its directory: JSON that says
what the structure is and where each array lies. See docs/store-protocol.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import hamr._native as _native

from .._base.allocator import Allocator, Transfer
from .._base.element import element_of
from .._buffer.buffers import Buffer
from .._buffer.many import copy_all
from . import libraries
from .arguments import text_of
from .description import group_of
from .errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .ids import ObjectID

BYTES = element_of("uint8")
#: Bytes: each array begins at a multiple, which suits vector loads of every device.
ALIGNMENT = 256
#: Dictionaries, lists and tuples in each other.
MOST_NESTED = 100


class Group(Mapping[str, "Any"]):
    """Arrays of one object, in the structure that they were put in. ``get_group`` returns one.

    ``tree`` is the structure: plain dictionaries, lists and tuples of read-only buffers, and the
    texts, numbers, booleans and None that were among them. A group is a mapping, too, of the paths
    of its arrays. A path is the keys and positions that lead to an array, with dots in between, as
    in ``"layers.0.weight"``. ``group[path]`` is also what lies at the path of a dictionary, list or
    tuple, or another value. The object's memory stays as long as the group or any of its arrays.
    """

    __slots__ = ("_whole", "array_metadata", "id", "metadata", "tree")

    def __init__(
        self, id: ObjectID, whole: Buffer, tree: Any, metadata: Any, array_metadata: dict[str, Any]
    ) -> None:
        self._whole = whole  # keeps the lease, also without arrays
        self.id = id
        self.tree = tree
        self.metadata = metadata  #: of the group, as ``put_group`` was given it
        self.array_metadata = array_metadata  #: of arrays, by path

    def __repr__(self) -> str:
        return f"<hamr.store.Group {self.id} of {len(self)} arrays>"

    def __getstate__(self) -> Any:
        """What a pickle and a copy have: the arrays alone, and not all of the object's elements."""
        found: Any = object.__getstate__(self)
        entries, slots = found
        return entries, {name: value for name, value in slots.items() if name != "_whole"}

    def __getitem__(self, path: str | int) -> Any:
        found = _at(self.tree, str(path) if type(path) is int else path)
        if found is _NOTHING:
            raise KeyError(path)
        return found

    def __iter__(self) -> Iterator[str]:
        return (path for path, value in _walk(self.tree) if isinstance(value, _native.Array))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> Any:
        """Pairs of the paths and the arrays, in order."""
        return dict(p for p in _walk(self.tree) if isinstance(p[1], _native.Array)).items()

    def numpy(self) -> Any:
        """The structure with NumPy's arrays, read-only: in place, or copied from a device."""
        return self._by(libraries.to_numpy())

    def torch(self) -> Any:
        """The structure with PyTorch's tensors, in place, on the device where the group is.

        PyTorch has no read-only tensors. A write to one of these ends the process on the host, and
        on a device it ends all of the process's work there. ``get_group`` with ``private`` gives
        arrays that may be written to.
        """
        return self._by(libraries.to_torch())

    def cupy(self) -> Any:
        """The structure with CuPy's arrays: in place, or copied from the host to the device.

        CuPy has no read-only arrays: as for ``torch``.
        """
        return self._by(libraries.to_cupy())

    def jax(self) -> Any:
        """The structure with JAX's arrays, in place, which JAX itself does not write to."""
        return self._by(libraries.to_jax())

    def _by(self, convert: Callable[[Buffer], Any]) -> Any:
        return _converted(self.tree, None, convert, self.id)

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


_NOTHING = object()


def _converted(node: Any, path: str | None, convert: Callable[[Buffer], Any], id: ObjectID) -> Any:
    """A structure with a library's arrays.

    It is no function within one: that would refer to itself, and keep the group's memory until the
    garbage collector finds it.
    """
    parts = _parts(node)
    if parts is not None:
        made = [(key, _converted(each, _under(path, key), convert, id)) for key, each in parts]
        return dict(made) if isinstance(node, dict) else type(node)(v for _, v in made)
    if not isinstance(node, Buffer):
        return node
    try:
        return convert(node)
    except Exception as error:
        error.add_note(f"It is the array {path!r} of the group {id}.")
        raise


def _parts(node: Any) -> Any:
    """The keys and values of a structure; None of anything else."""
    if isinstance(node, dict):
        return node.items()
    return enumerate(node) if isinstance(node, (list, tuple)) else None


def _under(path: str | None, key: Any) -> str:
    """The path of what a structure of a path has; that of the whole is None."""
    return str(key) if path is None else f"{path}.{key}"


def _walk(node: Any, path: str | None = None) -> Iterator[tuple[str, Any]]:
    for key, each in _parts(node):
        here = _under(path, key)
        if _parts(each) is None:
            yield here, each
        else:
            yield from _walk(each, here)


def _at(node: Any, path: Any) -> Any:
    if not isinstance(path, str):
        return _NOTHING
    if isinstance(node, (list, tuple)):
        first, dot, rest = path.partition(".")
        if not (first.isascii() and first.isdigit() and len(first) < 10) or int(first) >= len(node):
            return _NOTHING
        return _at(node[int(first)], rest) if dot else node[int(first)]
    if not isinstance(node, dict):
        return _NOTHING
    if path in node:
        return node[path]
    end = path.find(".")
    while end >= 0:  # keys may have dots themselves
        found = _at(node[path[:end]], path[end + 1 :]) if path[:end] in node else _NOTHING
        if found is not _NOTHING:
            return found
        end = path.find(".", end + 1)
    return _NOTHING


def places(node: Any, path: str | None = None) -> Iterator[tuple[str, int]]:
    """The paths and numbers of the arrays of a tree as JSON."""
    if type(node) is int:
        yield path or "", node
    elif isinstance(node, dict):
        for key, each in node.items():
            yield from places(each, _under(path, key))
    elif isinstance(node, list) and node[0] in KINDS:
        for i, each in enumerate(node[1:]):
            yield from places(each, _under(path, i))


KINDS = {"list": list, "tuple": tuple}


def paths_of(only: Any) -> tuple[str, ...] | None:
    """The paths that a user asked for."""
    if only is None:
        return None
    if isinstance(only, (str, bytes)) or not isinstance(only, (Sequence, set, frozenset)):
        raise TypeError(f"only is {only!r}: accepted are several paths, as a list")
    return tuple(text_of("only", path) for path in only)


class Wanted:
    """Which paths are asked for: those of ``only``, and what lies under them."""

    def __init__(self, only: tuple[str, ...]) -> None:
        self._paths = frozenset(only)
        self._lengths = {len(path) for path in only}
        self.missing = set(only)  #: that nothing has had so far

    def has(self, path: str) -> bool:
        """Whether a path is one of them."""
        found = False
        for n in self._lengths:
            if path[n : n + 1] in ("", ".") and path[:n] in self._paths:
                self.missing.discard(path[:n])
                found = True
        return found


class Directory:
    """What a group's directory says."""

    def __init__(self, id: ObjectID, text: bytes) -> None:
        self.id = id
        try:
            told = json.loads(text.decode())
            if told["version"] != 1:
                raise ValueError(f"its version is {told['version']!r}")
            self.tree = told["tree"]
            if not isinstance(self.tree, dict) and self.tree[0] not in KINDS:
                raise TypeError("it has no structure")
            self.rows: list[list[int]] = told["arrays"]
            self.elements = tuple(map(element_of, told["types"]))
            self.metadata: dict[str, Any] = told.get("metadata", {})
            if not isinstance(self.metadata, dict):
                raise TypeError("its metadata of arrays are no dictionary")
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise self.unreadable(error) from None

    def unreadable(self, error: object) -> StoreError:
        """The error for a directory that a client of hamr did not write."""
        return StoreError(f"object {self.id} is a group that cannot be read: {error!r}")

    def group(
        self, whole: Buffer, metadata: Any, only: tuple[str, ...] | None, private: bool
    ) -> Group:
        """The group of the object's elements, or the part of it that was asked for."""
        try:
            rows, tree = self.rows, self.tree
            if only is None:
                arrays: Any = self._arrays(whole, rows, private)
            else:
                tree, numbers = self._part(only)
                made = self._arrays(whole, [rows[i] for i in numbers], private)
                arrays = dict(zip(numbers, made, strict=True))
                if self.metadata:
                    paths = {path for path, _ in places(tree)}
                    self.metadata = {p: v for p, v in self.metadata.items() if p in paths}
            return Group(self.id, whole, _decoded(tree, arrays), metadata, self.metadata)
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, _NotThere):
                raise ValueError(str(error)) from None
            raise self.unreadable(error) from None

    def _arrays(self, whole: Buffer, rows: list[list[int]], private: bool) -> list[Buffer]:
        """Arrays in place, or in one piece of new memory on the same device or the host."""
        made = _native.views(Buffer, whole, rows, self.elements)
        if not private or not whole.readonly:
            return made
        largest: dict[int, int] = {}  # by offset, as several arrays may have one
        for i, (row, each) in enumerate(zip(rows, made, strict=True)):
            if each.nbytes > (made[largest[row[0]]].nbytes if row[0] in largest else 0):
                largest[row[0]] = i
        if sum(made[i].nbytes for i in largest.values()) > whole.nbytes:
            raise ValueError("its arrays overlap")
        places: dict[int, int] = {}
        end = 0
        for at, i in largest.items():
            places[at] = end
            end = -(-(end + made[i].nbytes) // ALIGNMENT) * ALIGNMENT
        allocator = Allocator.malloc if whole._host else whole._allocator
        new = Buffer(end, "uint8", allocator, device=None if whole._host else whole.device)
        rows = [[places.get(at, 0), *rest] for at, *rest in rows]
        copies = _native.views(Buffer, new, rows, self.elements)
        to, of = [[some[i] for i in largest.values()] for some in (copies, made)]
        copy_all(("arrays", "arrays"), to, of, (None, None), Transfer.sync, None)
        return copies

    def _part(self, only: tuple[str, ...]) -> tuple[Any, list[int]]:
        """The part of the tree that lies under some paths, and the numbers of its arrays."""
        asked = Wanted(only)

        def select(node: Any, path: str | None, wanted: bool) -> Any:
            wanted = (path is not None and asked.has(path)) or wanted
            if isinstance(node, dict):
                kept = {}
                for key, value in node.items():
                    here = _under(path, key)
                    if type(value) is int:  # most are
                        each = value if asked.has(here) or wanted else _NOTHING
                    else:
                        each = select(value, here, wanted)
                    if each is not _NOTHING:
                        kept[key] = each
                return kept if kept or wanted else _NOTHING
            if isinstance(node, list) and node[0] in KINDS:
                each = [select(v, _under(path, i), wanted) for i, v in enumerate(node[1:])]
                if not wanted and all(e is _NOTHING for e in each):
                    return _NOTHING
                return [node[0], *(None if e is _NOTHING else e for e in each)]
            return node if wanted else _NOTHING

        tree = select(self.tree, None, False)
        if asked.missing:
            raise _NotThere(
                f"only has {min(asked.missing)!r}: accepted are paths in the group, as "
                f"{next((path for path, _ in places(self.tree)), '')!r}, or their beginnings "
                "up to a dot"
            )
        if tree is _NOTHING:  # only is empty
            tree = {} if isinstance(self.tree, dict) else self.tree[:1]
        return tree, list(dict.fromkeys(number for _, number in places(tree)))


class _NotThere(ValueError):
    pass


def _decoded(node: Any, arrays: Any, depth: int = 0) -> Any:
    kind = type(node)
    if kind is int:
        if node < 0:
            raise IndexError(node)
        return arrays[node]
    if node is None or kind is str or kind is bool:
        return node
    if kind is list and node[0] not in KINDS:
        return _number(*node)
    if depth >= MOST_NESTED:
        raise ValueError(f"it is nested more than {MOST_NESTED} levels deep")
    depth += 1
    # Most are numbers of arrays, for which a call each would take longer than all else here.
    if kind is dict:
        return {
            key: arrays[each] if type(each) is int and each >= 0 else _decoded(each, arrays, depth)
            for key, each in node.items()
        }
    return KINDS[node[0]](
        [
            arrays[each] if type(each) is int and each >= 0 else _decoded(each, arrays, depth)
            for each in node[1:]
        ]
    )


def _number(kind: Any, value: Any) -> float:
    if kind == "float":
        return float(value)
    if kind == "value" and type(value) in (int, float):
        return value  # type: ignore[no-any-return]
    raise ValueError(f"it has {value!r:.100} as {kind!r:.100}")


def read(
    id: ObjectID,
    found: Callable[[], Buffer],
    told: str | None,
    only: tuple[str, ...] | None,
    private: bool,
) -> Group:
    """The group of an object, of which its metadata are told."""
    described = None if told is None else json.loads(told)
    facts = group_of(described)
    if described is None or facts is None:
        raise ValueError(f"object {id} is no group: get() returns its elements")
    whole = found()
    try:
        at, nbytes = facts["at"], facts["bytes"]
        [text] = _native.views(_native.Array, whole, [[at, 0, nbytes]], (BYTES,))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise StoreError(f"object {id} is a group that cannot be read: {error!r}") from None
    if not text._host:
        text = _native.copy(_native.Array, text, Allocator.malloc, -1, BYTES)
    directory = Directory(id, _native.bytes_of(text))
    return directory.group(whole, described.get("metadata"), only, private)
