"""What happens when memory runs out: others in the process give back what they do not use."""

from __future__ import annotations

import sys
from _thread import _local, allocate_lock
from os import register_at_fork

from .allocator import Allocator, backend_of, is_ordinary
from .errors import PinnedMemoryWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_GIVE_UP, _AGAIN, _OR_PAGEABLE, _COLLECTED = range(4)  # the answers to native/core/relief.c
_POOLS_ASKED = 1  # a step that was done: other pools have been asked

_callbacks: list[OutOfMemoryCallback] = []  # never changed in place
_here = _local()  # .asking: this thread is inside a callback
_warned = False


class OutOfMemoryCallback:
    """What ``on_out_of_memory`` returns. Calling it calls the function."""

    def __init__(self, function: Callable[[int, int], object]) -> None:
        self.function = function

    def __call__(self, device: int, nbytes: int) -> object:
        """Call the function."""
        return self.function(device, nbytes)

    def remove(self) -> None:
        """Stop calling the function. Calling this twice is harmless."""
        global _callbacks
        _callbacks = [c for c in _callbacks if c is not self]

    def __repr__(self) -> str:
        return f"<hamr.on_out_of_memory({self.function!r})>"


def on_out_of_memory(callback: Callable[[int, int], object]) -> OutOfMemoryCallback:
    """Call a function before hamr raises OutOfMemory, until ``remove()`` of the result.

    ``callback(device, nbytes)`` gets the device that is full, -1 for the host, and how many
    bytes were asked for. It returns a true value if it has given memory back; hamr then tries
    once more. It runs on the thread that needs the memory, perhaps on several at the same time.
    If memory runs out inside a callback, no callback is called. A callback must not wait for
    another thread that allocates, since that thread may wait for the callback. Exceptions that it
    raises go to ``sys.unraisablehook``. Works as a decorator, too.

    Even without callbacks hamr first gives back what it keeps itself. Then it asks the pools of
    CuPy and of torch for what they do not use, if the program has imported these. At last it
    collects Python's garbage, once.
    """
    global _callbacks
    if not callable(callback):
        raise TypeError(f"callback is {callback!r}: accepted is a function of (device, nbytes)")
    added = OutOfMemoryCallback(callback)
    _callbacks = [*_callbacks, added]
    return added


def relieve(
    device: int, nbytes: int, allocator: str, asked: int, limited: int
) -> tuple[int, str, str]:
    """What an operation that ran out of memory does next, what was tried and who has the memory.

    The extension calls it. ``asked`` is how often the operation has asked before, ``limited``
    whether hamr's own limit was reached.
    """
    if getattr(_here, "asking", False):
        return _GIVE_UP, "", ""
    kind = Allocator[allocator]
    pinned = device < 0 and not is_ordinary(kind)
    tried = ""
    if not asked:
        some, tried = _ask(device, nbytes, pinned, not limited and backend_of(kind) == "cuda")
        if some:
            return _AGAIN, tried, ""
    # After ordinary memory has replaced page-locked memory once, it does so again at once.
    if asked <= _POOLS_ASKED and not (pinned and _warned) and _collected():
        return _COLLECTED, tried, ""
    if pinned and _pageable(nbytes):
        return _OR_PAGEABLE, tried, ""
    return _GIVE_UP, tried, _held(backend_of(kind), device)


def _held(backend: str, device: int) -> str:
    """Who has the memory; "" if that cannot be asked now."""
    from .held_memory import sentence

    _here.asking = True  # a failure meanwhile asks nobody
    try:
        return sentence(backend, device)
    except Exception:  # the error that is about to be raised says more
        return ""
    finally:
        _here.asking = False


def _collected() -> bool:
    """Collect garbage. Returns whether there was any, which may have held memory."""
    import gc

    _here.asking = True  # finalisers run
    try:
        return bool(_call(gc.collect))
    finally:
        _here.asking = False


class _Asking:
    """A thread that asks others for memory. Other threads that run out wait for it."""

    def __init__(self) -> None:
        self.over, self.some = allocate_lock(), False


_now: list[_Asking] = []
register_at_fork(after_in_child=_now.clear)


def _ask(device: int, nbytes: int, pinned: bool, others: bool) -> tuple[bool, str]:
    """Ask others for memory. Returns whether any was given back, and who was asked."""
    mine = _Asking()
    with mine.over:
        _now.append(mine)
        try:
            mine.some, tried = _ask_all(device, nbytes, pinned, others)
        finally:
            if mine in _now:  # not in a child that a callback has forked
                _now.remove(mine)
    if mine.some:
        return True, tried
    return any(_has_helped(other) for other in [*_now]), tried


def _has_helped(other: _Asking) -> bool:
    with other.over:
        return other.some


def _ask_all(device: int, nbytes: int, pinned: bool, others: bool) -> tuple[bool, str]:
    some, tried = False, ["what hamr itself keeps"]
    _here.asking = True
    try:
        for name, give_back in _DEFAULTS:
            module = sys.modules.get(name)
            if module is not None and others:
                answer = _call(give_back, module, device, pinned)
                if answer is not None:
                    tried.append(f"{name}'s pool")
                    some |= bool(answer)
        callbacks = _callbacks
        for callback in callbacks:
            some |= bool(_call(callback.function, device, nbytes))
        if callbacks:
            tried.append(f"{len(callbacks)} callback{'s'[: len(callbacks) > 1]}")
    finally:
        _here.asking = False
    return some, ", ".join(tried)


def _call(function: Callable[..., object], *arguments: Any) -> object:
    """What a function returns; None if it raises. The exception is reported."""
    try:
        return function(*arguments)
    except BaseException as error:  # the error that is about to be raised says more
        report: Any = _Unraisable(error, function)
        sys.unraisablehook(report)
        return None


class _Unraisable:
    """What ``sys.unraisablehook`` gets."""

    err_msg = "Exception ignored in a callback of hamr.on_out_of_memory"

    def __init__(self, error: BaseException, function: object) -> None:
        self.exc_type, self.exc_value, self.exc_traceback = type(error), error, error.__traceback__
        self.object = function


def _of_cupy(cupy: Any, device: int, pinned: bool) -> bool:
    """Have CuPy's pool give back what nobody uses. Returns whether there was any."""
    if pinned:
        pool = cupy.get_default_pinned_memory_pool()
        idle: int = pool.n_free_blocks()
        pool.free_all_blocks()
        return idle > 0
    with cupy.cuda.Device(device):
        pool = cupy.get_default_memory_pool()
        idle = pool.free_bytes()
        pool.free_all_blocks()
    return bool(idle > 0)


def _of_torch(torch: Any, device: int, pinned: bool) -> bool | None:
    """Have torch's allocator give back what nobody uses: whether it did; None if not asked."""
    cuda = getattr(torch, "cuda", None)
    if cuda is None or pinned or not cuda.is_initialized():
        return None
    before = cuda.memory_reserved(device)
    cuda.empty_cache()
    return bool(cuda.memory_reserved(device) < before)


_DEFAULTS: tuple[tuple[str, Callable[..., object]], ...] = (
    ("cupy", _of_cupy),
    ("torch", _of_torch),
)


def _is_an_error(filters: Any) -> bool:
    """Whether the filters of ``warnings`` make a PinnedMemoryWarning an error."""
    for action, message, category, module, line in filters:
        if issubclass(PinnedMemoryWarning, category) and not (message or module or line):
            return bool(action == "error")
    return False


def _of_user() -> int:
    """The stack level of the code that called hamr, for ``warn``."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("hamr."):
        frame, level = frame.f_back, level + 1
    return level


def _pageable(nbytes: int) -> bool:
    """Warn once that ordinary memory replaces page-locked memory. False if that is an error."""
    global _warned
    import warnings

    if _warned:
        return not _is_an_error(warnings.filters)
    try:
        warnings.warn(
            f"no page-locked memory is available for {nbytes} bytes: ordinary memory is used "
            "instead, which devices copy from more slowly (this warning is given once)",
            PinnedMemoryWarning,
            stacklevel=_of_user(),
        )
    except PinnedMemoryWarning:
        return False
    _warned = True
    return True
