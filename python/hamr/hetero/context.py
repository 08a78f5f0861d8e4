"""The scope in which work is enqueued on a device's stream."""

from __future__ import annotations

from contextlib import contextmanager
from types import coroutine

import hamr._native as _native

from .._base.errors import Error
from .._base.stream_blocks import current, without
from .._native import ScopedContext
from . import cached_streams
from .completion import soon_completed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator, Iterator
    from typing import Any

    from .._native import Product


class DeviceMismatch(Error, ValueError):
    """A product is of another device than the context."""


async def _done(context: ScopedContext) -> None:
    """Wait for all work that was enqueued on the stream so far."""
    point = context.wrap(None)
    with context.suspended():
        await soon_completed(point)


@contextmanager
def _suspended(context: ScopedContext) -> Iterator[None]:
    """A block in which the device and stream from outside all scopes are current again."""
    scopes = context._suspend()
    try:
        yield
    finally:
        context._resume(scopes)


@coroutine
def outside(context: ScopedContext, awaitable: Awaitable[Any]) -> Generator[Any, None, Any]:
    """Await something within a scope. While it waits, what was current outside is current again."""
    waiting: Any = awaitable.__await__()
    error: BaseException | None = None
    while True:
        try:
            told = next(waiting) if error is None else waiting.throw(error)
        except StopIteration as over:
            return over.value
        error = None
        scopes = context._suspend()
        try:
            yield told
        except BaseException as raised:
            error = raised
        finally:
            context._resume(scopes)


def _elsewhere(context: ScopedContext, product: Product, migrate: Any) -> Any:
    """What ``get`` returns for a product of another device."""
    if not migrate:
        raise DeviceMismatch(
            f"product is {product!r}: the context is on {context.place}; with migrate=True its "
            "arrays are copied there"
        )
    from .migration import moved

    if product.backend == context.backend:
        context._wait(product)
    else:
        raise DeviceMismatch(
            f"product is {product!r}, and the context is on {context.place}: accepted with "
            f"migrate=True is another device of {context.backend}'s"
        )
    return moved(product, context)


_native.set_context_hooks(current, without, cached_streams.take, _elsewhere, _done, _suspended)
