"""Copies on the host, beside NumPy's, PyTorch's and the C library's."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import partial
from typing import Any

from .copying import part, part_of
from .curves import Pattern, Point, Way
from .driver import Driver
from .groups import Libraries

NEW, EXISTING = "host to new host memory", "host to an existing NumPy array"


def on_host(lib: Libraries, driver: Driver | None) -> Iterator[Point]:
    """From one part of ordinary memory to another: new, and an array that is there."""
    import numpy as np

    import hamr

    from .dlpack import torch_if_there

    largest = max(lib.settings.sizes())
    pattern, whole = Pattern(largest), np.ones(largest, "u1")
    torch: Any = torch_if_there()
    for nbytes in lib.settings.sizes():
        array, out = pattern.array[:nbytes], whole[:nbytes]
        buf = hamr.buffer(array)
        t = torch.from_numpy(array) if torch else None
        ways = [
            Way("hamr", "buf.copy()", buf.copy, take=part, role="hamr"),
            Way("NumPy", "array.copy()", array.copy, take=part),
        ]
        if t is not None:
            ways.append(Way("PyTorch", "t.clone()", t.clone, take=part))
        yield Point(NEW, "host", pattern, nbytes, ways)
        take, move = part_of(out), ctypes.memmove
        arguments = out.ctypes.data, pattern.address, nbytes
        ways = [
            Way("hamr", "buf.get(out)", partial(buf.get, out), take=take, role="hamr"),
            Way("NumPy", "np.copyto(out, array)", partial(np.copyto, out, array), take=take),
            Way("C", "memmove", partial(move, *arguments), take=take, role="driver"),
        ]
        if t is not None:
            into = torch.from_numpy(out)
            ways.append(Way("PyTorch", "u.copy_(t)", partial(into.copy_, t), take=take))
        yield Point(EXISTING, "host", pattern, nbytes, ways)
        del buf, ways, array, t
        lib.trim()
