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


_CLASSES: dict[str, type[Exception]] = {
    "BackendUnavailable": BackendUnavailable,
    "OutOfMemory": OutOfMemory,
    "DeviceError": DeviceError,
    "FreedBuffer": FreedBuffer,
    "ForkError": ForkError,
    "InternalError": InternalError,
    "ValueError": ValueError,
    "TypeError": TypeError,
    "IndexError": IndexError,
}


def make_error(text: str) -> Exception:
    """The exception that an error text of the Go core stands for."""
    parts = text.split("\x1f", 3)
    if len(parts) != 4 or parts[0] != "hamr":
        return RuntimeError(text)
    kind, attributes, message = parts[1:]
    error = _CLASSES.get(kind, RuntimeError)(message)
    if attributes != "{}":
        try:
            import json
        except ImportError:  # the interpreter is ending: the message is all there can be
            return error
        for name, value in json.loads(attributes).items():
            setattr(error, name, tuple(value or ()) if name == "tried" else value)
    return error
