"""Reading DLPack's tensors, in C: dlpack_ask.c and dlpack_import.c of native/protocols."""

from __future__ import annotations

import hamr._native as _native

from .wait_setting import wait_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

NAME = "__dlpack__"

#: Device types: CUDAHost and ROCmHost are page-locked host memory.
CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 10, 11, 13


def adopt(
    cls: type[_A],
    obj: Any,
    stream: int,
    transfer: int,
    wait: Any,
    copy: bool | None = None,
    versioned: bool = False,
) -> _A:
    """An array of a class over the memory of a tensor that an object exports, or of a capsule.

    A capsule is consumed, unless its tensor is refused. Work on the array runs after the
    producer's work, unless ``wait`` is false. With a ``copy`` of False the producer is asked
    for no copy. ``versioned`` refuses objects that do not support versions.
    """
    more = (copy, False, versioned)
    shared = _native.adopt_dlpack(cls, obj, stream, transfer, wait_of(wait), *more)
    if shared is None:
        # PyTorch exports only memory of the current device. C does not know which that is.
        from .._base.cuda_devices import device

        with device(obj.__dlpack_device__()[1]):
            more = (copy, True, versioned)
            shared = _native.adopt_dlpack(cls, obj, stream, transfer, wait_of(wait), *more)
    assert shared is not None
    return shared


def adopt_versioned(cls: type[_A], obj: Any, stream: int, transfer: int, wait: Any) -> _A | None:
    """As ``adopt``, for an object that offers Arrow, too; None if Arrow shall be used instead.

    Arrow is used if the version of DLPack has no read-only flag, and if the object refuses:
    pyarrow shares lists of numbers by Arrow alone.
    """
    try:
        return adopt(cls, obj, stream, transfer, wait, versioned=True)
    except Exception:
        return None
