"""Errors for objects that share no memory. Imported when the first object is refused."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VALUES = (int, float, complex, list, tuple, range)


def instead(obj: Any) -> str:
    """What to write for an object that cannot be shared as it is; "" if there is nothing."""
    kind = type(obj)
    if isinstance(obj, type) or obj is None or isinstance(obj, (str, bytes)):
        return ""
    if isinstance(obj, dict):
        return "hamr.array(list(x.values())) copies its numbers"
    other = _with_memory(obj)
    if other or hasattr(kind, "__array__") or hasattr(kind, "__array_interface__"):
        return other
    if hasattr(kind, "__iter__") and not hasattr(kind, "write"):
        return "hamr.array(list(x)) copies its numbers"
    return "hamr.array(float(x)) copies it" if hasattr(kind, "__float__") else ""


def _with_memory(obj: Any) -> str:
    """What to write for a pointer, or for an object that NumPy can make an array of."""
    if _is_pointer(obj):
        return "memory at an address is hamr.Buffer.from_pointer(x, shape, dtype)"
    if not hasattr(type(obj), "__array__"):
        return ""
    numbers = getattr(getattr(obj, "dtype", None), "kind", "f") in ("b", "i", "u", "f", "c")
    return "hamr.buffer(numpy.asarray(x)) takes what NumPy makes of it" if numbers else ""


def _is_pointer(obj: Any) -> bool:
    ctypes, cffi = sys.modules.get("ctypes"), sys.modules.get("_cffi_backend")
    if ctypes is not None:
        simple = ctypes.c_void_p, ctypes._Pointer, ctypes.c_char_p, ctypes.c_wchar_p
        if isinstance(obj, simple) or type(obj).__name__ == "CArgObject":
            return True
    return cffi is not None and isinstance(obj, cffi.FFI.CData)


def of(obj: Any, protocols: tuple[str, ...], error: Exception) -> TypeError:
    """The error for an object that has none of the protocols."""
    kind = type(obj).__name__
    if kind == "SharedMemory":
        return TypeError(
            "SharedMemory object cannot be shared as it is: write hamr.buffer(obj, "
            'dtype="float64") for elements of a type, or hamr.buffer(obj.buf) for its bytes'
        )
    if isinstance(obj, _VALUES):
        from .fields import short

        text = (
            f"{kind} object cannot be shared, it has no memory for elements: "
            f"hamr.array({short(obj)}) copies it to memory of hamr's own"
        )
        if isinstance(obj, int) and obj > 0xFFFF:  # likely an address
            text += f"; memory at an address is hamr.Buffer.from_pointer({obj:#x}, shape, dtype)"
        return TypeError(text)
    other = instead(obj)
    return TypeError(
        f"{kind} object cannot be shared: {other + '; ' if other else ''}"
        "accepted is an array of NumPy, CuPy, PyTorch and "
        "others, which is what has the buffer protocol or one of "
        f"{', '.join(name for name in protocols if name[0] == '_')} ({error})"
    )


def added(obj: Any, error: Exception) -> Exception:
    """The error of a protocol, with what to write instead, if hamr knows it."""
    other = _with_memory(obj)
    if not other:
        return error
    known = isinstance(error, (TypeError, ValueError, BufferError))
    kind = type(error) if type(error).__module__ == "builtins" and known else TypeError
    return kind(f"{error}; {other}")
