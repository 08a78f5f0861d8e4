"""What is the driver's, and this process's."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, Self


class DriverObject:
    """Copies are the object itself, and end with it. It cannot be pickled."""

    __slots__ = ()

    _name: str  # as users know it
    _instead: str  # of pickling it

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {self._name} is a driver object of this process and cannot be "
            f"pickled: {self._instead}"
        )
