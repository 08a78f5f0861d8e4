"""The choice between CUDA and HIP."""

from __future__ import annotations

import os

from .._base.errors import Error
from .._base.library import core

#: Names of backends, in the order in which they are looked for.
_RUNTIMES = ("cuda", "hip")

#: Chooses the runtime, "cuda" or "hip", where both are there.
SETTING = "HAMR_PYGPU_RUNTIME"

_chosen: list[str] = []


def runtime() -> str:
    """The backend that serves this module: "cuda", or "hip" if only HIP has devices.

    HAMR_PYGPU_RUNTIME in the environment chooses one of the two. Without any device it is "cuda",
    whose calls then report that there is no device. The answer never changes after the first call.
    """
    if not _chosen:
        _chosen.append(_choose())
    return _chosen[0]


def _choose() -> str:
    wanted = os.environ.get(SETTING, "")
    if wanted:
        if wanted not in _RUNTIMES:
            raise ValueError(f"{SETTING} is {wanted!r}: accepted are {', '.join(_RUNTIMES)}")
        return wanted
    return next((name for name in _RUNTIMES if device_count(name)), _RUNTIMES[0])


def device_count(name: str) -> int:
    """How many devices a runtime has; 0 where it is not there."""
    try:
        return core().DeviceCount(name)
    except Error:
        return 0
