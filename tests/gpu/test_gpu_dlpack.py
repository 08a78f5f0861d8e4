"""Arrays handed over by DLPack, both ways: type, layout, address, writes."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.gpu import gpu_libraries
from tests.gpu.gpu_bytes import raw
from tests.gpu.test_gpu_sharing import SHAPES, check_layout, host, laid_out, one

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13


def strides_of(library, x) -> tuple[int, ...]:
    """In bytes; JAX's arrays are in C order."""
    if library.name == "torch":
        return tuple(s * x.element_size() for s in x.stride())
    return getattr(x, "strides", None) or np.empty(x.shape, x.dtype).strides


@pytest.mark.parametrize("dtype", gpu_libraries.ALL)
def test_a_librarys_array_is_taken(exchange, dtype):
    if dtype not in exchange.dtypes:
        return check_storage(exchange, dtype)
    for layout in exchange.layouts:
        for shape in SHAPES:
            values = gpu_libraries.sample(dtype, shape)
            x = exchange.make(values, layout)
            exchange.synchronize()
            b = hamr.from_dlpack(x)
            where = f"{exchange.name} {dtype} {layout} {shape}"
            assert b.source_protocol == "__dlpack__", where
            assert np.dtype(b.dtype) == np.dtype(dtype), where
            if values.size:
                assert b.ptr == exchange.pointer(x), where
                assert b.device == 0, where
                assert b.cuda_accessible(), where
            check_layout(b, shape, strides_of(exchange, x))
            np.testing.assert_array_equal(host(b), values, err_msg=where)
            if not exchange.writable:
                continue
            assert not b.readonly, where
            b.fill(one(dtype))
            b.synchronize()
            assert (exchange.values(x) == np.array(one(dtype), dtype)).all(), where
            exchange.set(x, 0)
            assert (host(b) == 0).all(), where
    return None


def check_storage(exchange, dtype):
    """A type that the library moves but does not compute with."""
    values = gpu_libraries.sample(dtype, (6,))
    x = exchange.make(values)
    exchange.synchronize()
    b = hamr.from_dlpack(x)
    assert b.ptr == exchange.pointer(x)
    np.testing.assert_array_equal(host(b), values)


@pytest.mark.parametrize("dtype", gpu_libraries.ALL)
def test_a_buffer_is_given(exchange, dtype):
    for layout in filter(exchange.survives, gpu_libraries.Library.layouts):
        for shape in SHAPES:
            values = gpu_libraries.sample(dtype, shape)
            b = laid_out(values, layout, "cuda")
            b.synchronize()
            assert b.__dlpack_device__() == (CUDA, 0)
            certain = (
                dtype in exchange.dtypes
                and (layout in exchange.dlpack_reads or not values.size)
                and (values.size or exchange.dlpack_takes_empty)
            )
            for offered in (b, b.get_cuda_accessible()):
                where = f"{exchange.name} {dtype} {layout} {shape} {type(offered).__name__}"
                try:
                    x = exchange.from_dlpack(offered)
                except Exception as error:
                    if certain:
                        raise AssertionError(f"{where}: not taken") from error
                    continue
                check_given(exchange, b, x, values, where, certain)


def check_given(exchange, b, x, values, where, certain):
    assert tuple(x.shape) == values.shape, where
    np.testing.assert_array_equal(exchange.values(x), values, err_msg=where)
    if not certain:  # the library may have made a copy
        return
    if values.size:
        assert exchange.pointer(x) == b.ptr, where
    if not exchange.writable:  # what it shares must not change either
        return
    dtype = values.dtype.name
    b.fill(one(dtype))
    b.synchronize()
    assert (exchange.values(x) == np.array(one(dtype), dtype)).all(), where
    exchange.set(x, 0)
    assert (host(b) == 0).all(), where
    b[...] = values
    b.synchronize()


EXTENDED = (
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e8m0fnu",
)  # fmt: skip
EVERYWHERE = ("bfloat16",)


@pytest.mark.parametrize("name", EXTENDED)
@pytest.mark.parametrize("library_name", ["torch", "jax"])
def test_types_that_numpy_does_not_have(gpu_count, library_name, name):
    exchange, reason = gpu_libraries.get(library_name)
    if exchange is None:
        pytest.skip(reason)
    try:
        x = exchange.extended(name)
        exchange.from_dlpack(x)
    except Exception as error:
        if name in EVERYWHERE:
            raise
        pytest.skip(f"this {library_name} itself does not hand on {name}: {error}"[:150])
    exchange.synchronize()
    bits = exchange.bits(x)
    b = hamr.from_dlpack(x)
    assert str(b.dtype) == name
    assert b.ptr == exchange.pointer(x)
    np.testing.assert_array_equal(raw(b).ravel(), bits)
    for given in (b, b.copy()):
        if given.readonly and not exchange.takes_read_only_dlpack:
            continue
        given.synchronize()
        y = exchange.from_dlpack(given)
        assert y.dtype == x.dtype
        assert exchange.pointer(y) == given.ptr
        np.testing.assert_array_equal(exchange.bits(y), bits)


def test_part_of_an_array_starts_inside_its_memory(exchange):
    values = gpu_libraries.sample("float32", (10, 64))
    b = hamr.Buffer(values.shape, "float32", "cuda", data=values)
    part = b[3:7]
    x = exchange.from_dlpack(part)
    assert exchange.pointer(x) == b.ptr + 3 * 256
    np.testing.assert_array_equal(exchange.values(x), values[3:7])
    y = exchange.make(values)
    exchange.synchronize()
    if exchange.writable:  # else a slice is a copy
        assert hamr.from_dlpack(y[3:7]).ptr == exchange.pointer(y) + 3 * 256
    np.testing.assert_array_equal(host(hamr.from_dlpack(y[3:7])), values[3:7])


def test_one_librarys_array_reaches_the_others(exchange):
    values = gpu_libraries.sample("float32", (3, 5))
    x = exchange.make(values)
    exchange.synchronize()
    b = hamr.from_dlpack(x)
    for name in gpu_libraries.DLPACK:
        other, _ = gpu_libraries.get(name)
        if other is None:
            continue
        if b.readonly and not other.takes_read_only_dlpack:
            with pytest.raises(BufferError, match="read-only"):
                other.from_dlpack(b)
            continue
        y = other.from_dlpack(b)
        assert other.pointer(y) == exchange.pointer(x)
        np.testing.assert_array_equal(other.values(y), values)


# Allocators and devices.


def test_memory_of_a_pool_is_given(exchange):
    values = gpu_libraries.sample("float32", (6, 4))
    b = hamr.Buffer(values.shape, "float32", "cuda_async", data=values)
    assert b.__dlpack_device__() == (CUDA, 0)
    x = exchange.from_dlpack(b)
    assert exchange.pointer(x) == b.ptr
    np.testing.assert_array_equal(exchange.values(x), values)


@pytest.mark.parametrize(
    ("allocator", "kind"), [("cuda_uva", CUDA_MANAGED), ("cuda_host", CUDA_HOST)]
)
def test_memory_that_the_host_reaches_is_numpys(gpu_count, allocator, kind):
    b = hamr.Buffer((6, 4), "float32", allocator)
    assert b.__dlpack_device__() == (kind, 0)
    for value in range(1, 100):
        b.fill(value)
        array = np.from_dlpack(b)
        assert array.ctypes.data == b.ptr
        assert (array == value).all()
    if allocator == "cuda_host":
        array[...] = 5
        assert (host(b) == 5).all()


@pytest.mark.parametrize("allocator", ["cuda_uva", "cuda_host"])
def test_libraries_take_or_refuse_host_reachable_memory(exchange, allocator):
    values = gpu_libraries.sample("float32", (6, 4))
    b = hamr.Buffer(values.shape, "float32", allocator, data=values)
    try:
        # JAX takes page-locked memory, but then cannot compute with it.
        found = exchange.values(exchange.from_dlpack(b))
    except Exception:
        # CuPy alone takes managed memory, and nobody must take page-locked memory.
        assert (exchange.name, allocator) != ("cupy", "cuda_uva")
    else:
        np.testing.assert_array_equal(found, values)
    if allocator == "cuda_uva":  # what is for CUDA is on its device
        found = exchange.values(exchange.from_dlpack(b.get_cuda_accessible()))
        np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(host(b), values)


def test_device_memory_is_copied_to_the_host_on_demand(gpu_count):
    values = gpu_libraries.sample("float32", (6, 4))
    b = hamr.Buffer(values.shape, "float32", "cuda", data=values)
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        np.from_dlpack(b)
    np.testing.assert_array_equal(np.from_dlpack(b, device="cpu"), values)
    with pytest.raises((BufferError, ValueError)):
        np.from_dlpack(b, device="cpu", copy=False)


def test_managed_memory_of_cupys(cupy_library):
    cp = cupy_library.module
    values = gpu_libraries.sample("float32", (100,))
    x = cp.ndarray(100, "f4", cp.cuda.malloc_managed(400))
    x[...] = cp.asarray(values)
    assert x.__dlpack_device__()[0] == CUDA_MANAGED
    b = hamr.from_dlpack(x)
    assert b.allocator == hamr.Allocator.cuda_uva
    assert b.ptr == x.data.ptr
    h = b.get_host_accessible()
    assert not h.is_temporary
    np.testing.assert_array_equal(np.asarray(h), values)
    b.fill(4)
    b.synchronize()
    assert (cp.asnumpy(x) == 4).all()


def test_page_locked_tensors_of_torchs(torch_library, record_property):
    torch = torch_library.module
    t = torch.arange(100.0).pin_memory()
    kind, number = t.__dlpack_device__()
    record_property("page-locked tensors are on", f"({int(kind)}, {number})")
    assert int(kind) in (CPU, CUDA_HOST)
    for b in (hamr.from_dlpack(t), hamr.buffer(t)):
        assert b.source_protocol == "__dlpack__"
        assert b.device == -1
        assert b.ptr == t.data_ptr()
        h = b.get_host_accessible()
        assert not h.is_temporary
        np.testing.assert_array_equal(np.asarray(h), np.arange(100.0, dtype="f4"))
        on_device = b.get_cuda_accessible()
        assert on_device.is_temporary
        np.testing.assert_array_equal(torch_library.values(torch.from_dlpack(on_device)), t.numpy())
        b.fill(7)
        b.synchronize()
        assert bool((t == 7).all())
        t.copy_(torch.arange(100.0))


def test_tensors_on_the_host(torch_library):
    torch = torch_library.module
    t = torch.arange(6.0)
    b = hamr.buffer(t)
    assert b.source_protocol == "__dlpack__"
    assert b.ptr == t.data_ptr()
    back = torch.from_dlpack(b)
    assert back.data_ptr() == t.data_ptr()
    x = torch.from_dlpack(b.get_cuda_accessible())
    assert x.device.type == "cuda"
    np.testing.assert_array_equal(torch_library.values(x), t.numpy())


def test_torchs_tensors_by_the_best_protocol(torch_library):
    torch = torch_library.module
    t = torch.arange(6.0, device="cuda")
    torch.cuda.synchronize()
    b = hamr.buffer(t)
    assert b.ptr == t.data_ptr()
    np.testing.assert_array_equal(host(b), t.cpu().numpy())


# Read-only memory, and what is refused.


def test_read_only_memory_stays_so(exchange):
    values = gpu_libraries.sample("float32", (6,))
    own = hamr.Buffer(6, "float32", "cuda", data=values)
    b = hamr.Buffer.from_pointer(own.ptr, 6, "float32", "cuda", readonly=True, owner=own)
    own.synchronize()
    with pytest.raises(BufferError, match="read-only"):
        b.__dlpack__()
    copied = hamr.from_dlpack(b.__dlpack__(copy=True))
    assert not copied.readonly
    assert copied.ptr != b.ptr
    np.testing.assert_array_equal(host(copied), values)
    assert hamr.from_dlpack(b.__dlpack__(max_version=(1, 0))).readonly
    try:
        x = exchange.from_dlpack(b)
    except BufferError:
        # Who asks for the struct of before version 1 is refused, and that is JAX alone.
        assert exchange.name == "jax"
    else:
        np.testing.assert_array_equal(exchange.values(x), values)
    np.testing.assert_array_equal(exchange.values(exchange.from_dlpack(b.copy())), values)


def test_what_torch_will_not_hand_over_is_refused(torch_library):
    torch = torch_library.module
    gradient = torch.ones(3, device="cuda", requires_grad=True)
    with pytest.raises(BufferError, match="gradient"):
        hamr.from_dlpack(gradient)
    conjugate = torch.ones(3, dtype=torch.complex64, device="cuda").conj()
    with pytest.raises(BufferError, match="conjugate"):
        hamr.from_dlpack(conjugate)
    with pytest.raises(BufferError):
        hamr.from_dlpack(torch.ones(3, device="cuda").to_sparse())
    torch_library.synchronize()
    np.testing.assert_array_equal(host(hamr.from_dlpack(gradient.detach())), [1, 1, 1])
    resolved = hamr.from_dlpack(conjugate.resolve_conj())
    np.testing.assert_array_equal(host(resolved), [1, 1, 1])


def test_a_capsule_is_taken_once(exchange):
    x = exchange.make(np.ones(4, "f4"))
    exchange.synchronize()
    capsule = x.__dlpack__()
    b = hamr.from_dlpack(capsule)
    assert (host(b) == 1).all()
    with pytest.raises(ValueError, match=r"consumed|used"):
        hamr.from_dlpack(capsule)
    own = b.__dlpack__(max_version=(1, 3))
    assert (host(hamr.from_dlpack(own)) == 1).all()


# Streams that are given to whoever takes the elements.


@pytest.mark.parametrize("stream", [None, -1, 1, 2, "a handle"])
def test_every_stream_is_accepted(cupy_library, stream):
    cp = cupy_library.module
    b = hamr.Buffer(1000, "float32", "cuda", fill=3)
    side = cp.cuda.Stream(non_blocking=True)
    given = side.ptr if stream == "a handle" else stream
    x = cp.from_dlpack(b.__dlpack__(stream=given, max_version=(1, 0)))
    assert x.data.ptr == b.ptr
    b.synchronize()
    assert (cp.asnumpy(x) == 3).all()
    for wrong in (0, -2):
        with pytest.raises((ValueError, BufferError), match="stream"):
            b.__dlpack__(stream=wrong)


def test_cupys_streams(cupy_library):
    cp = cupy_library.module
    values = gpu_libraries.sample("float32", (1000,))
    for stream in (cp.cuda.Stream.null, cp.cuda.Stream(), cp.cuda.Stream(non_blocking=True)):
        with stream:
            x = cp.asarray(values) * 2
            b = hamr.from_dlpack(x)
            np.testing.assert_array_equal(host(b), values * 2)
            y = cp.from_dlpack(b) + 1
        np.testing.assert_array_equal(cp.asnumpy(y, stream=stream), values * 2 + 1)
