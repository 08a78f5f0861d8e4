"""Walks at random over hamr.pygpu's arrays, beside NumPy arrays for both of their sides."""

import random
from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr import pygpu
from tests.cuda import driver
from tests.support.processes import scaled

STEPS = 40
PTX = Path(__file__).with_name("user_kernels.ptx")
#: Above it sums of float32 might be rounded, once on a device and twice here.
EXACT = 2**20
LAYOUTS = {
    "C": lambda a: np.array(a, order="C"),
    "F": lambda a: np.array(a, order="F"),
    "gaps": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
    "reversed": lambda a: a[::-1].copy()[::-1] if a.ndim else a,
}


class Pair:
    """An array, NumPy's with what the device is to have, and one with what the host side is."""

    def __init__(self, array, device, host=None):
        self.array, self.device, self.host = array, device, host

    def check(self):
        got = self.array.get(np.empty(self.device.shape, self.device.dtype))
        assert got.tolist() == self.device.tolist()
        assert self.array.shape == self.device.shape
        assert self.array.dtype == self.device.dtype
        if self.host is not None:
            assert int(self.array.host_data) == self.host.ctypes.data


class Walk:
    def __init__(self, seed):
        self.choose = random.Random(seed)
        self.pairs = [self.sent()]
        self.streams = [pygpu.cudaStream_t(flags) for flags in (0, 1)]
        module = pygpu.Module(PTX)
        self.saxpy, self.filling = module.function("saxpy"), module.function("fill")
        self.sources = []  # page-locked memory, which streams may yet read

    def values(self, shape, dtype):
        count = int(np.prod(shape))
        numbers = [self.choose.randint(0, 100) for _ in range(count)]
        return np.array(numbers, "i8").astype(dtype).reshape(shape)

    def shape(self):
        return tuple(self.choose.choice((0, 1, 2, 3, 4)) for _ in range(self.choose.randint(0, 3)))

    def pair(self):
        return self.choose.choice(self.pairs)

    def key(self, shape):
        keys = []
        for n in shape[: self.choose.randint(0, len(shape))]:
            if n and self.choose.random() < 0.4:
                keys.append(self.choose.randrange(-n, n))
            else:
                step = self.choose.choice((1, 1, 2, -1))
                ends = (self.choose.choice((None, *range(-n, n + 1))) for _ in range(2))
                keys.append(slice(*ends, step))
        return (*keys, ...)

    # What makes an array.

    def sent(self):
        dtype = self.choose.choice(pygpu.SUPPORTED_DTYPES)
        host = LAYOUTS[self.choose.choice(list(LAYOUTS))](self.values(self.shape(), dtype))
        order = "F" if host.flags.f_contiguous and not host.flags.c_contiguous else "C"
        device = np.array(host, order=order)
        way = self.choose.randrange(3)
        if way == 0:
            return Pair(pygpu.to_gpu(host), device, host)
        copy = way == 1
        array = pygpu.GPUArray(host, copy=copy)
        if copy:
            host[...] = 0
        array.to_device()
        return Pair(array, device, None if copy else host)

    def made(self):
        dtype, order = self.choose.choice(pygpu.SUPPORTED_DTYPES), self.choose.choice("CF")
        device = np.full(self.shape(), self.choose.randint(0, 100), dtype, order)
        array = pygpu.GPUArray(device.shape, dtype, order=order)
        array.fill(device.flat[0].item() if device.size else 0)
        return Pair(array, device)

    def shared(self):
        pair = self.pair()
        return Pair(pygpu.GPUArray(allocator=pygpu.Allocator(pair.array)), pair.device)

    def low(self):
        """A low-level array over the same memory on the device, where that is without gaps."""
        pair = self.pair()
        if not pair.array.flags.c_contiguous or not pair.array.size:
            return
        host = np.zeros(pair.device.shape, pair.device.dtype)
        kind = getattr(pygpu, f"DeviceArray_{pair.device.dtype}")
        low = kind(host.ctypes.data, pair.array.ptr, list(host.shape))
        low.to_host()
        assert host.tolist() == pair.device.tolist()
        host[...] = self.values(host.shape, host.dtype)
        low.to_device()
        assert low.last_status() == 0
        pair.device[...] = host

    def view(self):
        pair = self.pair()
        array, device = pair.array, pair.device
        way = self.choose.randrange(5)
        if way == 0:
            key = self.key(device.shape)
            return Pair(array[key], device[key])
        if way == 1:
            return Pair(array.T, device.T)
        if way == 2:
            order = self.choose.choice("CF")
            return Pair(array.ravel(order), device.reshape(device.size, order=order))
        if way == 3 and device.ndim > 1:
            sizes, order = device.shape[::-1], self.choose.choice("CF")
            return Pair(array.reshape(sizes, order=order), device.reshape(sizes, order=order))
        if device.dtype.kind in "iu":
            other = device.dtype.str.replace("i", "x").replace("u", "i").replace("x", "u")
            return Pair(array.view(other), device.view(other))
        return Pair(array.squeeze(), device.squeeze())

    def copied(self):
        pair = self.pair()
        return Pair(pair.array.copy(), pair.device.copy(order="A"))

    # What writes to the device.

    def set(self):
        pair = self.pair()
        values = self.values(pair.device.shape, pair.device.dtype)
        values = LAYOUTS[self.choose.choice(list(LAYOUTS))](values)
        way = self.choose.randrange(3)
        if way == 0:
            pair.array.set(values)
        else:
            stream = self.choose.choice(self.streams)
            pair.array.set(values, async_=way == 1, stream=stream)
        pair.device[...] = values
        values[...] = 0

    def set_val(self):
        pair = self.pair()
        if not pair.device.size:
            return
        idx, val = self.choose.randrange(pair.device.size), self.choose.randint(0, 100)
        pair.array.set_val(idx, val)
        flags = pair.array.flags
        memory = pair.device.T if flags.f_contiguous and not flags.c_contiguous else pair.device
        memory[np.unravel_index(idx, memory.shape)] = val

    def write(self):
        pair = self.pair()
        key = self.key(pair.device.shape)
        part = pair.device[key]
        values = self.values(part.shape, part.dtype)
        pair.array[key] = pygpu.to_gpu(values) if self.choose.random() < 0.5 else values
        pair.device[key] = values

    def fill(self):
        pair, val = self.pair(), self.choose.randint(0, 100)
        pair.array.fill(val, stream=self.choose.choice((None, *self.streams)))
        pair.device[...] = val

    # Kernels, and what else is enqueued.

    def of_floats(self):
        """The pairs that kernels of float32 may have."""
        return [
            pair
            for pair in self.pairs
            if pair.device.dtype == "f4" and pair.device.size and pair.array.flags.c_contiguous
        ]

    def launch(self, function, *arguments, threads):
        stream = self.choose.choice((None, *self.streams, hamr.Stream(device=0)))
        options = {} if stream is None else {"stream": stream}
        function(*arguments, grid=(threads + 31) // 32, block=32, **options)

    def part(self, pair):
        """An array, or some of its elements that lie side by side, and NumPy's."""
        array, device = pair.array.ravel(), pair.device.reshape(-1)
        if self.choose.random() < 0.5:
            return pair.array, device
        first = self.choose.randrange(device.size)
        last = self.choose.randint(first + 1, device.size)
        return array[first:last], device[first:last]

    def kernel(self):
        if not self.of_floats():
            values = self.values((self.choose.randint(1, 40),), "f4")
            self.pairs.append(Pair(pygpu.to_gpu(values), values.copy(), values))
        y, expected = self.part(self.choose.choice(self.of_floats()))
        if self.choose.random() < 0.4 or abs(expected).max() > EXACT:
            value = self.choose.randint(0, 100)
            self.launch(self.filling, y, expected.size, value, threads=expected.size)
            expected[...] = value
            return
        apart = [p for p in self.of_floats() if not np.may_share_memory(p.device, expected)]
        if apart and self.choose.random() < 0.7:
            x, read = self.part(self.choose.choice(apart))
            x, given = self.choose.choice((x, pygpu.In(x))), None
        else:
            read = self.values((expected.size,), "f4")
            given = read.copy()
            x = pygpu.In(given)
        count, a = min(read.size, expected.size), self.choose.choice((-1, 0, 1, 2))
        if abs(read).max() > EXACT:
            return
        on_host = self.choose.random() < 0.2
        if on_host:
            host = self.values((count,), "f4")
            y, expected = pygpu.InOut(host), host.copy()
        self.launch(self.saxpy, count, a, x, y, threads=count)
        expected[:count] += a * read[:count]
        if given is not None:
            given[...] = -1
        if on_host:
            assert host.tolist() == expected.tolist()

    def sent_late(self):
        """From page-locked memory, which stays as it is until the stream has read it."""
        pair = self.pair()
        if not pair.device.size:
            return
        source = pygpu.PagelockedAllocator(pair.device.shape, pair.device.dtype).get()
        source[...] = self.values(source.shape, source.dtype)
        stream = self.choose.choice(self.streams)
        pair.array.set(source, async_=True, stream=stream)
        pair.device[...] = source
        self.sources.append((stream, source))

    def reused(self):
        if self.sources:
            stream, source = self.sources.pop(0)
            assert pygpu.cudaStreamSynchronize(stream) == 0
            source[...] = 0

    def dropped(self):
        """What is freed while work on it is under way is not handed out before that is over."""
        pair = self.pair()
        if self.of_floats():
            self.kernel()
        if len(self.pairs) > 2:
            self.pairs = [each for each in self.pairs if each is not pair]

    def host_written(self):
        """The host side is its own: what is enqueued does not see it."""
        pair = self.pair()
        if pair.host is not None and pair.host.flags.writeable:
            pair.host[...] = self.choose.randint(0, 100)

    def chain(self):
        """One thing after the other, without a look at the elements in between."""
        ways = (
            *(self.kernel, self.kernel, self.kernel, self.sent_late, self.reused, self.dropped),
            *(self.set, self.set_val, self.write, self.fill, self.host_written),
        )
        for _ in range(self.choose.randint(2, 6)):
            self.choose.choice(ways)()

    # What moves between the sides.

    def get(self):
        pair = self.pair()
        got = pair.array.get()
        assert got.tolist() == pair.device.tolist()
        if got.size and pair.host is not None:
            assert np.shares_memory(got, pair.host)
        if got.size:
            assert np.shares_memory(got, pair.array.get())
        pair.host = got if pair.host is None else pair.host

    def got_elsewhere(self):
        pair, stream = self.pair(), self.choose.choice(self.streams)
        got = pair.array.get(async_=True, stream=stream)
        pygpu.cudaStreamSynchronize(stream)
        assert got.tolist() == pair.device.tolist()
        assert pair.array.get(pagelocked=True).tolist() == pair.device.tolist()

    def from_the_host(self):
        pair = self.pair()
        if pair.host is None:
            return
        pair.host[...] = self.values(pair.host.shape, pair.host.dtype)
        pair.array.to_device()
        assert pair.array.last_status == 0
        pair.device[...] = pair.host

    def step(self):
        ways = (
            *(self.sent, self.made, self.shared, self.view, self.view, self.copied),
            *(self.set, self.set_val, self.write, self.fill, self.low),
            *(self.get, self.got_elsewhere, self.from_the_host, self.chain, self.chain),
        )
        made = self.choose.choice(ways)()
        if made is not None:
            self.pairs = [*self.pairs[-5:], made]
        for pair in self.pairs:
            pair.check()


@pytest.mark.parametrize("first", [0])
def test_both_sides_are_numpys(first):
    pygpu.cudaSetDevice(0)
    for seed in range(first, first + scaled(150, 15)):
        walk = Walk(seed)
        for step in range(STEPS):
            try:
                walk.step()
            except BaseException as error:
                error.add_note(f"seed {seed}, step {step}")
                raise
    if driver.emulator is None:
        assert pygpu.cudaDeviceSynchronize() == 0
