"""Streams and events of every library, and each thread's own."""

from __future__ import annotations

import asyncio
import sys
import threading

import numpy as np
import pytest

import hamr
from tests.gpu.gpu_delays import COUNT, hold, keep
from tests.support.processes import launch


def check_use(stream, handle: int) -> None:
    """A buffer made on a stream moves its contents on it."""
    values = np.arange(COUNT, dtype="f4")
    for transfer in ("async", "sync_host", "sync"):
        b = hamr.Buffer(COUNT, "float32", "cuda_async", stream=stream, transfer=transfer)
        assert int(b.stream) == handle
        b[...] = values
        doubled = b.copy(dtype="float64")
        b.synchronize()
        doubled.synchronize()
        np.testing.assert_array_equal(np.array(b.get_host_accessible()), values)
        np.testing.assert_array_equal(np.array(doubled.get_host_accessible()), values)
    b = hamr.buffer(values, stream=stream)
    assert int(b.stream) == handle


def test_cupys_streams(cupy_library):
    cp = cupy_library.module
    for stream in (cp.cuda.Stream(), cp.cuda.Stream(non_blocking=True)):
        check_use(stream, stream.ptr)
        assert int(hamr.Stream.from_any(stream)) == stream.ptr
        check_use(stream.ptr, stream.ptr)
    external = cp.cuda.ExternalStream(cp.cuda.Stream(non_blocking=True).ptr)
    assert int(hamr.Stream(external)) == external.ptr


def test_torchs_streams(torch_library):
    torch = torch_library.module
    stream = torch.cuda.Stream()
    check_use(stream, stream.cuda_stream)
    check_use(stream.cuda_stream, stream.cuda_stream)
    assert hamr.Stream.from_any(stream).device == 0
    check_use(torch.cuda.default_stream(), 0)


def test_numbas_streams(numba_library):
    cuda = numba_library.module
    stream = cuda.stream()
    check_use(stream, int(stream))
    check_use(int(stream), int(stream))


def test_hamrs_streams_in_the_libraries(cupy_library):
    cp = cupy_library.module
    own = keep(hamr.Stream(device=0))
    assert own.ptr > 2
    check_use(own, own.ptr)
    if hasattr(cp.cuda.Stream, "from_external"):
        assert cp.cuda.Stream.from_external(own).ptr == own.ptr
    with cp.cuda.ExternalStream(own.ptr) as stream:
        x = cp.arange(COUNT, dtype="f4")
        b = hamr.buffer(x)
        stream.synchronize()
    np.testing.assert_array_equal(np.array(b.get_host_accessible()), np.arange(COUNT))


def test_hamrs_streams_in_torch(torch_library):
    torch = torch_library.module
    own = keep(hamr.Stream(device=0))
    with torch.cuda.stream(torch.cuda.ExternalStream(own.ptr)):
        x = torch.arange(COUNT, device="cuda") * 2
    own.synchronize()
    np.testing.assert_array_equal(x.cpu().numpy(), np.arange(COUNT) * 2)


def test_idle_and_waiting(cupy_library):
    cp = cupy_library.module
    own = keep(hamr.Stream(device=0))
    held = cp.cuda.ExternalStream(own.ptr)
    hold(cp, held, 1)
    own.synchronize()
    hold(cp, held, 50_000)
    event = own.record()
    assert not own.idle
    assert not event.done
    event.synchronize()
    assert event.done
    own.synchronize()
    assert own.idle


def test_events_order_streams(cupy_library):
    cp = cupy_library.module
    first, second = keep(hamr.Stream(device=0)), keep(hamr.Stream(device=0))
    hold(cp, cp.cuda.ExternalStream(first.ptr), 20_000)
    event = first.record()
    second.wait(event)
    assert not second.idle
    second.synchronize()
    assert event.done
    theirs = cp.cuda.Event(disable_timing=True)
    hold(cp, cp.cuda.ExternalStream(first.ptr), 20_000)
    theirs.record(cp.cuda.ExternalStream(first.ptr))
    second.wait(theirs)
    second.synchronize()
    assert theirs.done


def test_torchs_events(torch_library):
    torch = torch_library.module
    side, own = torch.cuda.Stream(), keep(hamr.Stream(device=0))
    event = torch.cuda.Event()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        event.record()
    own.wait(event)
    assert not own.idle
    own.synchronize()
    assert event.query()


def test_await(cupy_library):
    cp = cupy_library.module
    own = keep(hamr.Stream(device=0))

    async def work():
        hold(cp, cp.cuda.ExternalStream(own.ptr), 20_000)
        event = own.record()
        assert not event.done
        await event
        assert event.done
        hold(cp, cp.cuda.ExternalStream(own.ptr), 20_000)
        await own
        assert own.idle

    asyncio.run(work())


def test_each_thread_has_a_stream_of_its_own():
    found, errors = [], []
    together = threading.Barrier(4)

    def work(i: int) -> None:
        try:
            stream = hamr.Stream(2)
            values = np.full(COUNT, i, "f4")
            b = hamr.Buffer(COUNT, "float32", "cuda_async", data=values, stream=2)
            together.wait(30)
            np.testing.assert_array_equal(np.array(b.get_host_accessible()), values)
            found.append((int(stream), b))
            together.wait(30)
        except BaseException as error:
            errors.append(error)
            together.abort()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
    assert len({handle for handle, _ in found}) == 4
    # The buffers are used, waited for and freed after their threads have ended.
    for _, b in found:
        b.fill(7)
        b.synchronize()
        assert (np.array(b.get_host_accessible()) == 7).all()


@pytest.mark.parametrize("bad", ["stream", 1.5, object(), -1])
def test_what_is_no_stream_is_refused(bad):
    with pytest.raises((TypeError, ValueError), match="stream"):
        hamr.Buffer(4, "float32", "cuda", stream=bad)


def test_an_array_is_no_stream(cupy_library):
    x = cupy_library.module.zeros(3)
    with pytest.raises(TypeError, match="stream"):
        hamr.buffer(x, stream=x)


_OUTLIVED = """
import gc
import numpy as np
import hamr

for allocator in ("cuda", "cuda_async", "cuda_uva"):
    stream = hamr.Stream(device=0)
    b = hamr.Buffer(1000, "float32", allocator, stream=stream, transfer="async", fill=3)
    del stream
    gc.collect()
    b.fill(4)
    copied = b.copy()
    b.synchronize()
    assert (np.array(b.get_host_accessible()) == 4).all(), allocator
    assert (np.array(copied.get_host_accessible()) == 4).all(), allocator
    b.resize(5000, 1)
    del b, copied
    gc.collect()
print("end")
"""


def test_a_buffer_outlives_its_streams_object():
    """In a process of its own: the driver may crash on a stream that is gone."""
    status, output = launch([sys.executable, "-X", "faulthandler", "-c", _OUTLIVED], 60)
    assert (status, output) == (0, "end\n"), output[-4000:]
