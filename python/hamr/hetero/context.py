"""The scope in which work is enqueued on a device's stream."""

from __future__ import annotations

from contextlib import contextmanager

import hamr._native as _native

from .._base.errors import Error
from .._base.stream_blocks import current, without
from . import cached_streams
from .completion import completed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .._native import Product


class DeviceMismatch(Error, ValueError):
    """A product of another device than the context's."""


class ScopedContext(_native.ScopedContext):
    """A scope in which work is enqueued: ``with ScopedContext(source) as ctx:``.

    ``source`` is a Token, or a Product: then the device is that of the product, and the stream too
    for the first context that is made of it or of another one that was wrapped beside it; later
    ones have streams of their own. In the scope the device is the thread's current one, of runtimes
    that have that, and hamr's buffers that are made without ``stream=`` use the stream. Other
    libraries are given ``ctx.stream``, as by ``cupy.cuda.ExternalStream(ctx.stream.ptr)``. What was
    current before is so again at the end, after exceptions, too. Scopes nest, on any thread; each
    begins and ends on one thread, and not twice at once.

    ``wrap(object)`` makes a Product, ``get(product)`` reads one; neither waits. Whoever has got an
    object keeps its product until the work on it is over.

    In a coroutine, wait by ``await ctx.done()``. Around any other ``await`` in the scope put
    ``with ctx.suspended():``, since the thread is then others'.
    """

    __slots__ = ()

    async def done(self) -> None:
        """Wait until all is over that has been enqueued on the stream so far.

        The event loop runs on meanwhile, with what was current outside of the scope. A device's
        error is raised here. Nothing is lost if the wait is cancelled: the work goes on.
        """
        point = self.wrap(None)
        with self.suspended():
            await completed(point)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """A block in which what was current outside of the scope is so again."""
        self._suspend()
        try:
            yield
        finally:
            self._resume()

    def __repr__(self) -> str:
        return f"<hamr.hetero.ScopedContext on {self.place}, {self.stream!r}>"


def _elsewhere(context: ScopedContext, product: Product, migrate: Any) -> Any:
    """What ``get`` returns of a product of another device."""
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
    return moved(context._content(product), context)


_native.set_context_hooks(current, without, cached_streams.take, _elsewhere)
