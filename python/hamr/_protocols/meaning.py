"""What objects carry besides their elements, which no protocol tells: a mask, a unit.

It is known by the attribute that says it, whatever the library. NumPy's subclasses may
have it for each object; others are asked for it only if their class has it, since an
object may make up any name, as a column of a table.
"""

from __future__ import annotations

import sys
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: By the attribute: the word for it, and what may give the elements alone.
_CARRIED = {
    "mask": ("mask", {"unmasked": ".unmasked", "data": ".data", "filled": ".filled()"}),
    "unit": ("unit", {"value": ".value", "magnitude": ".magnitude"}),
    "units": ("unit", {"value": ".value", "magnitude": ".magnitude"}),
}

#: Types whose objects have none of it, by their id, which keeps none of them alive.
_plain: dict[int, weakref.ref[type]] = {}


def refuse_meaning(obj: Any) -> None:
    """Raise TypeError for an object whose elements mean something else without the rest of it."""
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
    """Whether objects of a type may carry more than elements."""
    return any(hasattr(kind, name) for name in _CARRIED)


def _refusal(obj: Any, name: str, value: Any) -> TypeError:
    word, ways = _CARRIED[name]
    found = [way for attribute, way in ways.items() if _has(obj, attribute)]
    if ".unmasked" in found and ".data" in found:
        found.remove(".data")  # which is then the bytes
    what = word if word == "mask" else f"{word} {value}"
    alone = " or ".join(found) or "the elements alone"
    return TypeError(
        f"a {type(obj).__name__} cannot be shared, since its {what} would be lost: pass {alone}"
    )


def _has(obj: Any, attribute: str) -> bool:
    try:
        return hasattr(obj, attribute)
    except Exception:  # of an array without a format: its bytes
        return False
