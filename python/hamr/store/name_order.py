"""The two orders of a name and an id. One is deprecated."""

from __future__ import annotations

from functools import wraps
from warnings import warn

from .ids import ObjectID, is_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec

    _P = ParamSpec("_P")


def in_either_order(put_name: Callable[_P, None]) -> Callable[_P, None]:
    """A ``put_name`` that also accepts the id first, if both are positional arguments."""

    @wraps(put_name)
    def either(*given: _P.args, **named: _P.kwargs) -> None:
        ordered: Any = given
        if len(ordered) >= 3:  # with the client
            client, name, id, *others = ordered
            # An ObjectID, which put and seal return, is never a name. A name may look like an id,
            # as a hash does.
            returned = isinstance(name, ObjectID) and not isinstance(id, ObjectID)
            if returned or (is_id(name) and not is_id(id)):
                warn("write put_name(name, id): the name comes first", DeprecationWarning, 2)
                ordered = client, id, name, *others
        put_name(*ordered, **named)

    return either
