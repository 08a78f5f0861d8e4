"""Which device owns the memory at an address."""

from __future__ import annotations

import hamr._native as _native

from .errors import BackendUnavailable

HOST = -1


def device_of_address(address: int) -> int:
    """The number of the device; -1 is the host. Memory that no runtime knows is the host's."""
    try:
        return _native.locate(address)[1]
    except BackendUnavailable:  # then all memory is the host's
        return HOST
