"""A new group: where its arrays go, and what its directory says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite

import hamr._native as _native

from .._base.allocator import Allocator, Transfer
from .._base.element import name_of
from .._base.library import core
from .._buffer.buffers import Buffer, buffer
from .._buffer.many import copy_all, shared
from .arguments import json_of, text_of
from .description import GROUP
from .groups import ALIGNMENT, BYTES, MOST_NESTED, Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Bytes that are copied between two steps of a progress bar, and so much more as an array has.
SHARE = 256 << 20
#: Of integers in the structure: JSON readers of all languages take their digits.
MOST_BITS = 2048


def clashes(is_array: dict[str, bool], path: str, array: bool) -> bool:
    """Whether a path is not free: one of an array is of nothing else."""
    known = is_array.get(path)
    return bool(known) or (array and known is not None)


class Tree:
    """A structure as JSON: arrays are integers, and lists begin with what they are."""

    def __init__(self, arrays: Any) -> None:
        self.leaves: list[Any] = []
        self.is_array: dict[str, bool] = {}  #: by path, behind a dot
        if isinstance(arrays, Group):
            arrays = arrays.tree
        if not isinstance(arrays, (Mapping, list, tuple)):
            raise TypeError(
                f"arrays is a {type(arrays).__name__}: accepted is a dict, list or tuple of "
                "arrays, or nested ones; put() takes one array"
            )
        self.json = self._encoded(arrays, "", 0)

    def _encoded(self, value: Any, path: str, depth: int) -> Any:
        told = self._as_json(value, path, depth)
        is_array = type(told) is int
        if clashes(self.is_array, path, is_array):
            raise ValueError(
                f"arrays has the path {path[1:]!r} twice: accepted are arrays whose paths nothing "
                "else has"
            )
        self.is_array[path] = is_array
        return told

    def _as_json(self, value: Any, path: str, depth: int) -> Any:
        kind = type(value)
        if kind in (list, tuple):
            self._nest(depth, path)
            each = [self._encoded(v, f"{path}.{i}", depth + 1) for i, v in enumerate(value)]
            return ["list" if kind is list else "tuple", *each]
        if kind is dict or (not issubclass(kind, _native.Array) and isinstance(value, Mapping)):
            self._nest(depth, path)
            items = (value.tree if isinstance(value, Group) else value).items()
            told: dict[str, Any] = {}
            for key, each in items:
                name = self._key(key, path)
                if name in told:
                    where = f"arrays[{path[1:]!r}]" if path else "arrays"
                    raise ValueError(f"{where} has the key {name!r} twice: accepted are other keys")
                told[name] = self._encoded(each, f"{path}.{name}", depth + 1)
            return told
        if value is None or kind is bool:
            return value
        if kind is str:
            return text_of(f"arrays[{path[1:]!r}]", value)
        if kind is int:
            if value.bit_length() > MOST_BITS:
                raise ValueError(
                    f"arrays[{path[1:]!r}] is an integer of {value.bit_length()} bits: accepted "
                    f"are {MOST_BITS}; more are an array's"
                )
            return ["value", value]
        if kind is float:
            return ["value", value] if isfinite(value) else ["float", str(value)]
        if isinstance(value, tuple):
            raise TypeError(
                f"arrays[{path[1:]!r}] is a {kind.__name__}: accepted is a plain tuple, list or "
                "dict, as get_group returns one; write tuple(x)"
            )
        self.leaves.append(value)
        return len(self.leaves) - 1

    @staticmethod
    def _nest(depth: int, path: str) -> None:
        if depth >= MOST_NESTED:
            raise ValueError(
                f"arrays[{path[1:41]!r}...] is nested more than {MOST_NESTED} levels deep: "
                "accepted are fewer"
            )

    @staticmethod
    def _key(key: Any, path: str) -> str:
        where = f"arrays[{path[1:]!r}]" if path else "arrays"
        if not isinstance(key, str):
            raise TypeError(f"{where} has the key {key!r}: accepted are texts, as {str(key)!r}")
        return str.__str__(text_of(f"a key of {where}", key))

    def paths(self) -> list[str]:
        """The paths of the arrays."""
        return [path[1:] for path, is_array in self.is_array.items() if is_array]

    def sources(self) -> list[_native.Array]:
        """The arrays, shared."""
        return [
            shared(f"arrays[{path!r}]", array, None)
            for path, array in zip(self.paths(), self.leaves, strict=True)
        ]


class Plan:
    """What a new group is to be: where each of its arrays goes, and its directory."""

    def __init__(self, arrays: Any, array_metadata: Any) -> None:
        tree = Tree(arrays)
        self.sources = tree.sources()
        self.types: dict[int, int] = {}
        self.rows: list[list[int]] = []
        self._copied: list[tuple[list[int], _native.Array]] = []
        self._lay()
        metadata = None if array_metadata is None else _of_arrays(array_metadata, tree)
        text = directory_of(tree.json, self.types, self.rows, metadata)
        self._facts = facts_of(self.rows, self.end, text)
        row = [self.end, self.types.setdefault(BYTES, len(self.types)), len(text)]
        self._copied.append((row, buffer(text)))
        self.nbytes = self.end + len(text)

    def _lay(self) -> None:
        """Give each array its place. Arrays of the same memory have one."""
        places: dict[Any, int] = {}
        self.end = 0
        for each in self.sources:
            nbytes, shape = each.nbytes, each.shape
            what: Any = each.ptr, nbytes, each.device
            if not each.is_contiguous:
                what += shape, each.strides, each._element
            at = places.get(what) if nbytes else self.end
            kind = self.types.setdefault(each._element, len(self.types))
            self.rows.append([self.end if at is None else at, kind, *shape])
            if at is None:
                places[what] = self.end
                self._copied.append((self.rows[-1], each))
                self.end = -(-(self.end + nbytes) // ALIGNMENT) * ALIGNMENT

    @property
    def copied(self) -> int:
        """The bytes that ``write`` copies."""
        return sum(source.nbytes for _, source in self._copied)

    def metadata(self, metadata: Any) -> dict[str, Any]:
        """The object's metadata: the user's, and where the directory is."""
        return metadata_with(self._facts, metadata)

    def place(self) -> tuple[int, int]:
        """The allocator and the device of an object beside the arrays."""
        beside = {(each._allocator, each.device) for each in self.sources}
        found = {
            (allocator, device)
            for allocator, device in ((core().StoreAllocator(*b), b[1]) for b in beside)
            if allocator != Allocator.shared
        }
        if len(found) > 1:
            devices = sorted(device for _, device in found)
            raise ValueError(
                f"arrays are on the devices {devices}: accepted are arrays of one device and of "
                "the host, or device= with the one to put them on"
            )
        return found.pop() if found else (Allocator.shared, -1)

    def write(self, whole: Buffer, told: Callable[[int], object] | None = None) -> None:
        """Copy the arrays and the directory into the memory of the object.

        ``told`` is called with the bytes of each share.
        """
        sources = [source for _, source in self._copied]
        rows = [row for row, _ in self._copied]
        to = _native.views(_native.Array, whole, rows, tuple(self.types))
        first = nbytes = 0
        for last, source in enumerate(sources, 1):
            nbytes += source.nbytes
            if last == len(sources) or (told and nbytes >= SHARE):
                both = to[first:last], sources[first:last]
                copy_all(("arrays", "arrays"), *both, (None, None), Transfer.sync, None)
                if told:
                    told(nbytes)
                first, nbytes = last, 0


def directory_of(
    tree: Any, types: dict[int, int], rows: list[list[int]], metadata: dict[str, Any] | None
) -> bytes:
    """The directory of a group, in which ``metadata`` are those of arrays."""
    told = {"version": 1, "tree": tree, "types": list(map(name_of, types)), "arrays": rows}
    if metadata is not None:
        told["metadata"] = metadata
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def facts_of(rows: list[list[int]], at: int, directory: bytes) -> dict[str, int]:
    """What the object's metadata say of its directory."""
    return {"version": 1, "arrays": len(rows), "at": at, "bytes": len(directory)}


def metadata_with(facts: dict[str, int], metadata: Any) -> dict[str, Any]:
    """The object's metadata: the user's, and where the directory is."""
    told: dict[str, Any] = {GROUP: facts}
    return told if metadata is None else {**told, "metadata": metadata}


def _of_arrays(metadata: Any, tree: Tree) -> dict[str, Any]:
    """The metadata of arrays, by path."""
    if not isinstance(metadata, Mapping):
        raise TypeError(
            f"array_metadata is a {type(metadata).__name__}: accepted is a dict of the paths of "
            "arrays and what JSON has"
        )
    paths = set(tree.paths())
    for path in metadata:
        if path not in paths:
            raise ValueError(
                f"array_metadata has {path!r}: accepted are the paths of arrays, as "
                f"{min(paths, default='layers.0.weight')!r}"
            )
    checked: dict[str, Any] = json.loads(json_of("array_metadata", dict(metadata)))
    return checked
