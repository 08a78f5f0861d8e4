"""What content operations take beside buffers: numbers, lists, other libraries' arrays."""

from __future__ import annotations

import hamr._native as _native

from .._base.element import held_large
from .._protocols.dispatch import share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def scalar_for(x: Any, target: _native.Array) -> _native.Array | None:
    """A Python number as something the core can write to a target; None for anything else."""
    try:
        return _native.scalar(x)
    except ValueError:
        held = held_large(x, target._element)
        if held is None:
            raise
    return _native.scalar(held)


def operand(x: Any, target: _native.Array) -> _native.Array:
    """A number, array, list or buffer as something the core can read for a target."""
    if isinstance(x, _native.Array):
        return x._pin()
    number = scalar_for(x, target)
    if number is not None:
        return number
    if isinstance(x, (list, tuple, range)):
        x = _from_sequence(x)
    return share(_native.Array, x)._pin()


def _from_sequence(values: Any) -> Any:
    """The numbers in a list or tuple as an array, by NumPy's rules for their type.

    Without NumPy the list must be flat.
    """
    try:
        import numpy
    except ImportError:
        return _from_flat(values)
    array = numpy.asarray(values)
    if array.dtype.kind not in "biufc" and array.dtype.isbuiltin != 2:
        raise TypeError(f"the list's elements are of type {array.dtype}: accepted are numbers")
    return array


def _from_flat(values: Any) -> Any:
    from array import array

    kinds = {type(v) for v in values}
    if kinds == {bool}:
        return memoryview(bytes(values)).cast("?")
    if not kinds <= {bool, int, float}:
        raise TypeError("without NumPy a list must be flat and hold int or float")
    for code in "qQ" if kinds <= {bool, int} else "d":
        try:
            return array(code, values)
        except OverflowError:
            pass
    raise ValueError(
        f"no element type holds all the list's numbers, {min(values)} to {max(values)}"
    )
