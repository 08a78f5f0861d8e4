"""SYCL's queues as dpctl has them."""

from __future__ import annotations

from importlib import import_module

from .errors import BackendUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The name of the capsules that dpctl takes a queue from; it must last as long as they do.
_QUEUE = b"SyclQueueRef"


def queue_at(handle: int) -> Any:
    """The queue that dpctl's C interface knows by a reference, as a ``dpctl.SyclQueue``.

    That has a reference of its own. BackendUnavailable where dpctl cannot be imported.
    """
    import ctypes

    try:
        dpctl = import_module("dpctl")
    except Exception as error:
        unavailable = BackendUnavailable(
            f"dpctl, which has SYCL's queues, cannot be imported ({type(error).__name__}: {error})"
        )
        unavailable.backend = "sycl"
        raise unavailable from error
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = new(("PyCapsule_New", ctypes.pythonapi))(handle, _QUEUE, None)
    return dpctl.SyclQueue(capsule)
