"""Which stream a buffer takes that is made in ``with stream:`` blocks.

Blocks are what ``stream.blocks()`` returns: the stream of the innermost block, and the blocks
around it. A ScopedContext's blocks have the context as well.
"""

from __future__ import annotations

from _contextvars import ContextVar

import hamr._native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Blocks = tuple[Any, ...] | None

#: The ``with stream:`` blocks that the caller is in, the innermost first: its stream, and the
#: blocks around it. A thread begins with none, a task of asyncio with those of its maker.
current: ContextVar[Any] = ContextVar("hamr_stream_blocks", default=None)

_LAST_DEFAULT = 2  # handles up to this one stand for a default stream of each device


def without(blocks: Blocks, stream: Any) -> Blocks:
    """The blocks that are left when the innermost block of a stream ends.

    Blocks inside it may outlast it: generators and an ExitStack end blocks in another order.
    """
    inner = []
    while blocks is not None and blocks[0] is not stream:
        inner.append(blocks)
        blocks = blocks[1]
    if blocks is None:
        raise RuntimeError(f"{stream!r}: the block ends in another thread or task than it began in")
    blocks = blocks[1]
    while inner:
        stream, _, *scope = inner.pop()
        blocks = stream, blocks, *scope
    return blocks


def fitting(blocks: Blocks, backend: str, device: int | Callable[[], int] | None) -> Any:
    """The innermost block's stream of a backend that memory can use; None if none can.

    Memory of no device, None, takes any stream of the backend. ``device`` may be a function, which
    is called if it matters. In a forked child the parent's blocks do not count: their streams are
    gone.
    """
    while blocks is not None:
        stream, blocks = blocks[0], blocks[1]
        if stream._value > _LAST_DEFAULT and stream._generation != _native.generation():
            continue
        if stream._backend != backend:
            continue
        if device is None or stream._value <= _LAST_DEFAULT or stream._device < 0:
            return stream
        if not isinstance(device, int):
            device = device()
        if stream._device == device:
            return stream
    return None
