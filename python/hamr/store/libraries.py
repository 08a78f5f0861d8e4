"""A group's arrays as other libraries have them."""

from __future__ import annotations

from importlib import import_module

from .._buffer.buffers import Buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def to_numpy() -> Callable[[Buffer], Any]:
    """NumPy's array, on the host."""
    asarray = import_module("numpy").asarray
    return lambda each: asarray(each.get_host_accessible())


def to_torch() -> Callable[[Buffer], Any]:
    """A tensor, where the array is."""
    return import_module("torch").from_dlpack  # type: ignore[no-any-return]


def to_cupy() -> Callable[[Buffer], Any]:
    """CuPy's array, on the array's device, or the current one."""
    cupy = import_module("cupy")

    def to(each: Buffer) -> Any:
        there = each.get_cuda_accessible()
        return (
            cupy.asarray(there)
            if hasattr(there, "__cuda_array_interface__")
            else cupy.from_dlpack(there)
        )

    return to


def to_jax() -> Callable[[Buffer], Any]:
    """JAX's array, where the array is."""
    from_dlpack = import_module("jax.dlpack").from_dlpack

    def to(each: Buffer) -> Any:
        # JAX asks as before DLPack could say that an array is read-only, and does not write to it.
        device = None if each._host else each.device
        unmarked = Buffer.from_pointer(
            each.ptr, each.shape, each.dtype, each.allocator, device=device, owner=each
        )
        return from_dlpack(unmarked)

    return to
