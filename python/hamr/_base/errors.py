"""The exceptions that hamr raises.

Wrong types are TypeError, wrong values ValueError, positions out of range
IndexError; what is hamr's own has a class here.
"""

from __future__ import annotations


class Error(Exception):
    """The root of hamr's own exceptions."""


class BackendUnavailable(Error, RuntimeError):
    """A device runtime is absent on this machine.

    ``backend`` is its name, ``tried`` the library names that were looked for.
    """

    backend: str = ""
    tried: tuple[str, ...] = ()


class OutOfMemory(Error, MemoryError):
    """An allocator had no memory left; ``size`` is how many bytes were asked for."""

    size: int = 0


class PinnedMemoryWarning(RuntimeWarning):
    """There was no page-locked memory to be had, and ordinary memory was used instead.

    As an error, by ``warnings.simplefilter``, it makes hamr raise OutOfMemory.
    """


class DeviceError(Error, RuntimeError):
    """A vendor's runtime reported a failure.

    ``api`` is the runtime, ``name`` and ``code`` the vendor's own.
    """

    api: str = ""
    name: str = ""
    code: int = 0


class FreedBuffer(Error, ValueError):
    """A buffer was used after ``close()``."""


class ForkError(Error, RuntimeError):
    """Something from before a ``fork()`` does not work in the child."""


def before_fork(what: str) -> ForkError:
    """What to raise for an object of a device that the parent process made."""
    return ForkError(
        f"this {what} was made before fork(): the driver does not work in a forked child; "
        "start processes with multiprocessing's spawn or forkserver method"
    )


class InternalError(Error, RuntimeError):
    """A defect in hamr; ``stack`` says where."""

    stack: str = ""


class InUse(Error, BufferError):
    """Elements are in use by ``on_host()``, ``on_cuda()`` or ``on()`` that has not ended."""


class OutOfRange(Error, ValueError, OverflowError):
    """A number that an element type does not hold: 300 for int8, 1e300 for float32."""


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
)
