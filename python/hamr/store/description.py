"""The facts about an object."""

from __future__ import annotations

import json
from typing import NamedTuple

from .ids import ObjectID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


#: The key by which an object's metadata say that it is a group.
GROUP = "hamr.group"


def group_of(metadata: Any) -> dict[str, int] | None:
    """What an object's metadata, as JSON has them, say of it as a group; None of another object."""
    if not isinstance(metadata, dict) or not {GROUP} <= set(metadata) <= {GROUP, "metadata"}:
        return None
    facts = metadata[GROUP]
    known = isinstance(facts, dict) and set(facts) == {"version", "arrays", "at", "bytes"}
    return facts if known and all(type(n) is int for n in facts.values()) else None


class ObjectInfo(NamedTuple):
    """The facts about an object."""

    id: ObjectID
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    device: str  #: ``"host"``, or the UUID of the device that its memory is on
    sealed: bool
    evictable: bool
    pinned: bool
    leases: int  #: of all processes
    names: tuple[str, ...]
    metadata: Any  #: a ValueError with the reason, if it cannot be read
    arrays: int | None  #: of a group, None of another object

    @classmethod
    def _of(cls, told: tuple[Any, ...]) -> Self:
        *known, text, problem = told
        metadata = None if text is None else json.loads(text)
        group, arrays = group_of(metadata), None
        if metadata is not None and group is not None:
            metadata, arrays = metadata.get("metadata"), group["arrays"]
        return cls._make([*known, ValueError(problem) if problem else metadata, arrays])
