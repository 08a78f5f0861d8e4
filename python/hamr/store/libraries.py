"""A group's arrays as other libraries have them."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._buffer.buffers import Buffer


def to_numpy() -> Callable[[Buffer], Any]:
    """NumPy's array, on the host."""
    asarray = import_module("numpy").asarray
    return lambda each: asarray(each.get_host_accessible())


def to_torch() -> Callable[[Buffer], Any]:
    """A tensor, where the array is."""
    from_dlpack = import_module("torch").from_dlpack
    return lambda each: from_dlpack(each)


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
    return lambda each: from_dlpack(each)
