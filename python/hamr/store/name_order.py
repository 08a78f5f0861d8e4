"""The two orders of a name and an id, of which one is deprecated."""

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
    """``put_name`` that also takes the id first, where both are given by their places."""

    @wraps(put_name)
    def either(*given: _P.args, **named: _P.kwargs) -> None:
        ordered: Any = given
        if len(ordered) >= 3:  # with the client
            client, name, id, *others = ordered
            # What create and put return is no name, also where that is like an id, as a hash is.
            returned = isinstance(name, ObjectID) and not isinstance(id, ObjectID)
            if returned or (is_id(name) and not is_id(id)):
                warn("write put_name(name, id): the name comes first", DeprecationWarning, 2)
                ordered = client, id, name, *others
        put_name(*ordered, **named)

    return either
