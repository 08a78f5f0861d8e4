"""Arrays of each library shared with hamr, both ways: type, layout, address, writes."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.gpu import gpu_libraries

SHAPES = [(5, 7), (12,), (), (0,), (3, 0, 2), (1,), (4, 1, 3), (1, 6, 1)]


def host(buffer: hamr.Buffer) -> np.ndarray:
    return np.array(buffer.get_host_accessible())


def one(dtype: str):
    return {"b": True, "c": 3 - 2j}.get(np.dtype(dtype).kind, 3)


def check_layout(buffer: hamr.Buffer, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Strides mean something only where there is more than one element along them."""
    assert buffer.shape == shape
    if buffer.size():
        for n, ours, theirs in zip(shape, buffer.strides, strides, strict=True):
            assert n == 1 or ours == theirs


def laid_out(values: np.ndarray, layout: str, allocator: str) -> hamr.Buffer:
    """A buffer of hamr's own memory with these values, laid out so."""
    if layout == "c" or not values.ndim:
        return hamr.Buffer(values.shape, values.dtype, allocator, data=values)
    if layout == "fortran":
        turned = hamr.Buffer(values.shape[::-1], values.dtype, allocator, data=values.T.copy())
        return hamr.Buffer.from_pointer(
            turned.ptr,
            values.shape,
            values.dtype,
            allocator,
            strides=turned.strides[::-1],
            owner=turned,
        )
    step = 2 if layout == "strided" else -1
    room = hamr.Buffer([n * abs(step) for n in values.shape], values.dtype, allocator, fill=0)
    view = room[tuple(slice(None, None, step) for _ in values.shape)]
    view[...] = values
    return view


@pytest.mark.parametrize("dtype", gpu_libraries.ALL)
def test_a_librarys_array_is_shared(library, dtype):
    if dtype not in library.dtypes:
        check_refusal(library, dtype)
        return
    for layout in library.layouts:
        for shape in SHAPES:
            values = gpu_libraries.sample(dtype, shape)
            x = library.make(values, layout)
            library.synchronize()
            b = hamr.buffer(x)
            where = f"{library.name} {dtype} {layout} {shape}"
            assert b.source_protocol == library.source, where
            assert np.dtype(b.dtype) == np.dtype(dtype), where
            assert b.cuda_accessible(), where
            if values.size:
                assert b.ptr == library.pointer(x), where
                assert b.device == 0, where
            interface = x.__cuda_array_interface__
            strides = interface.get("strides") or np.empty(shape, dtype).strides
            check_layout(b, shape, strides)
            np.testing.assert_array_equal(host(b), values, err_msg=where)
            assert b.readonly is not library.writable, where
            if not library.writable:
                with pytest.raises(ValueError, match="read-only"):
                    b.fill(one(dtype))
                continue
            b.fill(one(dtype))
            b.synchronize()
            assert (library.values(x) == np.array(one(dtype), dtype)).all(), where
            library.set(x, 0)
            assert (host(b) == 0).all(), where


def check_refusal(library, dtype):
    """A type that the library has for storage only: shared as it is, or not at all."""
    values = gpu_libraries.sample(dtype, (6,))
    try:
        x = library.make(values)
        b = hamr.buffer(x)
    except (TypeError, ValueError, RuntimeError, KeyError, NotImplementedError):
        return
    np.testing.assert_array_equal(host(b), values)


@pytest.mark.parametrize("dtype", gpu_libraries.ALL)
def test_a_buffer_is_shared_with_a_library(library, dtype):
    for layout in gpu_libraries.Library.layouts:
        for shape in SHAPES:
            values = gpu_libraries.sample(dtype, shape)
            b = laid_out(values, layout, "cuda")
            b.synchronize()
            certain = (
                dtype in library.dtypes
                and (layout in library.reads or not values.size)
                and (values.size or library.takes_empty)
            )
            if layout == "negative" and layout not in library.reads:
                continue  # torch reads other elements without a word, which hamr cannot prevent
            for offered in (b, b.get_cuda_accessible()):
                where = f"{library.name} {dtype} {layout} {shape} {type(offered).__name__}"
                try:
                    x = library.consume(offered)
                except Exception as error:
                    if certain:
                        raise AssertionError(f"{where}: not taken") from error
                    continue
                check_consumed(library, b, x, values, where, shared=certain)
            h = b.get_cuda_accessible()
            assert not h.is_temporary
            assert h.ptr == b.ptr


def check_consumed(library, b, x, values, where, shared):
    assert tuple(x.shape) == values.shape, where
    np.testing.assert_array_equal(library.values(x), values, err_msg=where)
    if not shared:  # the library may have made a copy
        return
    if values.size:
        assert library.pointer(x) == b.ptr, where
    dtype = values.dtype.name
    b.fill(one(dtype))
    b.synchronize()
    assert (library.values(x) == np.array(one(dtype), dtype)).all(), where
    if library.writable:
        library.set(x, 0)
        assert (host(b) == 0).all(), where
    b[...] = values
    b.synchronize()


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva", "cuda_host"])
def test_every_allocator_is_shared_or_moved(library, allocator):
    values = gpu_libraries.sample("float32", (6, 4))
    b = hamr.Buffer(values.shape, "float32", allocator, data=values)
    h = b.get_cuda_accessible()
    x = library.consume(h)
    library.synchronize()
    np.testing.assert_array_equal(library.values(x), values)
    assert h.is_temporary == (allocator == "cuda_host")
    assert library.pointer(x) == h.ptr


def test_read_only_memory_stays_so(library):
    values = gpu_libraries.sample("float32", (6,))
    own = hamr.Buffer(6, "float32", "cuda", data=values)
    b = hamr.Buffer.from_pointer(own.ptr, 6, "float32", "cuda", readonly=True, owner=own)
    own.synchronize()
    assert b.readonly
    assert b.__cuda_array_interface__["data"] == (own.ptr, True)
    assert b.get_cuda_accessible().readonly
    with pytest.raises(ValueError, match="read-only"):
        b.fill(1)
    if library.takes_read_only:
        np.testing.assert_array_equal(library.values(library.consume(b)), values)
    else:
        with pytest.raises(TypeError, match="read only"):
            library.consume(b)
    np.testing.assert_array_equal(library.values(library.consume(b.copy())), values)


def test_host_memory_offers_no_cuda_interface(library):
    b = hamr.Buffer(4, "float32", fill=1)
    assert not hasattr(b, "__cuda_array_interface__")
    assert not hasattr(b.get_host_accessible(), "__cuda_array_interface__")
    assert (library.values(library.consume(b.get_cuda_accessible())) == 1).all()


def test_device_memory_is_not_handed_to_numpy_as_it_is(gpu_count):
    b = hamr.Buffer(4, "float32", "cuda", fill=2)
    with pytest.raises(TypeError, match="get_host_accessible"):
        np.asarray(b)
    assert (np.asarray(b.get_host_accessible()) == 2).all()


def test_what_torch_will_not_share_is_refused(torch_library):
    torch = torch_library.module
    for refused in (
        torch.ones(3, device="cuda", requires_grad=True),
        torch.ones(3, device="cuda").to_sparse(),
    ):
        with pytest.raises((TypeError, RuntimeError, ValueError, BufferError)):
            hamr.buffer(refused)
    values = torch.arange(4.0, requires_grad=True, device="cuda")
    torch_library.synchronize()
    np.testing.assert_array_equal(host(hamr.buffer(values.detach())), [0, 1, 2, 3])


def test_part_of_an_array_starts_inside_its_memory(writing_library):
    values = gpu_libraries.sample("float32", (10, 4))
    x = writing_library.make(values)
    writing_library.synchronize()
    part = x[3:7]
    b = hamr.buffer(part)
    assert b.ptr == writing_library.pointer(x) + 3 * 16
    np.testing.assert_array_equal(host(b), values[3:7])
    np.testing.assert_array_equal(host(b[1:3, ::2]), values[4:6, ::2])
    whole = hamr.buffer(x)
    np.testing.assert_array_equal(
        writing_library.values(writing_library.consume(whole[8])), values[8]
    )


def test_one_librarys_array_reaches_the_others_through_hamr(library):
    values = gpu_libraries.sample("float32", (3, 5))
    x = library.make(values)
    library.synchronize()
    b = hamr.buffer(x)
    for name in gpu_libraries.NAMES:
        other, _ = gpu_libraries.get(name)
        if other is None or (b.readonly and not other.takes_read_only):
            continue
        y = other.consume(b)
        assert other.pointer(y) == library.pointer(x)
        np.testing.assert_array_equal(other.values(y), values)
