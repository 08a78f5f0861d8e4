"""One side of DLPack still at work on a stream, the other on another: no old value is read."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.gpu import gpu_delays, gpu_libraries
from tests.gpu.gpu_delays import COUNT, hold, keep, write_late
from tests.gpu.test_gpu_order import (
    CONSUMERS,
    DELAY,
    LONG,
    ROUNDS,
    Streams,
    by_cupy_on_the_given_stream,
    by_get,
    on_the_host,
)
from tests.support.processes import scaled


class Only:
    """What has nothing but DLPack."""

    def __init__(self, source):
        self.source = source

    def __dlpack__(self, **arguments):
        return self.source.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.source.__dlpack_device__()


class Producer:
    """A library at work on a stream of its own, which has an array of COUNT float32 there."""

    def __init__(self, cp, streams):
        self.cp, self.stream, self.x = cp, streams.producer, streams.x

    def write_late(self, value, microseconds):
        write_late(self.cp, self.stream, self.x, value, microseconds)

    def current(self):
        """Its stream is the one that it exports on."""
        return self.stream


class TorchProducer(Producer):
    def __init__(self, cp, torch):
        self.cp, self.torch = cp, torch
        self.stream = keep(torch.cuda.Stream())
        self.x = torch.zeros(COUNT, device="cuda")
        torch.cuda.synchronize()

    def write_late(self, value, microseconds):
        with self.current():
            self.torch.cuda._sleep(gpu_delays.cycles(self.cp, microseconds))
            self.x.fill_(value)

    def current(self):
        return self.torch.cuda.stream(self.stream)


@pytest.fixture
def cp(cupy_library):
    return cupy_library.module


@pytest.fixture
def streams(cp):
    made = Streams(cp)
    write_late(cp, made.producer, made.x, 0, 1)  # compiled before anything is to be late
    cp.cuda.runtime.deviceSynchronize()
    yield made
    cp.cuda.runtime.deviceSynchronize()


@pytest.fixture(params=["cupy", "torch"])
def producer(request, cp, streams):
    found, reason = gpu_libraries.get(request.param)
    if found is None:
        pytest.skip(reason)
    made = Producer(cp, streams) if found.name == "cupy" else TorchProducer(cp, found.module)
    made.write_late(0, 1)
    with made.current():
        hamr.from_dlpack(made.x).get_host_accessible()
    cp.cuda.runtime.deviceSynchronize()
    return made


# hamr reads what a library is still writing.


def taken(producer):
    with producer.current():
        return hamr.from_dlpack(producer.x)


@pytest.mark.parametrize("consume", CONSUMERS, ids=lambda f: f.__name__)
def test_hamr_reads_no_old_value(cp, streams, producer, consume):
    wrong = 0
    for i in range(1, ROUNDS + 1):
        producer.write_late(i, DELAY)
        wrong += bool((consume(taken(producer), streams, cp) != i).any())
    assert wrong == 0


def test_the_stream_that_the_caller_names_waits(cp, streams, producer):
    wrong = 0
    for i in range(1, ROUNDS + 1):
        producer.write_late(i, DELAY)
        with producer.current():
            b = hamr.buffer(Only(producer.x), stream=streams.consumer)
        wrong += bool((by_cupy_on_the_given_stream(b, streams, cp) != i).any())
    assert wrong == 0


def test_hamr_writes_after_what_the_producer_still_does(cp, streams, producer):
    wrong = 0
    for i in range(1, ROUNDS + 1):
        producer.write_late(-i, DELAY)
        b = taken(producer)
        b.fill(i)
        wrong += bool((on_the_host(b, streams, cp) != i).any())
        producer.stream.synchronize()
        wrong += bool((on_the_host(b, streams, cp) != i).any())
    assert wrong == 0


def test_jaxs_results_are_not_read_early(jax_library):
    """JAX returns before its work is done."""
    import jax

    sin = jax.numpy.sin
    step = jax.jit(lambda x, n: jax.lax.fori_loop(0, 200, lambda _, y: sin(y), x) + n)
    x = jax.numpy.zeros(1 << 20, "float32")
    step(x, 0.0).block_until_ready()
    for i in range(1, scaled(200, 20) + 1):
        assert (np.array(hamr.from_dlpack(step(x, float(i))).get_host_accessible()) == i).all()


# Libraries read what hamr, or others on a buffer's stream, are still writing.


class Reader:
    def __init__(self, cp, streams):
        self.cp, self.stream = cp, streams.consumer

    def read(self, offered):
        """What the library reads in the order of a stream, and of nothing else."""
        with self.stream:
            copied = self.cp.from_dlpack(offered).copy()
        return self.cp.asnumpy(copied, stream=self.stream)


class ReaderOnTheDefault(Reader):
    def __init__(self, cp, streams):
        self.cp, self.stream = cp, cp.cuda.Stream.null


class TorchReader:
    def __init__(self, torch, stream):
        self.torch, self.stream = torch, stream

    def read(self, offered):
        with self.torch.cuda.stream(self.stream):
            return self.torch.from_dlpack(offered).clone().cpu().numpy()


class JaxReader:
    def __init__(self, jax):
        self.jax = jax

    def read(self, offered):
        return np.array(self.jax.array(self.jax.from_dlpack(offered), copy=True))


READERS = ("cupy", "cupy, default stream", "torch", "torch, default stream", "jax")


@pytest.fixture(params=READERS)
def reader(request, cp, streams):
    name, _, default = request.param.partition(", ")
    found, reason = gpu_libraries.get(name)
    if found is None:
        pytest.skip(reason)
    if name == "cupy":
        made = (ReaderOnTheDefault if default else Reader)(cp, streams)
    elif name == "torch":
        torch = found.module
        stream = torch.cuda.default_stream() if default else keep(torch.cuda.Stream())
        made = TorchReader(torch, stream)
    else:
        made = JaxReader(found.module)
    made.read(hamr.Buffer(COUNT, "float32", "cuda", fill=0))
    return made


def rounds_of(reader) -> int:
    return ROUNDS if not isinstance(reader, JaxReader) else scaled(200, 20)


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async"])
def test_no_old_value_is_read_of_what_hamr_still_moves(cp, reader, allocator):
    pinned = hamr.Buffer(COUNT, "float32", "cuda_host")
    own = keep(hamr.Stream(device=0))
    held = cp.cuda.ExternalStream(own.ptr)
    b = hamr.Buffer(COUNT, "float32", allocator, stream=own, transfer="async", fill=0)
    b.synchronize()
    wrong = 0
    for i in range(1, rounds_of(reader) + 1):
        pinned.fill(i)
        pinned.synchronize()
        hold(cp, held, DELAY)
        if i % 2:
            b[...] = pinned
        else:
            b.fill(i)
        wrong += bool((reader.read(b) != i).any())
    assert wrong == 0


def test_no_old_value_is_read_of_what_others_write_on_the_buffers_stream(cp, reader):
    own = keep(hamr.Stream(device=0))
    b = hamr.Buffer(COUNT, "float32", "cuda", stream=own, transfer="async", fill=0)
    b.synchronize()
    x, held = cp.asarray(b), cp.cuda.ExternalStream(own.ptr)
    wrong = 0
    for i in range(1, rounds_of(reader) + 1):
        write_late(cp, held, x, i, DELAY)
        wrong += bool((reader.read(b) != i).any())
    assert wrong == 0


def test_no_old_value_is_read_through_hamr(reader, producer):
    """From a library at work to another: hamr only hands on."""
    wrong = 0
    for i in range(1, rounds_of(reader) + 1):
        producer.write_late(i, DELAY)
        wrong += bool((reader.read(taken(producer)) != i).any())
        producer.stream.synchronize()
    assert wrong == 0


def test_a_temporary_is_not_read_before_it_is_filled(cp, reader):
    own = keep(hamr.Stream(device=0))
    held = cp.cuda.ExternalStream(own.ptr)
    pinned = hamr.Buffer(COUNT, "float32", "cuda_host", stream=own, transfer="async")
    wrong = 0
    for i in range(1, rounds_of(reader) + 1):
        pinned.fill(i)
        pinned.synchronize()
        hold(cp, held, DELAY)
        wrong += bool((reader.read(pinned.get_cuda_accessible()) != i).any())
    assert wrong == 0


@pytest.mark.parametrize("allocator", ["cuda_uva", "cuda_host"])
def test_numpy_reads_no_old_value(cp, allocator):
    """It names no stream: what the host reaches is complete when it is handed over."""
    own = keep(hamr.Stream(device=0))
    held = cp.cuda.ExternalStream(own.ptr)
    source = hamr.Buffer(COUNT, "float32", "cuda", stream=own, transfer="async", fill=0)
    b = hamr.Buffer(COUNT, "float32", allocator, stream=own, transfer="async")
    wrong = 0
    for i in range(1, ROUNDS + 1):
        hold(cp, held, DELAY)
        source.fill(i)
        b[...] = source
        wrong += bool((np.from_dlpack(b) != i).any())
    assert wrong == 0


# Without the order, the same tests see old values: they are able to fail.


def unordered(cp, read, write, rounds=10):
    wrong = 0
    for i in range(1, rounds + 1):
        write(i)
        wrong += bool((read() != i).any())
        cp.cuda.runtime.deviceSynchronize()
    return wrong


@pytest.mark.parametrize("consume", [on_the_host, by_get], ids=lambda f: f.__name__)
def test_taking_without_an_order_reads_old_values(cp, streams, producer, consume):
    def read(wait):
        with producer.current():
            b = hamr.buffer(Only(producer.x), wait=wait)
        assert b.source_protocol == "__dlpack__"
        return consume(b, streams, cp)

    def write(value):
        producer.write_late(value, LONG)

    assert unordered(cp, lambda: read(False), write) > 0
    assert unordered(cp, lambda: read(True), write) == 0


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_giving_without_an_order_reads_old_values(cp, streams, name):
    found, reason = gpu_libraries.get(name)
    if found is None:
        pytest.skip(reason)
    if name == "cupy":
        reader, side = Reader(cp, streams), streams.consumer.ptr
    else:
        stream = keep(found.module.cuda.Stream())
        reader, side = TorchReader(found.module, stream), stream.cuda_stream
    own = keep(hamr.Stream(device=0))
    b = hamr.Buffer(COUNT, "float32", "cuda", stream=own, transfer="async", fill=0)
    b.synchronize()
    x, held = cp.asarray(b), cp.cuda.ExternalStream(own.ptr)

    def write(value):
        write_late(cp, held, x, value, LONG)

    def read(stream):
        return reader.read(b.__dlpack__(stream=stream, max_version=(1, 0)))

    assert unordered(cp, lambda: read(-1), write) > 0
    assert unordered(cp, lambda: read(side), write) == 0


# Memory of a pool goes to others only when consumers' streams are done with it.


class User:
    """A library that writes late to what it was given, on a stream of its own."""

    def __init__(self, cp):
        self.cp, self.stream = cp, cp.cuda.Stream(non_blocking=True)

    def use(self, b, value, microseconds):
        with self.stream:
            x = self.cp.from_dlpack(b)
        write_late(self.cp, self.stream, x, value, microseconds)


class UserOnTheDefault(User):
    def __init__(self, cp):
        self.cp, self.stream = cp, cp.cuda.Stream.null


class UserOfTheAddress(User):
    """Who asks for the address alone."""

    def use(self, b, value, microseconds):
        self.write(b.ptr, value, microseconds)

    def write(self, address, value, microseconds):
        memory = self.cp.cuda.UnownedMemory(address, COUNT * 4, None)
        x = self.cp.ndarray(COUNT, "f4", self.cp.cuda.MemoryPointer(memory, 0))
        write_late(self.cp, self.stream, x, value, microseconds)


def addresses():
    return {found["address"] for found in hamr.memory_snapshot().allocations}


class UserUnknown(UserOfTheAddress):
    """Of whom hamr cannot know: a report has the address, and nobody asked for it."""

    def __init__(self, cp):
        super().__init__(cp)
        self.before = addresses()

    def use(self, b, value, microseconds):
        (address,) = addresses() - self.before
        self.write(address, value, microseconds)


class TorchUser(User):
    def __init__(self, cp, torch):
        self.cp, self.torch, self.stream = cp, torch, torch.cuda.Stream()

    def use(self, b, value, microseconds):
        with self.torch.cuda.stream(self.stream):
            x = self.torch.from_dlpack(b)
            self.torch.cuda._sleep(gpu_delays.cycles(self.cp, microseconds))
            x.fill_(value)


def overwritten(cp, make_user, rounds, microseconds):
    """In how many rounds a late write reached memory that was another's by then."""
    own = keep(hamr.Stream(device=0))
    wrong = 0
    for i in range(1, rounds + 1):
        user = make_user()
        b = hamr.Buffer(COUNT, "float32", "cuda_async", stream=own)
        b.synchronize()
        user.use(b, -i, microseconds)
        del user, b  # CuPy destroys the stream, too
        others = [hamr.Buffer(COUNT, "float32", "cuda_async", fill=i, stream=own) for _ in range(4)]
        cp.cuda.runtime.deviceSynchronize()
        wrong += any((np.array(other.get_host_accessible()) != i).any() for other in others)
    return wrong


@pytest.mark.parametrize("name", ["cupy", "cupy, default stream", "cupy, by its address", "torch"])
def test_a_pools_memory_is_not_given_to_others_while_it_is_written(cp, streams, name):
    library, _, how = name.partition(", ")
    users = {"default stream": UserOnTheDefault, "by its address": UserOfTheAddress}
    found, reason = gpu_libraries.get(library)
    if found is None:
        pytest.skip(reason)

    def make_user():
        if library == "torch":
            return TorchUser(cp, found.module)
        return users.get(how, User)(cp)

    assert overwritten(cp, make_user, scaled(300, 20), DELAY) == 0
    assert overwritten(cp, make_user, 5, LONG) == 0


@pytest.mark.freed_again
def test_a_pools_memory_goes_on_at_once_where_hamr_knows_of_nobody(cp, streams):
    """So the test above is able to fail."""
    assert overwritten(cp, lambda: UserUnknown(cp), 10, LONG) > 0
