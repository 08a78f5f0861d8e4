"""Choosing between devices and the processor."""

from __future__ import annotations

from .._base.library import core
from .choosing import accelerators, spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .choosing import Restriction

_HOST = "cpu"


class Switch:
    """One of several alternatives, by what the machine has: ``Switch(cuda=f, hip=g, cpu=h)``.

    The name of each is the runtime that it needs; ``cpu`` needs none. The first one, in the order
    of the arguments, whose runtime has an accelerator is chosen. If none has, ``cpu`` is chosen,
    wherever it stands. Runtimes that are not named, or stand behind the chosen one, are not
    loaded. ``among`` is as for ``accelerators``; its default is HAMR_ACCELERATORS. ``name`` and
    ``chosen`` are the choice; calling the Switch calls it. BackendUnavailable if none can be
    chosen; ValueError for a name that is no runtime's.
    """

    __slots__ = ("chosen", "name")

    def __init__(self, *, among: Restriction = None, **alternatives: Any) -> None:
        if not alternatives:
            raise TypeError("a Switch has alternatives, as in Switch(cuda=f, cpu=g)")
        for name in alternatives:
            if name == _HOST:
                continue
            if not name.isidentifier() or name == "none":  # a restriction, as "cuda:0"
                raise ValueError(
                    f"alternative {name!r} of a Switch: accepted are names of runtimes"
                )
        self.name: str = core().FirstAlternative(",".join(alternatives), spelled(among))
        if not self.name:
            from .._base.errors import BackendUnavailable

            here = ", ".join(accelerators(among)) or "no accelerators"
            raise BackendUnavailable(
                f"none of {', '.join(alternatives)} has a device here that may be used: "
                f"there are {here}"
            )
        self.chosen: Any = alternatives[self.name]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the chosen one."""
        return self.chosen(*arguments, **named)

    def __repr__(self) -> str:
        return f"<hamr.hetero.Switch: {self.name}, {self.chosen!r}>"


def first_available(*products: Any) -> Any:
    """The first product that is not None: the one of a device's modules, else the processor's.

    LookupError if all are None.
    """
    for product in products:
        if product is not None:
            return product
    raise LookupError(f"none of {len(products)} products is available")
