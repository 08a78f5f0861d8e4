"""A mask or a unit, which objects have besides their elements and no protocol carries.

It is recognized by its attribute, whatever the library. For NumPy's subclasses each object is
asked for the attribute. Other objects are asked only if their class has it, since an object may
make up any name, such as a column of a table.
"""

from __future__ import annotations

import sys
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: By the attribute: the word for it, and expressions that may give the elements alone.
_CARRIED = {
    "mask": ("mask", {"unmasked": ".unmasked", "data": ".data", "filled": ".filled()"}),
    "unit": ("unit", {"value": ".value", "magnitude": ".magnitude"}),
    "units": ("unit", {"value": ".value", "magnitude": ".magnitude"}),
}

#: Types whose objects have neither, by their id, so that no type is kept alive.
_plain: dict[int, weakref.ref[type]] = {}


def refuse_meaning(obj: Any) -> None:
    """Raise TypeError for an object whose elements have another meaning without mask or unit."""
    kind = type(obj)
    key = id(kind)
    if key in _plain:
        return
    numpy = sys.modules.get("numpy")
    own = numpy is not None and isinstance(obj, numpy.ndarray) and kind is not numpy.ndarray
    named = [name for name in _CARRIED if own or hasattr(kind, name)]
    if not named:
        _plain[key] = weakref.ref(kind, lambda _: _plain.pop(key, None))
    for name in named:
        try:
            value = getattr(obj, name, None)
        except Exception:
            continue
        if value is not None and not callable(value):
            raise _refusal(obj, name, value)


def carries(kind: type) -> bool:
    """Whether objects of a type may have a mask or a unit."""
    return any(hasattr(kind, name) for name in _CARRIED)


def _refusal(obj: Any, name: str, value: Any) -> TypeError:
    word, ways = _CARRIED[name]
    found = [way for attribute, way in ways.items() if _has(obj, attribute)]
    if ".unmasked" in found and ".data" in found:
        found.remove(".data")  # here it is the bytes
    what = word if word == "mask" else f"{word} {value}"
    alone = " or ".join(found) or "the elements alone"
    return TypeError(
        f"a {type(obj).__name__} cannot be shared, since its {what} would be lost: pass {alone}"
    )


def _has(obj: Any, attribute: str) -> bool:
    try:
        return hasattr(obj, attribute)
    except Exception:  # the bytes of an array without a format
        return False
