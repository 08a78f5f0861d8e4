"""Tracing: every allocation, free, copy and handle, on standard error or to logging."""

from __future__ import annotations

import os
from _thread import RLock

import hamr._native as _native

from .._base.library import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging

_INTERVAL = 0.05  # seconds between looks for new lines

_logger: logging.Logger | None = None
_watched = 0  # the process that has a thread for the lines
_logging = RLock()  # while lines are on their way to the logger


def set_verbose(level: int, logger: logging.Logger | None = None) -> None:
    """Trace what hamr does with memory; level 0 stops that.

    Lines go to standard error, as with the environment variable HAMR_VERBOSE, or
    to ``logger`` as messages of level DEBUG. Go cannot call into Python, so a
    thread logs them within 50 ms; the rest is logged at exit, or by the next
    ``set_verbose``. A forked child starts anew, by its environment.
    """
    global _logger
    if not isinstance(level, int):
        raise TypeError(f"level is {level!r}: accepted is an int")
    if logger is not None and not callable(getattr(logger, "debug", None)):
        raise TypeError(f"logger is {logger!r}: accepted are a logging.Logger and None")
    target = 0 if level <= 0 else 1 if logger is None else 2
    core().SetVerbose(target)
    with _logging:  # the thread may have lines of before
        flush()
        _logger = logger
    if target == 2 and _watched != os.getpid():
        _watch()


def flush() -> None:
    """Log the lines that wait."""
    with _logging:
        lines, logger = _native.take_log(), _logger
        if logger is not None:
            for (line,) in lines:
                logger.debug("%s", line)


def _watch() -> None:
    global _watched
    import atexit
    import threading

    stop = threading.Event()
    _watched = os.getpid()

    def watch() -> None:
        while not stop.wait(_INTERVAL):
            if _logger is not None:
                flush()

    def finish() -> None:
        stop.set()
        flush()

    threading.Thread(target=watch, name="hamr log", daemon=True).start()
    atexit.register(finish)
    os.register_at_fork(after_in_child=_start_anew)


def _start_anew() -> None:
    """The parent's thread, which is not there, may have had the lock."""
    global _logging
    _logging = RLock()
