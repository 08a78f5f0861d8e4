"""The exceptions that hamr raises.

A wrong type is a TypeError, a wrong value a ValueError, a position out of range an
IndexError. hamr's own errors are here.
"""

from __future__ import annotations


class Error(Exception):
    """The root of hamr's own exceptions."""


class BackendUnavailable(Error, RuntimeError):
    """A device runtime is absent on this machine.

    ``backend`` is its name, ``tried`` are the names of the libraries that were looked for.
    """

    backend: str = ""
    tried: tuple[str, ...] = ()


class OutOfMemory(Error, MemoryError):
    """An allocator had no memory left; ``size`` is how many bytes were asked for."""

    size: int = 0


class PinnedMemoryWarning(RuntimeWarning):
    """No page-locked memory was available, and ordinary memory was used instead.

    If ``warnings.simplefilter`` makes it an error, hamr raises OutOfMemory.
    """


class DeviceError(Error, RuntimeError):
    """A vendor's runtime reported a failure.

    ``api`` is the runtime, ``name`` and ``code`` are the vendor's.
    """

    api: str = ""
    name: str = ""
    code: int = 0


class FreedBuffer(Error, ValueError):
    """A buffer was used after ``close()``."""


class ForkError(Error, RuntimeError):
    """Something from before a ``fork()`` does not work in the child."""


def before_fork(what: str) -> ForkError:
    """The error for a device's object that the parent process made."""
    return ForkError(
        f"this {what} was made before fork(): the driver does not work in a forked child; "
        "start processes with multiprocessing's spawn or forkserver method"
    )


class InternalError(Error, RuntimeError):
    """A defect in hamr; ``stack`` says where."""

    stack: str = ""


class InUse(Error, BufferError):
    """Elements are in use by an ``on_host()``, ``on_cuda()`` or ``on()`` block."""


class OutOfRange(Error, ValueError, OverflowError):
    """A number that an element type cannot hold: 300 for int8, 1e300 for float32."""


class PausedMemory(Error, RuntimeError):
    """Memory was used whose name is paused; ``tag`` is the name, for ``hamr.resume()``."""

    tag: str = ""


#: In the order of hamr_error_kind in hamr/functions.h.
KINDS: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    IndexError,
    OutOfMemory,
    BackendUnavailable,
    DeviceError,
    FreedBuffer,
    ForkError,
    InternalError,
    InUse,
    OutOfRange,
    PausedMemory,
)

for _error in list(vars().values()):
    if isinstance(_error, type):
        _error.__module__ = "hamr"  # where users find it
del _error
