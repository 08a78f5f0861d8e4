"""Results of Python's operators: comparison with numbers, else an error with what to write."""

from __future__ import annotations

import operator
from _collections_abc import Sequence

import hamr._native as _native

from .._base.allocator import Allocator
from .._base.element import TABLE, element_of, item_of, number_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_NUMBERS = (int, float, complex)
#: Types that do not compare or compute element by element with other objects.
_PLAIN = (int, float, complex, list, tuple, range, _native.Array)
#: Methods that only numbers have: Fraction and Decimal have no elements.
_CONVERSIONS = ("__float__", "__complex__", "__index__")
_ARRAYS = ("__array_interface__", "__cuda_array_interface__", "__dlpack__", "__array__")


def in_numpy(array: _native.Array) -> str:
    """How to write the elements as a NumPy array, with b for the buffer."""
    return "numpy.asarray(b)" if array._host else "numpy.asarray(b.get_host_accessible())"


def _in_libraries(array: _native.Array, *lines: str) -> str:
    """Lines of code for NumPy, and for CuPy where it reaches what the host does not."""
    written = [line.format(in_numpy(array)) for line in lines]
    return ", or ".join(written + [lines[0].format("cupy.asarray(b)")] * (not array._host))


def _is_plain(array: _native.Array, value: Any) -> bool:
    """Whether a value leaves comparison and arithmetic to the array: as NumPy's numbers do."""
    kind = type(value)
    if hasattr(kind, "__array_interface__") and not hasattr(kind, "__len__"):
        return not array._host
    return isinstance(value, _PLAIN)


def _number(value: Any) -> Any:
    """The number in a number, NumPy's scalar or a buffer without dimensions; else None."""
    if isinstance(value, _NUMBERS):
        return value
    if isinstance(value, _native.Array):
        source = value._snapshot(_native.Array)
        return None if source.ndim else item_of(source)
    kind = type(value)
    if hasattr(kind, "__len__") or not any(hasattr(kind, name) for name in _CONVERSIONS):
        return None
    if hasattr(kind, "__array_interface__"):  # NumPy's, or one that ml_dtypes adds to it
        if value.dtype.isbuiltin == 2:
            return float(value)
        return value.item() if value.dtype.kind in "biufc" else None
    return value


def _rounded(array: _native.Array, number: Any) -> Any:
    """A Python number as the array's elements would hold it, which is NumPy's rule."""
    name, typestr = TABLE[array._element][:2]
    if type(number) not in _NUMBERS or typestr[1] in "iub":
        return number
    if type(number) is not int and name in ("float64", "complex128"):
        return number
    if type(number) is int and -256 <= number <= 256 and not name.startswith("float8"):
        return number  # all other types hold it exactly
    try:
        return item_of(number_as(number, array._element))
    except (TypeError, ValueError):
        return number  # no element is equal to it


def _elements(array: _native.Array) -> Iterable[Any]:
    """All elements as Python numbers."""
    if array._count == 0:
        return ()
    if TABLE[array._element][1][1] == "c":
        from struct import iter_unpack

        host = _native.copy(_native.Array, array, Allocator.malloc, -1, element_of("complex128"))
        return (complex(*parts) for parts in iter_unpack("<dd", _native.bytes_of(host._pin())))
    form = TABLE[array._element][2]
    if form is None or form == "e":  # memoryviews do not iterate over these
        form = "d"
        array = _native.copy(_native.Array, array, Allocator.malloc, -1, element_of("float64"))
    elif not array.is_contiguous or not array._host:
        array = _native.copy(_native.Array, array, Allocator.malloc, -1, array._element)
    return memoryview(array.get_host_accessible()).cast("B").cast(form)  # type: ignore[call-overload, no-any-return]


def _has_elements(value: Any) -> bool:
    if isinstance(value, type):
        return False
    if isinstance(value, _PLAIN) or any(hasattr(value, name) for name in _ARRAYS):
        return True
    if any(hasattr(type(value), name) for name in _CONVERSIONS):
        return True
    if isinstance(value, Sequence) and not isinstance(value, str):  # a deque
        return True
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


#: The operator of each comparison, and what the other side calls it.
_COMPARISONS = {
    "eq": ("==", "__eq__"),
    "ne": ("!=", "__ne__"),
    "lt": ("<", "__gt__"),
    "le": ("<=", "__ge__"),
    "gt": (">", "__lt__"),
    "ge": (">=", "__le__"),
}
_ARITHMETIC = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "matmul": "@",
    "truediv": "/",
    "floordiv": "//",
    "divmod": "//",
    "mod": "%",
    "pow": "**",
    "lshift": "<<",
    "rshift": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
}
#: What hamr's arrays have under other names; {} stands for the elements in NumPy.
ELSEWHERE = {
    "cpu": 'b.copy(device="cpu")',
    "ctypes": "b.ptr, or give b to a function of ctypes",
    "cuda": 'b.copy(device="cuda")',
    "extend": "b.append(x), which takes arrays and lists, too",
    "flags": "b.readonly, b.is_contiguous or b.is_fortran_contiguous",
    "flat": "b.ravel()",
    "flatten": "b.copy().ravel()",
    "fromfile": "hamr.buffer(numpy.fromfile(file, dtype))",
    "numel": "b.size()",
    "numpy": "{}",
    "permute": "b.transpose(...)",
    "sort": 'with b.on_host("rw") as a: a.sort()',
    "swapaxes": "b.transpose(...)",
    "to": 'b.copy(device="cuda"), or b.astype(dtype)',
    "tofile": "{}.tofile(file)",
    "unsqueeze": "b[None]",
}
_SIGNS = {"neg": "-{}", "pos": "+{}", "invert": "~{}", "abs": "abs({})"}


def compare(array: _native.Array, name: str, other: Any) -> Any:
    """The result of a comparison; NotImplemented if ``other`` has no elements to compare."""
    symbol, reflected = _COMPARISONS[name]
    if array is other and name in ("eq", "ne") and (array._closed or array.ndim):
        return name == "eq"  # weak references compare their objects
    source = array._snapshot(_native.Array)  # others may resize it meanwhile
    number = None if source.ndim else _number(other)
    if number is not None:
        if number is other:
            number = _rounded(source, other)
        return getattr(operator, name)(item_of(source), number)
    if not _is_plain(array, other):
        answer = getattr(type(other), reflected)(other, array)
        if answer is not NotImplemented or not _has_elements(other):
            return answer
    lines = [f"{{}} {symbol} x"]
    if name in ("eq", "ne"):
        lines.append("numpy.array_equal({}, x)")
    raise TypeError(
        f"a buffer {symbol} {type(other).__name__}: hamr compares single elements, as b[0], "
        f"with numbers; write {_in_libraries(array, *lines)}"
    )


def contains(array: _native.Array, value: Any) -> bool:
    """Whether one of the elements is a number."""
    number = _number(value)
    if number is None:
        raise TypeError(
            f"whether {type(value).__name__} is in a buffer: accepted is a number; "
            f"write ({in_numpy(array)} == x).any()"
        )
    source = array._snapshot(_native.Array)
    if number is value:
        number = _rounded(source, number)
    return any(element == number for element in _elements(source))


def reckon(array: _native.Array, name: str, *others: Any) -> Any:
    """NotImplemented if ``other`` does arithmetic with arrays; else a TypeError.

    ``name`` is the method's, without underscores: "add", "radd", "iadd" or "neg".
    """
    if name in _SIGNS:
        raise _refusal(array, _SIGNS[name])
    if name in _ARITHMETIC:
        symbol, line = _ARITHMETIC[name], "{} {symbol} x"
        if _repeats(array, name, *others):
            return NotImplemented
        if not _is_plain(array, others[0]) and hasattr(type(others[0]), f"__r{name}__"):
            return NotImplemented
    elif name[0] == "r":
        symbol, line = _ARITHMETIC[name[1:]], "x {symbol} {}"
        if _repeats(array, name[1:], *others):
            return NotImplemented
    else:
        symbol = _ARITHMETIC[name[1:]]
        if array._own_copy:  # as after b[0] += 1
            raise TypeError(f"hamr does no arithmetic: write b[i] = b[i].item() {symbol} x")
        if not array.ndim:
            raise TypeError(f"hamr does no arithmetic: write b[...] = b.item() {symbol} x")
        written = in_numpy(array) if array._host else "cupy.asarray(b)"
        raise TypeError(
            f"hamr does no arithmetic: write a = {written}; a {symbol}= x changes the elements"
        )
    raise _refusal(array, line.replace("{symbol}", symbol))


def _repeats(array: _native.Array, name: str, other: Any, *more: Any) -> bool:
    """Whether an element says how often to repeat a text or list."""
    return (
        name == "mul" and not array.ndim and isinstance(other, (str, bytes, bytearray, list, tuple))
    )


def _refusal(array: _native.Array, line: str) -> TypeError:
    written = line.format("b.item()") if not array.ndim else _in_libraries(array, line)
    return TypeError(f"hamr does no arithmetic: write {written}")


def left_to_numpy(array: _native.Array, name: str) -> AttributeError:
    """The error for a name that arrays of NumPy or PyTorch have and hamr's do not."""
    here = in_numpy(array)
    if name in ELSEWHERE:
        text = f"hamr's arrays have no {name}: write {ELSEWHERE[name].format(here)}"
    else:
        arguments = "" if name in ("imag", "real") else "()"
        text = f"hamr leaves {name} to numpy: write {here}.{name}{arguments}"
    return AttributeError(text, name=name, obj=array)
