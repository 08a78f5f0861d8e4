"""Which device owns the memory at an address."""

from __future__ import annotations

from .errors import BackendUnavailable
from .library import call

HOST = -1


def device_of_address(address: int) -> int:
    """The number of the device; -1 is the host, whose all is that no runtime knows."""
    import json

    try:
        found: int = json.loads(call("Locate", address))["device"]
    except BackendUnavailable:  # then there is no memory but the host's
        return HOST
    return found
