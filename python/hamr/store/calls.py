"""Calls of the core's store: their replies, and errors as exceptions."""

from __future__ import annotations

import json
from itertools import count

import hamr._native as _native

from .._base.errors import ForkError
from .._base.library import core
from .errors import error_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: What a reply begins with that tells of an error.
_ERROR = "!"
#: The reply of a call that goes on while Python looks for signals.
_BUSY = "?"
_numbers = count(1)


def reply(text: str) -> str:
    """A reply of the core's, or the exception that it tells of."""
    if text.startswith(_ERROR):
        raise error_of(json.loads(text[1:]))
    return text


def ask(function: Callable[..., str], *arguments: Any) -> str:
    """The reply of a call that asks a server, however long that takes; signals are handled.

    Where a handler raises, as Ctrl-C does, the call ends and what the server did of it is undone.
    """
    number, generation = next(_numbers), _native.generation()
    try:
        text = function(number, *arguments)
        while text == _BUSY:
            if generation != _native.generation():  # forked by a handler
                raise ForkError("this call is of the parent process")
            text = core().StoreProceed(number)
    except BaseException:
        if generation == _native.generation():
            core().StoreStop(number)
        raise
    return reply(text)


def call(token: int, operation: str, **arguments: Any) -> Any:
    """A call of a client that is seldom made: arguments and result are JSON."""
    return json.loads(ask(core().StoreCall, token, operation, json.dumps(arguments)))
