"""What is checked of a cell: that memory is shared, copied, or refused."""

from __future__ import annotations

import contextlib
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import hamr
from tests.interop.interop_matrix import (
    FROM,
    LAYOUTS,
    Layout,
    Library,
    Rule,
    Way,
    contents,
    hamr_array,
    reference,
    sample,
    write,
)

NO_TYPE = Rule("no such type")
#: What a library may raise that is given elements of a type that it does not have.
NO_SUCH_TYPE = (TypeError, ValueError, BufferError, RuntimeError, NotImplementedError, KeyError)


def check_cell(library: Library, way: Way, dtype: str, name: str) -> Rule:
    """Check a cell; return the rule that it obeys."""
    layout, rule = LAYOUTS[name], way.rule(library, dtype, name)
    if reference(dtype) is None:
        return NO_TYPE  # nor are there values to compare with
    if rule is not None and rule.outcome == "not run":
        return rule
    if way.direction == FROM:
        if not library.makes(dtype):
            return NO_TYPE
        _check_from(library, way, dtype, layout, rule or way.done)
    elif rule is None and not library.has(dtype):
        b = hamr_array(sample(dtype, layout), dtype, layout, library.allocator)
        with pytest.raises(NO_SUCH_TYPE):
            way.hand_over(library, b)
        return NO_TYPE
    else:
        _check_to(library, way, dtype, layout, rule or way.done)
    return rule or way.done


def _check_from(library: Library, way: Way, dtype: str, layout: Layout, rule: Rule) -> None:
    values, other = sample(dtype, layout), sample(dtype, layout, 3)
    if rule.outcome == "no such layout":
        with contextlib.suppress(*NO_SUCH_TYPE):
            made = library.make(values, layout)
            assert not _is_as_asked(library, made, values, layout), "it has this layout now"
        return
    references = _references()
    x = library.make(values, layout)
    library.synchronize()
    if rule.outcome == "refused":
        with pytest.raises(rule.error, match=rule.match or None):
            way.hand_over(library, x)
        return
    if rule.outcome == "copied":
        _check_copied(library, way, x, values)
        return
    assert rule.outcome == "shared", "hamr makes no copies when it shares"
    assert _laid_out(library.strides(x), values, layout), library.strides(x)
    b = way.hand_over(library, x)

    assert type(b) is hamr.Buffer
    sources = (rule.source,) if rule.source else (way.sources or (way.protocol,))
    assert b.source_protocol in sources
    assert str(b.dtype) == dtype
    assert b.shape == layout.shape
    assert _laid_out(b.strides, values, layout), b.strides
    if layout.size:
        assert b.ptr == library.address(x)
    _assert_equal(contents(b), values)
    readonly = layout.readonly or library.immutable
    assert b.readonly is (readonly if rule.readonly is None else rule.readonly)
    if b.readonly:
        with pytest.raises(ValueError, match="read-only"):
            b.fill(0)
        _assert_equal(library.values(x), values)
    else:
        write(b, other)
        _assert_equal(library.values(x), other)
        library.write(x, values)
        library.synchronize()
        _assert_equal(contents(b), values)

    giver = _weak(x)
    del x
    _reuse(values.nbytes, library.allocator)
    _assert_equal(contents(b), values)
    del b
    gc.collect()
    assert giver() is None, "the giver is kept after the buffer's end"
    assert _references() == references, "memory is kept after the buffer's end"


def _check_copied(library: Library, way: Way, x: Any, values: np.ndarray) -> None:
    """The library gives a copy of its elements each time, which is the buffer's alone."""
    b, again = way.hand_over(library, x), way.hand_over(library, x)
    assert b.source_protocol == way.protocol
    assert b.ptr != again.ptr
    del x
    gc.collect()
    for each in (b, again):
        _assert_equal(contents(each), values)


def _check_to(library: Library, way: Way, dtype: str, layout: Layout, rule: Rule) -> None:
    values, other = sample(dtype, layout), sample(dtype, layout, 3)
    references = _references()
    b = hamr_array(values, dtype, layout, library.allocator)
    assert b.shape == layout.shape
    assert b.readonly is layout.readonly
    if rule.outcome == "refused":
        with pytest.raises(rule.error, match=rule.match or None):
            (way.check or way.hand_over)(library, b, *([other] if way.check else []))
        return
    if way.check is not None:
        way.check(library, b, other)
        return
    y = way.hand_over(library, b)

    assert library.dtype(y) in (dtype, None)
    assert library.shape(y) == layout.shape
    _assert_equal(library.values(y), values)
    if rule.outcome == "copied":
        if layout.size:
            assert library.address(y) != b.ptr
            if not layout.readonly:
                write(b, other)
                _assert_equal(library.values(y), values)
        return
    strides = library.strides(y)
    assert strides is None or _laid_out(strides, values, layout), strides
    if layout.size:
        assert library.address(y) == b.ptr
    readonly = layout.readonly if rule.readonly is None else rule.readonly
    if layout.size or rule.readonly is None:
        assert library.readonly(y) in (readonly or library.immutable, None)
    if not layout.readonly:
        write(b, other)
        _assert_equal(library.values(y), other)
        write(b, values)
        if not readonly and not library.immutable:
            library.write(y, other)
            library.synchronize()
            _assert_equal(contents(b), other)
            library.write(y, values)
            library.synchronize()

    if way.keeps:
        del b
        _reuse(values.nbytes, library.allocator)
        _assert_equal(library.values(y), values)
    y = b = None
    assert _references() == references, "memory is kept after the array's end"


def _assert_equal(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def _laid_out(strides: tuple[int, ...] | None, values: np.ndarray, layout: Layout) -> bool:
    """Whether strides are a layout's; they mean something only where steps are taken."""
    if strides is None or not layout.size:
        return True
    wanted = layout.byte_strides(values.dtype.itemsize)
    each = zip(layout.shape, strides, wanted, strict=True)
    return all(n == 1 or found == expected for n, found, expected in each)


def _is_as_asked(library: Library, x: Any, values: np.ndarray, layout: Layout) -> bool:
    if layout.readonly:
        return library.readonly(x) is True
    return library.shape(x) == layout.shape and _laid_out(library.strides(x), values, layout)


def _references() -> int:
    """How many allocations Python holds."""
    gc.collect()
    found: int = hamr.stats()["references"]
    return found


def _weak(x: Any) -> Any:
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: None


def _reuse(size: int, allocator: str) -> None:
    """Take memory of a size from all that give some, so that what was freed is overwritten."""
    gc.collect()
    taken = [np.full(size, 0xA5, "u1") for _ in range(8)]
    own = [hamr.Buffer(size, "uint8", allocator, fill=0x5A) for _ in range(8)]
    for b in own:
        b.synchronize()
    del taken, own
