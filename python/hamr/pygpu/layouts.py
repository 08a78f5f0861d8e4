"""The layout of an array's elements: ``strides`` and ``flags``."""

from __future__ import annotations


class Strides(tuple[int, ...]):
    """Strides in bytes: a tuple, equal to lists of the same numbers, which PybindGPU's are."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            other = tuple(other)
        return tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class Flags:
    """The order of an array's elements, as in ``flags`` of PyCUDA's and NumPy's arrays."""

    __slots__ = ("c_contiguous", "f_contiguous")

    def __init__(self, c_contiguous: bool, f_contiguous: bool) -> None:
        self.c_contiguous, self.f_contiguous = c_contiguous, f_contiguous

    @property
    def forc(self) -> bool:
        """Whether there are no gaps between the elements."""
        return self.c_contiguous or self.f_contiguous

    def __repr__(self) -> str:
        return f"C_CONTIGUOUS : {self.c_contiguous}, F_CONTIGUOUS : {self.f_contiguous}"
