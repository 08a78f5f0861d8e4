"""JAX: DLPack, and what its arrays export to Python's buffer protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    ADDED,
    FROM,
    NO_READ_ONLY,
    NOT_COMPACT,
    TO,
    Layout,
    Library,
    Way,
    copied,
    no_layout,
    refused,
    shared,
)


class Jax(Library):
    platform = "cpu"

    def load(self) -> None:
        super().load()
        import jax

        jax.config.update("jax_enable_x64", True)
        self.dlpack = jax.dlpack
        if jax.default_backend() != self.platform:
            raise RuntimeError(f"JAX runs on {jax.default_backend()}, not on {self.platform}")

    def has(self, dtype: str) -> bool:
        return hasattr(self.module, dtype)

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        # NumPy's array is laid out as is asked: JAX copies it into an order of its own.
        given = super().make(values, layout)
        return self.module.array(given, copy=True).block_until_ready()

    def values(self, x: Any) -> np.ndarray:
        # A copy: NumPy's view of a JAX array is kept, and later changes would not show.
        return np.array(self.module.array(x, copy=True))

    def address(self, x: Any) -> int:
        return x.unsafe_buffer_pointer()

    def strides(self, x: Any) -> tuple[int, ...] | None:
        return tuple(np.asarray(x).strides)

    def readonly(self, x: Any) -> bool | None:
        return None


COMPACT_ONLY = refused(
    (RuntimeError, ValueError, BufferError),
    "JAX takes elements without gaps",
    by="JAX",
    match="striding|strides|compact",
    layouts=NOT_COMPACT,
)
ONE_ORDER = no_layout("JAX orders elements itself", layouts=("F", *NOT_COMPACT))

WAYS = (
    Way(
        FROM,
        "buffer",
        "hamr.buffer(x)",
        lambda library, x: hamr.buffer(x),
        (
            ONE_ORDER,
            shared("JAX exports no buffer of these types", dtypes=ADDED, source="__dlpack__"),
        ),
    ),
    Way(
        FROM,
        "__dlpack__",
        "hamr.from_dlpack(x)",
        lambda library, x: hamr.from_dlpack(x),
        (ONE_ORDER,),
    ),
    Way(
        TO,
        "__dlpack__",
        "jax.dlpack.from_dlpack(b)",
        lambda library, b: library.dlpack.from_dlpack(b),
        (COMPACT_ONLY, NO_READ_ONLY),
    ),
    Way(
        TO,
        "__jax_array__",
        "jnp.asarray(b)",
        lambda library, b: library.module.asarray(b),
        (
            copied("jnp.asarray copies elements with gaps", layouts=NOT_COMPACT),
            copied("jnp.asarray copies what is read-only", layouts=("read-only",)),
        ),
    ),
)

LIBRARY = Jax("JAX", "jax", "jax.numpy", WAYS, immutable=True)
