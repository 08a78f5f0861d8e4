"""HIP's runtime itself, by ctypes: what a foreign library does beside hamr in these tests.

It is the stand-in that hamr uses: HIP's functions over the emulated CUDA driver, which the `cuda`
backend has in the same process. Nothing here has run on AMD's hardware.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

library = ctypes.CDLL(os.environ["HAMR_HIP_LIBRARY"])


def do(name: str, *arguments: Any) -> None:
    """Call a function; int arguments are passed in 64 bits."""
    code = getattr(library, name)(
        *(ctypes.c_uint64(a) if isinstance(a, int) else a for a in arguments)
    )
    assert code == 0, f"{name} returned {code}"


def get(name: str, *arguments: Any) -> int:
    """What a function writes through its first argument."""
    out = ctypes.c_uint64()
    do(name, ctypes.byref(out), *arguments)
    return out.value


def new_stream(device: int = 0) -> int:
    """A stream of a foreign library's."""
    do("hipSetDevice", device)
    stream = get("hipStreamCreateWithFlags", 1)
    do("hipSetDevice", 0)
    return stream


def end_stream(stream: int) -> None:
    """End a stream of a foreign library's, whose work AMD's runtime might lose."""
    do("hipStreamSynchronize", stream)
    do("hipStreamDestroy", stream)


def fill_late(address: int, value: int, count: int, stream: int) -> None:
    """Write bytes when the stream comes to it: on the emulator, when somebody waits."""
    do("hipMemsetD8Async", address, value, count, stream)
