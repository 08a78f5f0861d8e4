"""Calls of the core's store: their replies, and errors as exceptions."""

from __future__ import annotations

import json

from .._base.library import core
from .errors import error_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What a reply begins with that tells of an error.
_ERROR = "!"


def reply(text: str) -> str:
    """A reply of the core's, or the exception that it tells of."""
    if text.startswith(_ERROR):
        raise error_of(json.loads(text[1:]))
    return text


def call(token: int, operation: str, **arguments: Any) -> Any:
    """A call of a client that is seldom made: arguments and result are JSON."""
    return json.loads(reply(core().StoreCall(token, operation, json.dumps(arguments))))
