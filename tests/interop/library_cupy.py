"""CuPy: the CUDA array interface and DLPack, on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    ADDED,
    FROM,
    TO,
    Layout,
    Library,
    OnlyCudaInterface,
    OnlyDlpack,
    Way,
    no_layout,
    reference,
    refused,
)


class Cupy(Library):
    def load(self) -> None:
        super().load()
        self.module.zeros(1)  # raises without a device

    @property
    def version(self) -> str:
        return str(self.module.__version__)

    def has(self, dtype: str) -> bool:
        try:
            self.module.zeros(1, reference(dtype))
        except (TypeError, ValueError, NotImplementedError, RuntimeError):
            return False
        return True

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        cupy, item = self.module, values.dtype.itemsize
        room = cupy.zeros(max(layout.room, layout.size, 1), values.dtype)
        x = cupy.ndarray(
            layout.shape,
            values.dtype,
            room.data + layout.first * item,
            strides=layout.byte_strides(item),
        )
        self.write(x, values)
        self.synchronize()
        return x

    def values(self, x: Any) -> np.ndarray:
        return self.module.asnumpy(x)

    def write(self, x: Any, values: np.ndarray) -> None:
        x[...] = self.module.asarray(values)

    def address(self, x: Any) -> int:
        return x.data.ptr

    def readonly(self, x: Any) -> bool | None:
        return None

    def synchronize(self) -> None:
        self.module.cuda.runtime.deviceSynchronize()


WRITABLE = no_layout("CuPy has no read-only arrays", layouts=("read-only",))
NO_INTERFACE = refused(
    AttributeError,
    "there is no typestr for them",
    by="hamr",
    match="typestr|__cuda_array_interface__",
    dtypes=ADDED,
)

WAYS = (
    Way(
        FROM,
        "__cuda_array_interface__",
        "hamr.buffer(x)",
        lambda library, x: hamr.buffer(x),
        (WRITABLE,),
    ),
    Way(
        FROM,
        "__cuda_array_interface__",
        "hamr.buffer(of the interface alone)",
        lambda library, x: hamr.buffer(OnlyCudaInterface(x)),
        (
            refused(
                TypeError,
                "the typestr of types that ml_dtypes adds is that of raw bytes",
                by="hamr",
                match="typestr",
                dtypes=ADDED,
            ),
            WRITABLE,
        ),
    ),
    Way(
        FROM,
        "__dlpack__",
        "hamr.from_dlpack(x)",
        lambda library, x: hamr.from_dlpack(x),
        (WRITABLE,),
    ),
    Way(
        TO,
        "__cuda_array_interface__",
        "cupy.asarray(of the interface alone)",
        lambda library, b: library.module.asarray(OnlyCudaInterface(b)),
        (NO_INTERFACE,),
    ),
    Way(
        TO,
        "__cuda_array_interface__",
        "cupy.asarray(b.get_cuda_accessible())",
        lambda library, b: library.module.asarray(b.get_cuda_accessible()),
        # Without a typestr there is no interface, and CuPy turns to NumPy for a copy.
        (
            refused(
                (TypeError, ValueError, AttributeError),
                "NumPy does not reach device memory",
                by="hamr",
                dtypes=ADDED,
            ),
        ),
    ),
    Way(
        TO,
        "__dlpack__",
        "cupy.from_dlpack(b)",
        lambda library, b: library.module.from_dlpack(OnlyDlpack(b)),
    ),
)

LIBRARY = Cupy("CuPy", "cupy", "cupy", WAYS, allocator="cuda")
