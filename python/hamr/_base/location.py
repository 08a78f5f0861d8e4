"""Which device owns the memory at an address."""

from __future__ import annotations

import hamr._native as _native

from .errors import BackendUnavailable

HOST = -1


def device_of_address(address: int) -> int:
    """The number of the device; -1 is the host, whose all is that no runtime knows."""
    try:
        return _native.locate(address)[1]
    except BackendUnavailable:  # then there is no memory but the host's
        return HOST
