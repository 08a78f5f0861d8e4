"""What buffers hold."""

from __future__ import annotations

import numpy as np

import hamr


def on_host(buffer: hamr.Buffer) -> np.ndarray:
    """The elements, shared where the host reaches them.

    By one protocol, where that has the element type: NumPy itself would try others, whatever
    error the first one raised.
    """
    handle = buffer.get_host_accessible()
    return np.asarray(memoryview(handle) if buffer.dtype.isbuiltin == 1 else handle)
