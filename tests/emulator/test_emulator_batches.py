"""cuMemcpyBatchAsync: many copies in the order of a stream, and in none among themselves."""

import ctypes

import pytest

from tests.emulator.emulated_driver import INVALID_VALUE, memory, streams, violation


class Attributes(ctypes.Structure):
    """CUmemcpyAttributes."""

    _fields_ = [("order", ctypes.c_uint), ("hints", ctypes.c_int * 4), ("flags", ctypes.c_uint)]


IN_ORDER, DURING_THE_CALL = 1, 2


def batch(d, targets, sources, stream, *, order=IN_ORDER, size=4, firsts=(0,), count=None, v2=True):
    """The code of a call."""
    n = len(targets)
    attributes = (Attributes * len(firsts))(*[Attributes(order)] * len(firsts))
    lists = [(ctypes.c_uint64 * n)(*values) for values in (targets, sources, [size] * n)]
    firsts = (ctypes.c_size_t * len(firsts))(*firsts)
    failed = () if v2 else (ctypes.byref(ctypes.c_size_t()),)
    name = "cuMemcpyBatchAsync_v2" if v2 else "cuMemcpyBatchAsync"
    n = n if count is None else count
    return d.code(name, *lists, n, attributes, firsts, len(firsts), *failed, stream)


@pytest.mark.parametrize("v2", [True, False])
def test_copies_are_late_and_in_the_order_of_the_stream(d, v2):
    with memory(d, 8) as a, memory(d, 8) as b, streams(d, 1) as (stream,):
        d.do("cuMemsetD8Async", a, 1, 8, stream)
        assert batch(d, [b, b + 4], [a, a + 4], stream, v2=v2) == 0
        d.do("cuMemsetD8Async", a, 2, 8, stream)
        assert d.peek(b, 8) != bytes([1] * 8)
        d.do("cuStreamSynchronize", stream)
        assert d.peek(b, 8) == bytes([1] * 8)


@pytest.mark.parametrize(("order", "read"), [(IN_ORDER, b"late"), (DURING_THE_CALL, b"then")])
def test_when_host_memory_is_read(d, order, read):
    host = ctypes.create_string_buffer(b"then", 4)
    with memory(d, 4) as at, streams(d, 1) as (stream,):
        assert batch(d, [at], [ctypes.addressof(host)], stream, order=order) == 0
        host[:] = b"late"
        d.do("cuStreamSynchronize", stream)
        assert d.peek(at, 4) == read


@pytest.mark.parametrize(
    ("says", "change"),
    [
        ("legacy stream", {"stream": 0}),
        ("legacy stream", {"stream": 1}),
        ("a batch of nothing", {"count": 0}),
        ("without attributes", {"firsts": (1,)}),
        ("attributes of copy 0", {"firsts": (0, 0)}),
        ("without attributes", {"firsts": (0, 1, 2)}),
        ("attributes 0, 0", {"order": 0}),
        ("has no bytes", {"size": 0}),
        ("out of bounds", {"size": 5}),
    ],
)
def test_what_is_refused(d, says, change):
    with memory(d, 8) as a, memory(d, 8) as b, streams(d, 1) as (stream,):
        change = {"stream": stream, **change}
        with violation(d, says):
            assert batch(d, [b, b + 4], [a, a + 4], **change) == INVALID_VALUE


def test_copies_that_depend_on_each_other(d):
    with memory(d, 8) as a, memory(d, 8) as b, streams(d, 1) as (stream,):
        with violation(d, "depend on each other"):
            assert batch(d, [b, b + 2], [a, a + 4], stream) == 0
        d.do("cuStreamSynchronize", stream)
