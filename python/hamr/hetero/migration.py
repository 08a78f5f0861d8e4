"""Copying what a product has to another device."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

from .._base.allocator import is_of_a_device
from .._buffer.buffers import Buffer, buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._native import ScopedContext

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def moved(content: Any, context: ScopedContext) -> Any:
    """The same with buffers of the context's device in place of those of another one.

    Buffers and device arrays of other libraries become buffers; lists, tuples, dictionaries and
    dataclasses are rebuilt; host arrays and plain values stay. Anything else is a TypeError.
    """
    if isinstance(content, _PLAIN):
        return content
    if isinstance(content, Buffer):
        if not is_of_a_device(content.allocator) or content.device == context.device:
            return content
        return _copied(content, context)
    if hasattr(content, "__cuda_array_interface__"):
        return moved(buffer(content), context)
    if hasattr(content, "__array_interface__"):
        return content
    if isinstance(content, dict):
        return {key: moved(value, context) for key, value in content.items()}
    if isinstance(content, tuple) and hasattr(content, "_make"):  # a named one
        return content._make(moved(value, context) for value in content)
    if isinstance(content, (list, tuple)):
        return type(content)(moved(value, context) for value in content)
    if is_dataclass(content) and not isinstance(content, type):
        given = (field.name for field in fields(content) if field.init)
        return replace(content, **{name: moved(getattr(content, name), context) for name in given})
    raise TypeError(
        f"a product has {content!r}, which migrate=True cannot copy to {context.place}: accepted "
        "are buffers, arrays with __cuda_array_interface__, and lists, tuples, dictionaries and "
        "dataclasses of them"
    )


def _copied(content: Buffer, context: ScopedContext) -> Buffer:
    """A copy in the order of the context's stream, which comes after what makes the content."""
    copy = Buffer(
        content.shape,
        content.dtype,
        content.allocator,
        device=context.device,
        stream=context.stream,
        transfer="async",
    )
    copy[...] = content
    return copy
