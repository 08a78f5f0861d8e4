"""SYCL's queues as dpctl has them."""

from __future__ import annotations

from importlib import import_module

from .errors import BackendUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The name of the capsules that dpctl takes a queue from. It must live as long as they do.
_QUEUE = b"SyclQueueRef"


def unavailable(message: str) -> BackendUnavailable:
    """The error where SYCL cannot be used."""
    error = BackendUnavailable(message)
    error.backend = "sycl"
    return error


def queue_at(handle: int) -> Any:
    """A ``dpctl.SyclQueue`` for a reference of dpctl's C interface.

    It holds a reference of its own. BackendUnavailable if dpctl cannot be imported.
    """
    import ctypes

    try:
        dpctl = import_module("dpctl")
    except Exception as error:
        raise unavailable(
            f"dpctl, which has SYCL's queues, cannot be imported ({type(error).__name__}: {error})"
        ) from error
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = new(("PyCapsule_New", ctypes.pythonapi))(handle, _QUEUE, None)
    return dpctl.SyclQueue(capsule)
