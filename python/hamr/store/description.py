"""The facts about an object."""

from __future__ import annotations

import json
from typing import NamedTuple

from .ids import ObjectID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


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

    @classmethod
    def _of(cls, told: tuple[Any, ...]) -> Self:
        *known, text, problem = told
        metadata = None if text is None else json.loads(text)
        return cls._make([*known, ValueError(problem) if problem else metadata])
