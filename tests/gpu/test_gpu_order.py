"""A producer still at work on one stream, a consumer on another: no old value is ever read."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import hamr
from tests.gpu import gpu_delays
from tests.gpu.gpu_delays import COUNT, hold, keep, write_late
from tests.support.processes import launch, scaled

ROUNDS = scaled(1000, 20)
DELAY = 200.0  # microseconds: several times what a round takes without it
LONG = 20_000.0  # what no consumer that does not wait is slower than


class Streams:
    def __init__(self, cp):
        self.producer = keep(cp.cuda.Stream(non_blocking=True))
        self.consumer = keep(cp.cuda.Stream(non_blocking=True))
        self.x = cp.zeros(COUNT, "f4")
        cp.cuda.runtime.deviceSynchronize()


@pytest.fixture
def cp(cupy_library):
    return cupy_library.module


@pytest.fixture
def streams(cp):
    made = Streams(cp)
    # Compiled, loaded and warm before anything is to be late.
    write_late(cp, made.producer, made.x, 0, 1)
    hamr.buffer(made.x).get_host_accessible()
    cp.cuda.runtime.deviceSynchronize()
    yield made
    cp.cuda.runtime.deviceSynchronize()


def adopt(streams, **options):
    with streams.producer:  # whose handle CuPy announces
        return hamr.buffer(streams.x, **options)


def on_the_host(b, streams, cp):
    return np.array(b.get_host_accessible())


def by_get(b, streams, cp):
    return b.get(np.empty(COUNT, "f4"))


def by_copy(b, streams, cp):
    return np.array(b.copy("malloc"))


def by_device_copy(b, streams, cp):
    return np.array(b.copy("cuda_async").get_host_accessible())


def by_cast(b, streams, cp):
    return np.array(b.astype("float64").get_host_accessible())


def by_slice(b, streams, cp):
    return np.repeat(np.array(b[::2].get_host_accessible()), 2)


def by_cupy(b, streams, cp):
    with streams.consumer:
        copied = cp.asarray(b).copy()
    return cp.asnumpy(copied, stream=streams.consumer)


def by_cupy_through_a_handle(b, streams, cp):
    with streams.consumer:
        copied = cp.asarray(b.get_cuda_accessible()).copy()
    return cp.asnumpy(copied, stream=streams.consumer)


def by_cupy_on_the_given_stream(b, streams, cp):
    """Nothing but stream order: the caller said which stream it will use."""
    with streams.consumer:
        copied = cp.ndarray(COUNT, "f4", cp.cuda.MemoryPointer(_unowned(cp, b), 0)).copy()
    return cp.asnumpy(copied, stream=streams.consumer)


def _unowned(cp, b):
    return cp.cuda.UnownedMemory(b.ptr, b.nbytes, b)


CONSUMERS = [
    on_the_host,
    by_get,
    by_copy,
    by_device_copy,
    by_cast,
    by_slice,
    by_cupy,
    by_cupy_through_a_handle,
]


@pytest.mark.parametrize("consume", CONSUMERS, ids=lambda f: f.__name__)
def test_no_old_value_is_read(cp, streams, consume):
    wrong = 0
    for i in range(1, ROUNDS + 1):
        write_late(cp, streams.producer, streams.x, i, DELAY)
        wrong += bool((consume(adopt(streams), streams, cp) != i).any())
    assert wrong == 0


def test_the_stream_that_the_caller_names_waits(cp, streams):
    wrong = 0
    for i in range(1, ROUNDS + 1):
        write_late(cp, streams.producer, streams.x, i, DELAY)
        b = adopt(streams, stream=streams.consumer)
        wrong += bool((by_cupy_on_the_given_stream(b, streams, cp) != i).any())
    assert wrong == 0


@pytest.mark.parametrize("way", ["synchronize", "announced stream", "named stream"])
def test_torch_reads_no_old_value(cp, streams, torch_library, way):
    """torch does not read the interface's stream: the caller waits, in one of three ways."""
    torch = torch_library.module
    side = keep(torch.cuda.Stream())
    wrong = 0
    for i in range(1, ROUNDS + 1):
        write_late(cp, streams.producer, streams.x, i, DELAY)
        with torch.cuda.stream(side):
            # With its own stream given, that runs after the producer's.
            b = adopt(streams, stream=side if way == "named stream" else None)
            if way == "synchronize":
                b.synchronize()
            elif way == "announced stream":
                announced = b.__cuda_array_interface__.get("stream")
                if announced is not None:
                    # torch takes odd handles, as the legacy stream's, for its own numbers.
                    legacy = announced == 1
                    external = None if legacy else torch.cuda.ExternalStream(announced)
                    side.wait_stream(torch.cuda.default_stream() if legacy else external)
            copied = torch.as_tensor(b, device="cuda").clone()
            read = copied.cpu().numpy()
        wrong += bool((read != i).any())
    assert wrong == 0


def test_torch_as_producer(cp, streams, torch_library):
    """torch announces no stream: the caller names it."""
    torch = torch_library.module
    side = keep(torch.cuda.Stream())
    x = torch.zeros(COUNT, device="cuda")
    torch.cuda.synchronize()
    wrong = 0
    for i in range(1, ROUNDS + 1):
        with torch.cuda.stream(side):
            torch.cuda._sleep(gpu_delays.cycles(cp, DELAY))
            x.fill_(i)
        b = hamr.buffer(x, stream=side)
        wrong += bool((np.array(b.get_host_accessible()) != i).any())
    assert wrong == 0


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva"])
def test_cupy_reads_what_hamr_is_still_moving(cp, streams, allocator):
    pinned = hamr.Buffer(COUNT, "float32", "cuda_host")
    own = keep(hamr.Stream(device=0))
    held = cp.cuda.ExternalStream(own.ptr)
    b = hamr.Buffer(COUNT, "float32", allocator, stream=own, transfer="async", fill=0)
    b.synchronize()
    wrong = 0
    for i in range(1, ROUNDS + 1):
        pinned.fill(i)
        pinned.synchronize()
        hold(cp, held, DELAY)
        if i % 2:
            b[...] = pinned
        else:
            b.fill(i)
        wrong += bool((by_cupy(b, streams, cp) != i).any())
    assert wrong == 0


@pytest.mark.freed_again  # what CuPy reads there ends before that
def test_cupy_reads_a_temporary_that_is_still_filled(cp, streams):
    own = keep(hamr.Stream(device=0))
    held = cp.cuda.ExternalStream(own.ptr)
    pinned = hamr.Buffer(COUNT, "float32", "cuda_host", stream=own, transfer="async")
    wrong = 0
    for i in range(1, ROUNDS + 1):
        pinned.fill(i)
        pinned.synchronize()
        hold(cp, held, DELAY)
        wrong += bool((by_cupy_through_a_handle(pinned, streams, cp) != i).any())
    assert wrong == 0


def test_hamr_writes_after_what_the_producer_still_does(cp, streams):
    wrong = 0
    for i in range(1, ROUNDS + 1):
        write_late(cp, streams.producer, streams.x, -i, DELAY)
        b = adopt(streams)
        b.fill(i)
        wrong += bool((by_cupy(b, streams, cp) != i).any())
        streams.producer.synchronize()
        wrong += bool((cp.asnumpy(streams.x) != i).any())
    assert wrong == 0


def test_the_buffers_memory_is_freed_after_work_on_its_stream(cp, streams):
    """Memory that is freed in stream order is not given to others while it is written."""
    wrong = 0
    for i in range(1, scaled(300, 20) + 1):
        b = hamr.Buffer(COUNT, "float32", "cuda_async", stream=streams.producer)
        write_late(cp, streams.producer, cp.asarray(b), -i, DELAY)
        del b
        other = hamr.Buffer(COUNT, "float32", "cuda_async", fill=i, stream=streams.consumer)
        other.synchronize()
        streams.producer.synchronize()
        wrong += bool((np.array(other.get_host_accessible()) != i).any())
    assert wrong == 0


def old_values(cp, streams, consume, rounds, **options):
    """In how many rounds a consumer read something else than what was written last."""
    wrong = 0
    for i in range(1, rounds + 1):
        write_late(cp, streams.producer, streams.x, i, LONG)
        wrong += bool((consume(adopt(streams, **options), streams, cp) != i).any())
        cp.cuda.runtime.deviceSynchronize()
    return wrong


@pytest.mark.parametrize("consume", [on_the_host, by_get, by_cupy], ids=lambda f: f.__name__)
def test_opting_out_reads_old_values(cp, streams, consume):
    """So the tests above are able to fail."""
    assert old_values(cp, streams, consume, 10, wait=False) > 0
    assert old_values(cp, streams, consume, 10, wait=True) == 0


_OPTED_OUT = """
import cupy as cp
import numpy as np
import hamr
from tests.gpu.test_gpu_order import Streams, old_values, on_the_host
from tests.gpu.gpu_delays import write_late

streams = Streams(cp)
write_late(cp, streams.producer, streams.x, 0, 1)
hamr.buffer(streams.x).get_host_accessible()
cp.cuda.runtime.deviceSynchronize()
print("old values", old_values(cp, streams, on_the_host, 10))
print("waiting", old_values(cp, streams, on_the_host, 10, wait=True))
"""


@pytest.mark.parametrize(("setting", "old"), [("0", True), ("1", False)])
def test_the_environment_opts_out(cp, setting, old):
    env = {"HAMR_CUDA_ARRAY_INTERFACE_SYNC": setting}
    status, output = launch([sys.executable, "-c", _OPTED_OUT], 120, env)
    assert status == 0, output[-4000:]
    names = ("old values ", "waiting ")
    lines = dict(line.rsplit(" ", 1) for line in output.splitlines() if line.startswith(names))
    assert (int(lines["old values"]) > 0) is old, output
    assert int(lines["waiting"]) == 0, output
