"""New buffers by NumPy's and CuPy's names: empty, zeros, array and so on.

They take ``allocator=``, ``device=``, ``stream=`` and ``transfer=`` as ``hamr.Buffer`` does.
Without an allocator and a device the memory is malloc's.
"""

from __future__ import annotations

from .._base.allocator import Allocator, is_of_a_device
from .._base.cuda_devices import current_device
from .._base.element import element_of, name_of
from .._base.errors import OutOfRange
from .._base.place import copy_place
from .buffers import Buffer, buffer
from .operands import as_array, refuse_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict, Unpack

    from .._base.allocator import AllocatorName, Transfer, TransferName
    from .._base.place import Device

    Shape = int | tuple[int, ...]

    class Place(TypedDict, total=False):
        """Where the memory shall be, as for ``hamr.Buffer``."""

        allocator: Allocator | int | AllocatorName | None
        device: Device | None
        stream: Any
        transfer: Transfer | int | TransferName


_PLACE = {"allocator", "device", "stream", "transfer"}

#: Types whose objects have no memory that could be shared.
_VALUES = (int, float, complex, list, tuple, range)


def empty(shape: Shape, dtype: Any = "float64", **place: Unpack[Place]) -> Buffer:
    """A buffer of elements that are not initialised."""
    _only_place("empty", place)
    return Buffer(shape, dtype, **place)


def zeros(shape: Shape, dtype: Any = "float64", **place: Unpack[Place]) -> Buffer:
    """A buffer of zeros."""
    _only_place("zeros", place)
    return Buffer(shape, dtype, fill=0, **place)


def ones(shape: Shape, dtype: Any = "float64", **place: Unpack[Place]) -> Buffer:
    """A buffer of ones."""
    _only_place("ones", place)
    return Buffer(shape, dtype, fill=1, **place)


def full(shape: Shape, fill_value: Any, dtype: Any = None, **place: Unpack[Place]) -> Buffer:
    """A buffer of one value. By default it has the value's type."""
    _only_place("full", place)
    if dtype is None:
        _given(fill_value)
        value = (
            array(fill_value)
            if isinstance(fill_value, _VALUES)
            else _elements(fill_value, "fill_value")
        )
        if value.ndim:
            raise ValueError(f"fill_value has shape {value.shape}: accepted is a number")
        dtype, fill_value = name_of(value._element), value
    return Buffer(shape, dtype, fill=_given(fill_value), **place)


def array(obj: Any, dtype: Any = None, **place: Unpack[Place]) -> Buffer:
    """A buffer with a copy of the elements of an array, a list of numbers or a number.

    The type is by default the array's. For lists NumPy chooses it; without NumPy only flat lists
    are accepted, and become float64 or int64. A number that the type cannot hold is a ValueError,
    a list of anything else a TypeError. Without an allocator and a device, the elements of an
    array stay in the same kind of memory.
    """
    _only_place("array", place)
    if not isinstance(obj, _VALUES):
        shared = _elements(obj, "obj")
        if place.keys() <= {"allocator", "device"}:
            return shared.copy(_allocator(place), place.get("device"), dtype)
        kind = name_of(shared._element) if dtype is None else dtype
        return Buffer(shared.shape, kind, data=shared, **place)
    if isinstance(obj, (int, float, complex)):
        if dtype is None:
            kinds = (bool, int, float, complex)
            kind = next(k for k in kinds if isinstance(obj, k))
            dtype = "uint64" if kind is int and obj >= 2**63 else kind  # type: ignore[operator]
        return Buffer((), dtype, fill=obj, **place)
    values = as_array(obj)
    if getattr(getattr(values, "dtype", None), "kind", "") == "O":
        if dtype is None:
            raise OutOfRange("no element type holds all the list's numbers: accepted is a dtype")
        return Buffer(values.shape, dtype, data=obj, **place)
    shared = buffer(values)
    if dtype is None:
        return Buffer(shared.shape, name_of(shared._element), data=shared, **place)
    return Buffer(shared.shape, dtype, data=obj, **place)


def asarray(obj: Any, dtype: Any = None, **place: Unpack[Place]) -> Buffer:
    """A buffer that shares the memory of ``obj`` if possible, else has a copy.

    It has a copy of lists and numbers, of elements of another type, and of elements whose
    allocator or device is not the one that is asked for.
    """
    _only_place("asarray", place)
    if isinstance(obj, _VALUES):
        return array(obj, dtype, **place)
    shared = _elements(obj, "obj", place.get("stream"), place.get("transfer", 1))
    device = place.get("device")
    allocator, number = copy_place(_allocator(place), device, shared._allocator)
    if device is not None and number < 0 and is_of_a_device(allocator):
        number = current_device()
    here = allocator in (Allocator.same, shared._allocator) and number in (-1, shared.device)
    if here and (dtype is None or element_of(dtype) == shared._element):
        return shared
    return shared.copy(_allocator(place), device, dtype)


def empty_like(
    prototype: Any, dtype: Any = None, *, shape: Any = None, **place: Unpack[Place]
) -> Buffer:
    """A buffer of another array's shape and type, not initialised, in memory of the same kind."""
    _only_place("empty_like", place)
    return _like(prototype, dtype, shape, dict(place))


def zeros_like(
    prototype: Any, dtype: Any = None, *, shape: Any = None, **place: Unpack[Place]
) -> Buffer:
    """A buffer of zeros of another array's shape and type, in memory of the same kind."""
    _only_place("zeros_like", place)
    return _like(prototype, dtype, shape, {"fill": 0, **place})


def ones_like(
    prototype: Any, dtype: Any = None, *, shape: Any = None, **place: Unpack[Place]
) -> Buffer:
    """A buffer of ones of another array's shape and type, in memory of the same kind."""
    _only_place("ones_like", place)
    return _like(prototype, dtype, shape, {"fill": 1, **place})


def full_like(
    prototype: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None, **place: Unpack[Place]
) -> Buffer:
    """A buffer of one value, of another array's shape and type, in memory of the same kind."""
    _only_place("full_like", place)
    return _like(prototype, dtype, shape, {"fill": _given(fill_value), **place})


def _only_place(name: str, place: Place) -> None:
    for word in place.keys() - _PLACE:  # Buffer accepts more, which these functions do not
        raise TypeError(
            f"{name}() got an unexpected keyword argument {word!r}: accepted are "
            f"{', '.join(sorted(_PLACE))}"
        )


def _elements(obj: Any, name: str, *order: Any) -> Buffer:
    """The memory of an array that a user gave; TypeError names the argument."""
    try:
        return buffer(obj, *order)
    except TypeError:
        refuse_value(obj, name)
        raise


def _given(fill_value: Any) -> Any:
    if fill_value is None:  # to Buffer it means: do not initialise
        raise TypeError("fill_value is None: accepted is a number")
    if not isinstance(fill_value, _VALUES):
        refuse_value(fill_value, "fill_value")
    return fill_value


def _like(prototype: Any, dtype: Any, shape: Any, more: dict[str, Any]) -> Buffer:
    model = (
        array(prototype) if isinstance(prototype, _VALUES) else _elements(prototype, "prototype")
    )
    if more.get("allocator") is None and more.get("device") is None:
        more["allocator"] = model.allocator
        more["device"] = model.device if model.device >= 0 else None
    return Buffer(
        model.shape if shape is None else shape,
        name_of(model._element) if dtype is None else dtype,
        **more,
    )


def _allocator(place: Place) -> Allocator | int | AllocatorName:
    given = place.get("allocator")
    return Allocator.same if given is None else given
