"""PyTorch: DLPack, and the buffer protocol by torch.frombuffer."""

from __future__ import annotations

from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    ADDED,
    EMPTY,
    FROM,
    NO_READ_ONLY,
    TO,
    Layout,
    Library,
    Way,
    no_layout,
    not_run,
    reference,
    refused,
)
from tests.support.torch_limits import ends_at_negative_strides


class Torch(Library):
    device = "cpu"

    def load(self) -> None:
        super().load()
        self.module.zeros(1, device=self.device)

    def has(self, dtype: str) -> bool:
        return hasattr(self.module, dtype)

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        torch = self.module
        room = torch.zeros(
            max(layout.room, layout.size, 1),
            dtype=getattr(torch, values.dtype.name),
            device=self.device,
        )
        x = torch.as_strided(room, layout.shape, layout.strides, layout.first)
        self.write(x, values)
        return x

    def values(self, x: Any) -> np.ndarray:
        name = self.dtype(x)
        x = x.detach().cpu()
        if name in ADDED:
            storage = self.module.int8 if x.element_size() == 1 else self.module.int16
            return x.contiguous().view(storage).numpy().copy().view(reference(name))
        return x.numpy().copy()

    def write(self, x: Any, values: np.ndarray) -> None:
        torch, name = self.module, values.dtype.name
        bits = values.view(f"i{values.itemsize}") if name in ADDED else values
        source = torch.from_numpy(bits.copy())
        x.copy_(source.view(getattr(torch, name)) if name in ADDED else source)

    def address(self, x: Any) -> int:
        return x.data_ptr()

    def strides(self, x: Any) -> tuple[int, ...] | None:
        return tuple(s * x.element_size() for s in x.stride())

    def dtype(self, x: Any) -> str | None:
        return str(x.dtype).removeprefix("torch.")

    def readonly(self, x: Any) -> bool | None:
        return None


NO_LAYOUTS = (
    no_layout("torch has no negative strides", layouts=("negative",)),
    no_layout("torch has no read-only tensors", layouts=("read-only",)),
)
DLPACK_RULES = (
    not_run(
        "this torch ends the process at negative strides, whoever made the tensor",
        layouts=("negative",),
        when=lambda library: ends_at_negative_strides(),
    ),
    refused(
        (RuntimeError, BufferError, ValueError),
        "torch has no negative strides",
        by="torch",
        layouts=("negative",),
        when=lambda library: not ends_at_negative_strides(),
    ),
    NO_READ_ONLY,
)


def _from_buffer(library: Library, b: hamr.Buffer) -> Any:
    torch = library.module
    return torch.frombuffer(b, dtype=getattr(torch, str(b.dtype))).reshape(b.shape)


WAYS = (
    Way(FROM, "__dlpack__", "hamr.buffer(x)", lambda library, x: hamr.buffer(x), NO_LAYOUTS),
    Way(
        FROM,
        "__dlpack__",
        "hamr.from_dlpack(x)",
        lambda library, x: hamr.from_dlpack(x),
        NO_LAYOUTS,
    ),
    Way(
        TO,
        "__dlpack__",
        "torch.from_dlpack(b)",
        lambda library, b: library.module.from_dlpack(b),
        DLPACK_RULES,
    ),
    Way(
        TO,
        "__dlpack__",
        "torch.as_tensor(b)",
        lambda library, b: library.module.as_tensor(b),
        DLPACK_RULES,
    ),
    Way(
        TO,
        "buffer",
        "torch.frombuffer(b, dtype=…).reshape(b.shape)",
        _from_buffer,
        (
            refused(
                ValueError, "torch.frombuffer takes no empty buffer", by="torch", layouts=EMPTY
            ),
            refused(
                RuntimeError,
                "torch.frombuffer takes bytes in C order",
                by="torch",
                match="contiguous",
                layouts=("F", "strided", "negative", "strided vector"),
            ),
        ),
    ),
)

LIBRARY = Torch(
    "torch",
    "torch",
    "torch",
    WAYS,
    # It has no read-only tensors.
    warnings=("ignore:The given buffer is not writable:UserWarning",),
)
