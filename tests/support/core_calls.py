"""Which functions of the Go core C calls, by stand-ins in the table that it has."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support import function_table

_Stand = ctypes.CFUNCTYPE(ctypes.c_void_p)


@contextmanager
def counted() -> Iterator[list[str]]:
    """The names of what is called inside, where nothing may be: the calls do nothing."""
    made: list[str] = []
    kept, stands = {}, []
    for name in function_table.entries():
        if name in ("free", "devices", "set_raise"):
            continue
        place = function_table.entry(name)
        stand = _Stand(lambda name=name: made.append(name))
        stands.append(stand)
        kept[name] = place.value
        place.value = ctypes.cast(stand, ctypes.c_void_p).value
    try:
        yield made
    finally:
        for name, value in kept.items():
            function_table.entry(name).value = value
