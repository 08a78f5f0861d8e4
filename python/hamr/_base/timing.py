"""How long a device's work took: the time between two events."""

from __future__ import annotations

from .library import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NANOSECONDS = 1e6  # in a millisecond


def milliseconds(start: Any, later: Any) -> float:
    """How much later one Event was reached than another; an error if that is not known."""
    backend, device, first = start._named()
    other, place, second = later._named()
    for event in (start, later):
        if not event._timing:
            raise ValueError(
                f"{event!r} keeps no time: accepted are events that hamr.Event(stream, "
                "timing=True) or stream.record(timing=True) made"
            )
    if (other, place) != (backend, device):
        raise ValueError(
            f"later is {later!r}: accepted are events of {backend} device {device}, as {start!r} is"
        )
    for event in (start, later):
        if not event.done:
            raise RuntimeError(
                f"{event!r} is not done yet: write synchronize() or await on it before"
            )
    return core().Elapsed(backend, device, first, second) / _NANOSECONDS
