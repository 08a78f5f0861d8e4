"""Sharing an object's memory by the best protocol it offers."""

from __future__ import annotations

import sys

import hamr._native as _native

from .._base.library import core
from .._base.unopened import Unopened, fail
from . import buffer_protocol, dlpack
from .fields import is_capsule
from .meaning import carries, refuse_meaning
from .wait_setting import wait_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _A = TypeVar("_A", bound=_native.Array)

_SYNC_HOST = 1
_CUDA = "__cuda_array_interface__"

_INTERFACE = "__array_interface__"
_ARROW = ("__arrow_c_device_array__", "__arrow_c_array__", "__arrow_c_stream__")

#: In order of preference: a protocol, and the module that reads it, or the name of a module
#: that is imported when it is first needed. Protocols that say more come first: the stream
#: with pending work, the queue, the read-only flag. Arrow comes last, since it has no
#: dimensions: in Arrow an image is rows of pixels.
PROTOCOLS: tuple[tuple[str, Any], ...] = (
    (_CUDA, "cuda_array_interface"),
    ("__sycl_usm_array_interface__", "sycl_usm"),
    (buffer_protocol.NAME, buffer_protocol),
    (dlpack.NAME, dlpack),
    (_INTERFACE, "array_interface"),
    *((name, "arrow") for name in _ARROW),
)

#: Protocols whose reader returns None if an object does not offer it. They are asked only once,
#: since reading the interface of a Pillow image copies all of its pixels.
_ASKED_ONCE = (buffer_protocol.NAME, _INTERFACE)

#: Types whose objects have only the buffer protocol and __array_interface__.
plain_types: set[type] = set()
_PLAIN = tuple(p for p in PROTOCOLS if p[1] in (buffer_protocol, "array_interface"))
_FROM_DLPACK_ON = PROTOCOLS[[name for name, _ in PROTOCOLS].index(dlpack.NAME) :]
_WITHOUT_DLPACK = tuple(p for p in PROTOCOLS if p[1] is not dlpack)

#: Types of which an object was shared by one protocol. Other objects of the type are asked for
#: this protocol first, in C.
cuda_types: set[type] = set()
dlpack_types: set[type] = set()
#: Types of which an object was or could have been shared by Arrow, and which offer no protocol
#: that comes before DLPack.
arrow_types: set[type] = set()
_MOST_TYPES = 100


def share(
    cls: type[_A], obj: Any, stream: int = 0, transfer: int = _SYNC_HOST, wait: Any = None
) -> _A:
    """An array of a class over the memory of ``obj``. The array knows the protocol that was used.

    ``wait`` is whether to wait for a CUDA producer's stream; None is what the
    environment says. TypeError for an object without a protocol, or with elements that
    hamr does not have; ValueError for a description that cannot be right.
    """
    shared = _native.adopt_known(cls, obj, stream, transfer, wait)
    return ask(cls, obj, stream, transfer, wait) if shared is None else shared


def ask(
    cls: type[_A], obj: Any, stream: int = 0, transfer: int = _SYNC_HOST, wait: Any = None
) -> _A:
    """As ``share``, for an object that ``_native.adopt_known`` does not know."""
    kind = type(obj)
    shared: _A | None
    protocols = PROTOCOLS
    if kind is Unopened:
        fail(obj)
    if kind in plain_types:
        protocols = _PLAIN
    elif kind in cuda_types:
        pass
    elif kind in arrow_types:
        protocols = _FROM_DLPACK_ON
    elif kind in dlpack_types:
        return _told(dlpack.NAME, dlpack.adopt(cls, obj, stream, transfer, wait))
    elif not _is_foreign(obj):
        return _told("hamr", _view(cls, obj, stream, transfer))
    elif kind in plain_types:
        protocols = _PLAIN
    elif _is_numpys(obj):
        protocols = _WITHOUT_DLPACK
    for name, reader in protocols:
        if name not in _ASKED_ONCE and not _offers(obj, name):
            continue
        if isinstance(reader, str):
            reader = _imported(reader)
        try:
            if reader is dlpack and (protocols is _FROM_DLPACK_ON or _offers_arrow(obj)):
                shared = dlpack.adopt_versioned(cls, obj, stream, transfer, wait)
            else:
                shared = reader.adopt(cls, obj, stream, transfer, wait)
        except Exception as error:
            if reader is dlpack:
                _note_buffer(obj, error)
            elif name.startswith("__arrow"):
                from . import refusal

                told = refusal.added(obj, error)
                if told is not error:
                    raise told from error
            raise
        if shared is not None:
            if protocols is not _FROM_DLPACK_ON:
                _remember(obj, name)
            return _told(name, shared)
    raise _refusal(obj)


_native.set_known_types(plain_types, cuda_types, dlpack_types, wait_of, ask)


def _told(name: str, shared: _A) -> _A:
    shared._source = name
    return shared


def _offers(obj: Any, name: str) -> bool:
    if isinstance(obj, type):
        return False
    if name == dlpack.NAME and is_capsule(obj):
        return True
    try:
        return getattr(obj, name, None) is not None
    except Exception:
        return True  # reading it raises the error


def _offers_arrow(obj: Any) -> bool:
    return any(_offers(obj, name) for name in _ARROW)


def offers_elements(obj: Any) -> bool:
    """Whether an object has one of the protocols. Using the protocol may still fail."""
    if any(name != buffer_protocol.NAME and _offers(obj, name) for name, _ in PROTOCOLS):
        return True
    return _exports_buffers(obj)


def _imported(module: str) -> Any:
    if module not in _readers:
        from importlib import import_module

        _readers[module] = import_module("." + module, __package__)
    return _readers[module]


_readers: dict[str, Any] = {}


def _remember(obj: Any, name: str) -> None:
    kind = type(obj)
    if name == _CUDA:
        known = cuda_types
    elif name in _ARROW or (name == dlpack.NAME and _offers_arrow(obj)):
        known = arrow_types
    elif name == dlpack.NAME:
        known = dlpack_types
    else:
        return
    if len(known) >= _MOST_TYPES or carries(kind):
        return
    if known is not cuda_types and (not hasattr(kind, name) or _exports_buffers(obj)):
        return  # a proxy, or a type whose other objects may need another protocol
    if known is arrow_types and any(hasattr(kind, other) for other, _ in PROTOCOLS[:2]):
        return
    known.add(kind)


def _note_buffer(obj: Any, error: Exception) -> None:
    """Add to an error why an object with the buffer protocol was not shared by that.

    The reason may explain the error, as for a deleted array of JAX.
    """
    try:
        memoryview(obj)
    except TypeError:
        pass  # it has no buffers
    except Exception as refused:
        error.add_note(f"The object exports no buffer either: {refused}")


def _exports_buffers(obj: Any) -> bool:
    """Whether the object's type has the buffer protocol, even if this object refuses."""
    try:
        memoryview(obj)
    except TypeError:
        return False
    except Exception:
        return True
    return True


def _is_foreign(obj: Any) -> bool:
    """Whether an object shall be asked for protocols; False for hamr's own."""
    if isinstance(obj, _native.Array):
        return False
    refuse_meaning(obj)
    if type(obj).__module__ == "numpy" and type(obj).__name__ in ("datetime64", "timedelta64"):
        # They export their bytes.
        raise TypeError(f"{type(obj).__name__} objects are not supported: pass a view as int64")
    if _is_plain(type(obj)):
        plain_types.add(type(obj))
    return True


def _is_plain(kind: type) -> bool:
    """Whether a type really is one of Python's or NumPy's.

    Classes made by exec() and by compilers may have the module name "builtins".
    """
    name = str(kind.__module__)
    if name.partition(".")[0] not in ("builtins", "numpy", "array", "mmap"):
        return False
    module = sys.modules.get(name)
    return module is not None and vars(module).get(kind.__name__) is kind


def _is_numpys(obj: Any) -> bool:
    """Whether an object is a NumPy array. NumPy has DLPack for fewer types than hamr."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(obj, numpy.ndarray)


def _view(cls: type[_A], obj: _native.Array, stream: int, transfer: int) -> _A:
    source = obj._snapshot(_native.Array)
    view = _native.view(cls, source, 0, source.shape, source.strides)
    view._set_order(stream, transfer)
    return view


def _refusal(obj: Any) -> TypeError:
    """The error for an object that hamr cannot share."""
    kind = type(obj).__name__
    try:
        with memoryview(obj) as view:
            code, size = view.format, view.itemsize
    except (TypeError, ValueError, BufferError) as error:
        from . import refusal

        return refusal.of(obj, tuple(name for name, _ in PROTOCOLS), error)
    try:
        core().ParseFormat(code, size)  # raises the reason
    except TypeError as error:
        from . import refusal

        raise refusal.added(obj, error) from None
    return TypeError(f"{kind} object with elements of format {code!r} cannot be shared")
