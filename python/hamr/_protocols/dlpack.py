"""Reading DLPack's tensors; C does, in dlpack_ask.c and dlpack_import.c of native/protocols."""

from __future__ import annotations

import hamr._native as _native

from .wait_setting import wait_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

NAME = "__dlpack__"

#: Device types: CUDAHost and ROCmHost are page-locked memory of the host's.
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

    A capsule is consumed, unless what it holds is refused. What uses the array runs after
    the producer's work, unless ``wait`` is false. With a ``copy`` of False the producer
    is told to make none. ``versioned`` refuses what does not know of versions.
    """
    more = (copy, False, versioned)
    shared = _native.adopt_dlpack(cls, obj, stream, transfer, wait_of(wait), *more)
    if shared is None:
        # PyTorch exports what is on the current device only, and C does not know that it is.
        from .._base.cuda_devices import device

        with device(obj.__dlpack_device__()[1]):
            more = (copy, True, versioned)
            shared = _native.adopt_dlpack(cls, obj, stream, transfer, wait_of(wait), *more)
    assert shared is not None
    return shared


def adopt_versioned(cls: type[_A], obj: Any, stream: int, transfer: int, wait: Any) -> _A | None:
    """As ``adopt``, of an object that offers Arrow, too; None where Arrow is to be asked.

    That is where DLPack's version is none that says whether memory is immutable, and where
    the object refuses: pyarrow has lists of numbers by Arrow alone.
    """
    try:
        return adopt(cls, obj, stream, transfer, wait, versioned=True)
    except Exception:
        return None
