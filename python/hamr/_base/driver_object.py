"""Objects that belong to the driver and to this process."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, Self


class DriverObject:
    """A copy is the object itself. The object cannot be pickled."""

    __slots__ = ()

    _name: str  # the public name
    _instead: str  # what to do instead of pickling it

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {self._name} is a driver object of this process and cannot be "
            f"pickled: {self._instead}"
        )
