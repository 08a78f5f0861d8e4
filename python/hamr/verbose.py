"""Tracing: every allocation, free, copy and handle, on standard error or to logging."""

from __future__ import annotations

from ._library import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging

_INTERVAL = 0.05  # seconds between looks for new lines

_logger: logging.Logger | None = None


def set_verbose(level: int, logger: logging.Logger | None = None) -> None:
    """Trace what hamr does with memory, or stop that with level 0.

    Lines go to standard error, as with the environment variable HAMR_VERBOSE, or
    to ``logger`` as messages of level DEBUG. Go cannot call into Python, so a
    thread takes them over, within 50 ms; at exit the rest is logged.
    """
    global _logger
    if not isinstance(level, int):
        raise TypeError(f"level is {level!r}: accepted is an int")
    if logger is None:
        call("SetVerbose", min(level, 1))
        flush()
        _logger = None
        return
    call("SetVerbose", 2 if level > 0 else 0)
    flush()
    first = _logger is None
    _logger = logger
    if first:
        _start()


def flush() -> None:
    """Log the lines that wait."""
    lines = call("TakeLog")
    if _logger is not None and lines:
        for line in lines.split("\n"):
            _logger.debug("%s", line)


def _start() -> None:
    import atexit
    import threading

    stop = threading.Event()

    def watch() -> None:
        while _logger is not None and not stop.wait(_INTERVAL):
            flush()

    def finish() -> None:
        stop.set()
        flush()

    threading.Thread(target=watch, name="hamr log", daemon=True).start()
    atexit.register(finish)
