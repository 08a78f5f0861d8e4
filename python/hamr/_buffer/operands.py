"""What content operations accept besides buffers: numbers, lists, other libraries' arrays."""

from __future__ import annotations

import hamr._native as _native

from .._base.element import TABLE, held_large, number_as
from .._base.errors import OutOfRange
from .._protocols.dispatch import offers_elements, share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def scalar_for(x: Any, target: _native.Array) -> _native.Array | None:
    """A Python number as an array that the core can write to a target; None for anything else."""
    try:
        return _native.scalar(x)
    except ValueError:
        held = held_large(x, target._element)
        if held is None:
            raise
    return _native.scalar(held)


def operand(x: Any, target: _native.Array, name: str = "value") -> _native.Array:
    """A number, array, list or buffer as an array that the core can read for a target.

    ``name`` is the argument's name. A number that the target's type cannot hold is a ValueError,
    also in a list.
    """
    if isinstance(x, _native.Array):
        return x._pin()
    number = scalar_for(x, target)
    if number is not None:
        return number
    if isinstance(x, (list, tuple, range)):
        x = _from_sequence(x, target)
    try:
        return share(_native.Array, x)._pin()
    except TypeError:
        refuse_value(x, name)
        raise


def refuse_value(x: Any, name: str) -> None:
    """Raise TypeError for an object without elements."""
    if not isinstance(x, (int, float, complex, list, tuple, range)) and not offers_elements(x):
        from .._protocols import refusal
        from .._protocols.fields import short

        other = refusal.instead(x)
        raise TypeError(
            f"{name} is {short(x)}, a {type(x).__name__}: accepted are a number, a list of "
            f"numbers, an array or a hamr.Buffer{'; ' + other if other else ''}"
        ) from None


def as_array(values: Any) -> Any:
    """The numbers in a list or tuple as an array, by NumPy's rules for their type.

    Without NumPy the list must be flat.
    """
    try:
        import numpy
    except ImportError:
        return _from_flat(values)
    array = numpy.asarray(values)
    if array.dtype.kind == "f" and array.size and float(abs(array).max()) >= 2.0**63:
        # Integers on both sides of 2**63 become floats.
        exact = numpy.asarray(values, dtype=object)
        if all(isinstance(v, int) for v in exact.flat):
            whole = min(exact.flat) >= 0 and max(exact.flat) < 2**64
            return exact.astype("uint64") if whole else exact
    if array.dtype.kind == "O" and all(isinstance(v, (int, float)) for v in array.flat):
        return array  # beyond 64 bits
    if array.dtype.kind == "O" and all(isinstance(v, (int, float, complex)) for v in array.flat):
        try:
            return array.astype("complex128")
        except OverflowError:
            raise OutOfRange("no element type holds all the list's numbers") from None
    if array.dtype.kind not in "biufc" and array.dtype.isbuiltin != 2:
        raise TypeError(
            f"the list's elements are of type {array.dtype}{_first_other(values)}: "
            "accepted are numbers"
        )
    return array


def _first_other(values: Any) -> str:
    """The first element of a list, or of lists in it, that is no number, for a message."""
    from .._protocols.fields import short

    for value in values:
        found = ""
        if isinstance(value, (list, tuple)):
            found = _first_other(value)
        elif not isinstance(value, (int, float, complex)):
            found = f", as {short(value)}"
        if found:
            return found
    return ""


def _from_sequence(values: Any, target: _native.Array) -> Any:
    """The numbers in a list or tuple as an array, if the target's type holds them."""
    array = as_array(values)
    kind = TABLE[target._element][1][1]
    if isinstance(array, (list, memoryview)) or not hasattr(array, "dtype"):
        return _checked_flat(array, values, target, kind)
    if array.dtype.kind == "c" and kind not in "cb":
        _refuse_complex(values, target)
    if (
        kind in "iu"
        and array.dtype.kind == "f"
        and array.size
        and float(abs(array).max()) >= 2.0**53
    ):
        import numpy

        if numpy.isfinite(array).all():  # a fraction in the list made large integers floats
            whole = [int(v) for v in numpy.asarray(values, dtype=object).flat]
            array = numpy.array(whole, dtype=object).reshape(array.shape)
    if array.dtype.kind == "O":
        if kind in "iu":
            _refuse_number(min(array.flat), target)
            _refuse_number(max(array.flat), target)
            return array.astype(f"{kind}8")
        return _large(array, target)
    if kind != "b" and array.size:
        _refuse_numbers(array, target, kind)
    return array


def _checked_flat(array: Any, values: Any, target: _native.Array, kind: str) -> Any:
    """What ``_from_flat`` made, without NumPy."""
    numbers = list(array) if kind != "b" else []
    if kind in "iu":
        for number in numbers:
            if not abs(number) < float("inf"):
                _refuse_number(number, target)
        if any(isinstance(number, float) for number in numbers):
            numbers = [int(v) for v in values]  # a fraction in the list made large integers floats
    else:
        numbers = [number for number in numbers if abs(number) < float("inf")]
    if numbers:
        _refuse_number(min(numbers), target)
        _refuse_number(max(numbers), target)
    return _from_flat(numbers) if kind in "iu" else array


def _refuse_numbers(array: Any, target: _native.Array, kind: str) -> None:
    """Raise ValueError for a number that the target's type cannot hold.

    A type that holds the least and the largest number holds all of them.
    """
    if array.dtype.isbuiltin == 2:  # ml_dtypes
        array = array.astype("float64")
    parts = [array]
    if array.dtype.kind == "c":
        parts = [array.real, array.imag]
    for part in parts:
        if kind not in "iu" and part.dtype.kind == "f":
            part = part[abs(part) < float("inf")]
        if part.size:
            _refuse_number(part.min().item(), target)
            _refuse_number(part.max().item(), target)


def _refuse_complex(values: Any, target: _native.Array) -> None:
    """A TypeError that names the first complex number of a list, if it has one."""
    import numpy

    for value in numpy.asarray(values, dtype=object).flat:
        if numpy.iscomplexobj(value):
            _refuse_number(complex(value), target)


def _refuse_number(number: Any, target: _native.Array) -> None:
    held = held_large(number, target._element)
    number_as(number if held is None else held, target._element)


def _large(array: Any, target: _native.Array) -> Any:
    """An array of ints beyond 64 bits, for elements that are no integers."""
    import numpy

    held = [(held_large(v, target._element), v) for v in array.flat]
    made = numpy.array([float(v if large is None else large) for large, v in held])
    if TABLE[target._element][1][1] != "b":
        _refuse_numbers(made, target, "f")
    return made.reshape(array.shape)


def _from_flat(values: Any) -> Any:
    from array import array

    kinds = {type(v) for v in values}
    if kinds == {bool}:
        return memoryview(bytes(values)).cast("?")
    if not kinds <= {bool, int, float}:
        other = next(v for v in values if not isinstance(v, (bool, int, float)))
        raise TypeError(
            f"without NumPy a list must be flat and hold int or float, and it has {other!r}"
        )
    for code in "qQ" if kinds <= {bool, int} else "d":
        try:
            return array(code, values)
        except OverflowError:
            pass
    raise OutOfRange(
        f"no element type holds all the list's numbers, {min(values)} to {max(values)}"
    )
