"""What unpickling returns if it cannot open the memory that the pickle names."""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, ParamSpec, TypeVar

    _P = ParamSpec("_P")
    _T = TypeVar("_T")

#: Special methods, which Python looks up in the class alone. __getattr__ refuses what libraries
#: ask of an object.
_SPECIAL = (
    "len iter next reversed contains getitem setitem delitem bool int float complex index "
    "eq ne lt le gt ge neg pos abs invert add radd iadd sub rsub isub mul rmul imul "
    "truediv rtruediv itruediv floordiv rfloordiv ifloordiv mod rmod imod pow rpow ipow "
    "matmul rmatmul imatmul and rand iand or ror ior xor rxor ixor lshift rlshift ilshift "
    "rshift rrshift irshift enter exit array array_ufunc array_function buffer dlpack "
    "dlpack_device copy deepcopy"
)


class Unopened:
    """An argument or a result that could not be opened: each use raises the reason.

    multiprocessing's pools unpickle where nobody catches an exception: the worker, or the thread
    that handles results, would end, and the pool would wait forever.
    """

    __slots__ = ("_error",)

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __repr__(self) -> str:
        return f"<memory that cannot be opened: {type(self._error).__name__}: {self._error}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Unopened, (self._error,)

    def __setstate__(self, state: object) -> None:
        """Forget a subclass's attributes."""

    def __getattr__(self, name: str) -> NoReturn:
        fail(self)


def fail(unopened: Unopened, *_: object) -> NoReturn:
    """Raise the reason why it could not be opened."""
    raise unopened._error.with_traceback(None)


for _name in _SPECIAL.split():
    setattr(Unopened, f"__{_name}__", fail)


def or_unopened(open_memory: Callable[_P, _T]) -> Callable[_P, _T | Unopened]:
    """Make what a pickle calls: an error in opening memory is raised at the first use."""

    @wraps(open_memory)
    def opened(*arguments: _P.args, **options: _P.kwargs) -> _T | Unopened:
        try:
            return open_memory(*arguments, **options)
        except Exception as error:
            return Unopened(error.with_traceback(None))

    return opened
