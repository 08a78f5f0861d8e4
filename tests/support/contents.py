"""What buffers hold."""

from __future__ import annotations

import numpy as np

import hamr


def on_host(buffer: hamr.Buffer) -> np.ndarray:
    """The elements, shared where the host reaches them.

    By one protocol: NumPy itself would try others, whatever error the first one raised.
    """
    return np.asarray(memoryview(buffer.get_host_accessible()))
