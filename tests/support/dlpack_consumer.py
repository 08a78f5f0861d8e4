"""A consumer of DLPack by ctypes: what it does to a capsule, one step at a time."""

from __future__ import annotations

import ctypes
from typing import Any

from tests.support import dlpack_structs as dl

#: A deleter called as extensions call it that hold Python's lock, and without the lock.
WITH_LOCK = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
WITHOUT_LOCK = dl.DELETER


class Consumed:
    """A tensor that a consumer has taken out of its capsule, until end()."""

    def __init__(self, producer: Any, stream: int | None) -> None:
        self._seen = dl.consume(producer.__dlpack__(stream=stream, max_version=(1, 3)))
        assert self._seen.version is not None
        assert self._seen.version[0] == 1
        self.tensor = self._seen.struct.tensor
        self.address: int = (self._seen.data or 0) + self._seen.byte_offset

    def end(self, how: Any = WITH_LOCK) -> None:
        """Call the deleter, once."""
        how(self._seen.deleter)(self._seen.address)
