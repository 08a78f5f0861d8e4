"""Python's operators on buffers and handles. Their results and errors are in refusals.py."""

from __future__ import annotations

import hamr._native as _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _Base = _native.Array
else:
    _Base = object


def _comparison(name: str) -> Any:
    def method(self: Any, other: Any) -> Any:
        from .refusals import compare

        return compare(self, name, other)

    return method


def _arithmetic(name: str) -> Any:
    def method(self: Any, *others: Any) -> Any:
        from .refusals import reckon

        return reckon(self, name, *others)

    return method


class _LeftToNumPy:
    """A name that other libraries' arrays have and hamr's do not. The error says what to write."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.__doc__ = f"Not hamr's: NumPy has it, ``numpy.asarray(b)``; ``b.{name}`` says more."

    def __get__(self, array: Any, owner: Any) -> Any:
        if array is None:
            return self
        from .refusals import left_to_numpy

        raise left_to_numpy(array, self.name)


class Operators(_Base):
    """What Buffer and Handle answer to Python's operators.

    An array without dimensions compares as the number that it holds. For an array with dimensions,
    and for arithmetic, another library's array on the other side decides. All else is a TypeError
    that says what to write. Since they compare by value, they have no hash, as NumPy's arrays.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:  # checkers shall report arithmetic

        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...

    else:
        for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
            vars()[f"__{_name}__"] = _comparison(_name)
        for _name in (
            "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow",
            "lshift", "rshift", "and", "or", "xor",
        ):  # fmt: skip
            for _form in ("", "r", "i"):
                vars()[f"__{_form}{_name}__"] = _arithmetic(_form + _name)
        for _name in ("divmod", "rdivmod", "neg", "pos", "invert", "abs"):
            vars()[f"__{_name}__"] = _arithmetic(_name)
        for _name in (
            "all", "any", "argmax", "argmin", "argsort", "clip", "conj", "cpu", "ctypes", "cuda",
            "cumsum", "diagonal", "dot", "extend", "flags", "flat", "flatten", "fromfile", "imag",
            "max", "mean", "min", "nonzero", "numel", "numpy", "permute", "prod", "real", "repeat",
            "round", "sort", "std", "sum", "swapaxes", "take", "to", "tobytes", "tofile", "tolist",
            "trace", "unsqueeze", "var",
        ):  # fmt: skip
            vars()[_name] = _LeftToNumPy()
        del _name, _form

    def __dir__(self) -> list[str]:
        names, own, kind = super().__dir__(), getattr(self, "__dict__", ()), type(self)
        return [
            name
            for name in names
            if name in own or type(getattr(kind, name, None)) is not _LeftToNumPy
        ]

    def __contains__(self, value: object) -> bool:
        from .refusals import contains

        return contains(self, value)
