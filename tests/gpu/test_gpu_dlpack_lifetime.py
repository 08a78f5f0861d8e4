"""Memory handed over by DLPack lives as long as anything that shares it, and no longer."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import hamr
from tests.gpu import gpu_libraries
from tests.gpu.test_gpu_lifetime import COUNT, MIB, count_for, overwrite, repeat
from tests.support.processes import scaled


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async"])
def test_an_array_keeps_the_buffers_memory(exchange, allocator):
    """JAX's, too: by the CUDA array interface it keeps nothing."""
    values = gpu_libraries.sample("float32", (COUNT,))
    for take in (lambda b: b, lambda b: b.get_cuda_accessible()):
        b = hamr.Buffer(COUNT, "float32", allocator, data=values)
        b.synchronize()
        x = exchange.from_dlpack(take(b))
        del b
        gc.collect()
        kept = overwrite(exchange)
        np.testing.assert_array_equal(exchange.values(x), values)
        del kept


def test_an_array_keeps_its_memory_when_the_buffer_ends_or_changes(exchange):
    values = gpu_libraries.sample("float32", (COUNT,))
    for change in (
        lambda b: b.close(),
        lambda b: b.free(),
        lambda b: b.resize(3 * COUNT, 0),
        lambda b: b.move("malloc"),
        lambda b: b.assign(np.zeros(4 * COUNT, "f4")),
    ):
        b = hamr.Buffer(COUNT, "float32", "cuda", data=values)
        b.synchronize()
        x = exchange.from_dlpack(b)
        change(b)
        kept = overwrite(exchange)
        np.testing.assert_array_equal(exchange.values(x), values)
        del kept


def test_a_temporary_is_kept_by_what_shares_it(exchange):
    values = gpu_libraries.sample("float32", (COUNT,))
    x = exchange.from_dlpack(hamr.buffer(values.copy()).get_cuda_accessible())
    gc.collect()
    kept = overwrite(exchange)
    np.testing.assert_array_equal(exchange.values(x), values)
    del kept


def test_a_buffer_keeps_the_librarys_array(exchange):
    values = gpu_libraries.sample("float32", (COUNT,))
    x = exchange.make(values)
    exchange.synchronize()
    b = hamr.from_dlpack(x)
    part = b[COUNT // 2 :]
    h = b.get_cuda_accessible()
    del x, b
    gc.collect()
    kept = overwrite(exchange)
    np.testing.assert_array_equal(np.array(part.get_host_accessible()), values[COUNT // 2 :])
    np.testing.assert_array_equal(np.array(h.get_host_accessible()), values)
    del kept


def test_the_librarys_array_is_let_go(cupy_library):
    cp = cupy_library.module
    pool = cp.get_default_memory_pool()
    gc.collect()
    before = pool.used_bytes()
    x = cp.zeros(1 << 22, "f4")
    b = hamr.from_dlpack(x)
    h = b[:5].get_cuda_accessible()
    del x, b
    gc.collect()
    assert pool.used_bytes() - before >= 16 * MIB
    del h
    gc.collect()
    hamr.stats()  # what ended on other threads is let go at the next call
    assert pool.used_bytes() == before


def test_giving_buffers_leaks_nothing(exchange):
    b = hamr.Buffer(1 << 18, "float32", "cuda", fill=1)
    b.synchronize()
    repeat(exchange, count_for(exchange), lambda: exchange.from_dlpack(b))


def test_taking_arrays_leaks_nothing(exchange):
    x = exchange.make(np.ones(1 << 18, "f4"))
    exchange.synchronize()
    repeat(exchange, count_for(exchange), lambda: hamr.from_dlpack(x))


def test_capsules_that_nobody_takes_leak_nothing(cupy_library):
    b = hamr.Buffer(1 << 18, "float32", "cuda", fill=1)
    b.synchronize()
    x = cupy_library.make(np.ones(1 << 18, "f4"))
    for max_version in (None, (1, 3)):
        repeat(cupy_library, scaled(30_000), lambda v=max_version: b.__dlpack__(max_version=v))
    repeat(cupy_library, scaled(30_000), lambda: hamr.from_dlpack(x.__dlpack__()))


@pytest.mark.freed_again
def test_own_memory_given_and_ended_leaks_nothing(exchange):
    def hand_over():
        for allocator in ("cuda", "cuda_async"):
            exchange.from_dlpack(hamr.Buffer(1 << 18, "float32", allocator))

    repeat(exchange, scaled(2000), hand_over)
