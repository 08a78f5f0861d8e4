"""Arrow: its C interfaces, DLPack, and the buffer protocol of its buffers and tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import hamr
from tests.interop.interop_matrix import (
    ADDED,
    COMPLEX,
    FROM,
    NOT_COMPACT,
    NOT_VECTORS,
    TO,
    Layout,
    Library,
    OnlyArrow,
    OnlyArrowDevice,
    Way,
    no_layout,
    refused,
    shared,
)

NAMES = {"float16": "halffloat", "float32": "float", "float64": "double"}
TENSORS = ("C", "F", "strided", "negative", "zero-size", "0-d", "size-1")


class Arrow(Library):
    def has(self, dtype: str) -> bool:
        return dtype not in ADDED and hasattr(self.module, dtype.replace("bool", "bool_"))

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        pa = self.module
        flat = pa.array(super().make(values, layout).ravel())
        for n in values.shape[:0:-1]:
            flat = pa.FixedSizeListArray.from_arrays(flat, n)
        return flat if values.ndim else flat[0]

    def values(self, x: Any) -> np.ndarray:
        shape = self.shape(x)
        return np.array(self._flat(x).to_numpy(zero_copy_only=False)).reshape(shape)

    def address(self, x: Any) -> int:
        flat = self._flat(x)
        return flat.buffers()[1].address + flat.offset * flat.type.bit_width // 8

    def shape(self, x: Any) -> tuple[int, ...]:
        shape, kind = [len(x)], x.type
        while hasattr(kind, "list_size"):
            shape.append(kind.list_size)
            kind = kind.value_type
        return tuple(shape)

    def strides(self, x: Any) -> tuple[int, ...] | None:
        shape, item = self.shape(x), self._flat(x).type.bit_width // 8
        return tuple(math.prod(shape[i + 1 :]) * item for i in range(len(shape)))

    def dtype(self, x: Any) -> str | None:
        return {name: ours for ours, name in NAMES.items()}.get(
            str(self._flat(x).type), str(self._flat(x).type)
        )

    def readonly(self, x: Any) -> bool | None:
        return None

    def _flat(self, x: Any) -> Any:
        while hasattr(x.type, "list_size"):
            x = x.flatten()
        return x


class Tensor(Library):
    """pyarrow.Tensor, which has any layout, and NumPy's types."""

    def has(self, dtype: str) -> bool:
        return dtype not in (*ADDED, *COMPLEX, "bool")

    def make(self, values: np.ndarray, layout: Layout) -> Any:
        return self.module.Tensor.from_numpy(super().make(values, layout))

    def values(self, x: Any) -> np.ndarray:
        return np.array(x.to_numpy())

    def write(self, x: Any, values: np.ndarray) -> None:
        x.to_numpy()[...] = values

    def address(self, x: Any) -> int:
        return x.to_numpy().ctypes.data

    def dtype(self, x: Any) -> str | None:
        return x.to_numpy().dtype.name

    def readonly(self, x: Any) -> bool | None:
        return not x.is_mutable


def no_type(error: type[Exception], by: str, match: str) -> tuple:
    return (
        refused(error, "Arrow packs bool into bits", by=by, match=match, dtypes=("bool",)),
        refused(error, "Arrow has no complex numbers", by="hamr", match="Arrow", dtypes=COMPLEX),
        refused(error, "Arrow has no such floats", by="hamr", match="Arrow", dtypes=ADDED),
    )


NO_LAYOUTS = no_layout(
    "Arrow's elements lie in order, lists of a fixed size add dimensions",
    layouts=("F", *NOT_COMPACT, "0-d", "zero-size"),
)
TYPES = no_type(TypeError, "hamr", "Arrow")
DIMENSIONS = (
    refused(
        ValueError, "an Arrow array has one dimension", "hamr", match="dimension",
        layouts=NOT_VECTORS,
    ),
    refused(
        ValueError, "an Arrow array has no gaps", "hamr", match="gaps", layouts=("strided vector",)
    ),
)  # fmt: skip
PACKED = refused(TypeError, "Arrow packs bool into bits", by="hamr", match="bool", dtypes=("bool",))

WAYS = (
    Way(
        FROM,
        "__dlpack__",
        "hamr.buffer(x)",
        lambda library, x: hamr.buffer(x),
        (
            NO_LAYOUTS,
            PACKED,
            shared(
                "pyarrow has lists of a fixed size by Arrow alone",
                layouts=("C", "size-1"),
                source="__arrow_c_device_array__",
            ),
        ),
        sources=("__dlpack__", "__arrow_c_device_array__"),  # older ones have no versions
    ),
    Way(
        FROM,
        "__arrow_c_device_array__",
        "hamr.buffer(of this method alone)",
        lambda library, x: hamr.buffer(OnlyArrowDevice(x)),
        (NO_LAYOUTS, PACKED),
    ),
    Way(
        FROM,
        "__arrow_c_array__",
        "hamr.buffer(of this method alone)",
        lambda library, x: hamr.buffer(OnlyArrow(x)),
        (NO_LAYOUTS, PACKED),
    ),
    Way(
        FROM,
        "__dlpack__",
        "hamr.from_dlpack(x)",
        lambda library, x: hamr.from_dlpack(x),
        (
            NO_LAYOUTS,
            refused(
                TypeError, "Arrow packs bool into bits", "pyarrow", match="bool", dtypes=("bool",)
            ),
            refused(TypeError, "pyarrow exports one dimension", "pyarrow", layouts=("C", "size-1")),
        ),
    ),
    Way(
        TO,
        "__arrow_c_device_array__",
        "pa.array(of this method alone)",
        lambda library, b: library.module.array(OnlyArrowDevice(b)),
        (*TYPES, *DIMENSIONS),
    ),
    Way(
        TO,
        "__arrow_c_array__",
        "pa.array(of this method alone)",
        lambda library, b: library.module.array(OnlyArrow(b)),
        (*TYPES, *DIMENSIONS),
    ),
    Way(
        TO,
        "__arrow_c_array__",
        "pa.array(b)",
        lambda library, b: library.module.array(b),
        (*TYPES, *DIMENSIONS),
    ),
)

LIBRARY = Arrow(
    "pyarrow",
    "pyarrow",
    "pyarrow",
    WAYS,
    immutable=True,
    # After its TypeError hamr asks once more, without a version.
    warnings=("ignore:Exporting an unversioned DLPack capsule is deprecated:DeprecationWarning",),
)

TENSOR = Tensor(
    "pyarrow.Tensor",
    "pyarrow",
    "pyarrow",
    (
        Way(
            FROM,
            "buffer",
            "hamr.buffer(x)",
            lambda library, x: hamr.buffer(x),
            (no_layout("pyarrow has no negative strides", layouts=("negative",)),),
        ),
    ),
)
