"""Calls of the core's store: their replies, and errors as exceptions."""

from __future__ import annotations

import json

import hamr._native as _native

from .._base.errors import ForkError
from .._base.library import core
from .errors import error_of
from .owned import Owned, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: What a reply begins with that tells of an error.
_ERROR = "!"
#: The reply of a call that goes on while Python looks for signals.
_BUSY = "?"


def reply(text: str) -> str:
    """A reply of the core's, or the exception that it tells of."""
    if text.startswith(_ERROR):
        raise error_of(json.loads(text[1:]))
    return text


def ask(function: Callable[..., str], *arguments: Any) -> str:
    """The reply of a call that asks a server, however long that takes; signals are handled.

    Where a handler raises, as Ctrl-C does, the call ends and what the server did of it is undone.
    """
    return ask_as(next(numbers), function, *arguments)


def ask_as(number: int, function: Callable[..., str], *arguments: Any) -> str:
    """``ask`` by a number of the caller's, which can be given to StoreStop until the next call."""
    generation = _native.generation()
    try:
        text = function(number, *arguments)
        return reply(text if text != _BUSY else _outcome(number, generation))
    except BaseException:
        if generation == _native.generation():
            core().StoreStop(number)
        raise


def ask_for(owned: Owned, function: Callable[..., str], *arguments: Any) -> str:
    """``ask`` for what is to be ``owned``, which ends where there is an exception."""
    try:
        text = function(owned._token, *arguments)
        return reply(text if text != _BUSY else _outcome(owned._token, owned._generation))
    except BaseException:
        owned._end()
        raise


def _outcome(number: int, generation: int) -> str:
    """The reply of a call that goes on."""
    while generation == _native.generation():
        text = core().StoreProceed(number)
        if text != _BUSY:
            return text
    raise ForkError("this call is of the parent process")  # forked by a handler


def call(token: int, operation: str, **arguments: Any) -> Any:
    """A call of a client that is seldom made: arguments and result are JSON."""
    return json.loads(ask(core().StoreCall, token, operation, json.dumps(arguments)))
