"""A paged key-value cache: sequences leave the GPU and come back while a model's products run.

Each layer has a pool of pages for keys and one for values, and a sequence has the same pages in
all of them. So one call of hamr.copy_blocks moves a sequence, however its pages are scattered:
to page-locked memory when the GPU is full, and from there into a file of the spill folder.

`python paged_cache.py figures.json` also writes the figures. Products are PyTorch's or CuPy's on a
GPU. Without one, pools are on the host and smaller, and NumPy multiplies.
"""

import itertools
import json
import statistics
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np

import hamr

ON_GPU = bool(hamr.backends()["cuda"]["devices"])
TO_HOST, TO_FILES = "between the GPU and the host", "to and from files"


class Pages:
    """A pool of pages in one kind of memory: an array for each layer's keys and values."""

    def __init__(self, planes: int, pages: int, words: int, allocator: str, stream: object) -> None:
        shape = pages, words
        self.planes = [
            hamr.Buffer(shape, "u2", allocator, fill=0, stream=stream) for _ in range(planes)
        ]
        self.free = list(np.random.default_rng(1).permutation(pages))

    def take(self, count: int) -> np.ndarray:
        """Pages that nobody has, which lie anywhere."""
        taken, self.free = self.free[:count], self.free[count:]
        return np.array(taken)


class Cache:
    """Sequences by number. Who was not used for longest leaves its memory first."""

    def __init__(self, planes: int, words: int, fast: int, slow: int, folder: str) -> None:
        self.stream = hamr.Stream() if ON_GPU else None
        memory = ("cuda", "cuda_host") if ON_GPU else ("malloc", "malloc")
        self.fast, self.slow = (
            Pages(planes, count, words, kind, self.stream)
            for count, kind in zip((fast, slow), memory, strict=True)
        )
        self.folder, self.planes, self.words = Path(folder), planes, words
        self.on_gpu: OrderedDict[int, np.ndarray] = OrderedDict()
        self.on_host: OrderedDict[int, np.ndarray] = OrderedDict()
        self.in_files: dict[int, int] = {}
        self.moved = dict.fromkeys((TO_HOST, TO_FILES), 0)

    def add(self, sequence: int, count: int) -> np.ndarray:
        """Pages on the GPU for a new sequence; who has them there may have to leave."""
        self.make_room(count)
        self.on_gpu[sequence] = self.fast.take(count)
        return self.on_gpu[sequence]

    def use(self, sequence: int) -> np.ndarray:
        """The pages of a sequence on the GPU, which are brought back if need be."""
        if sequence in self.in_files:
            self.load(sequence)
        if sequence in self.on_host:
            count = len(self.on_host[sequence])
            source = self.on_host.pop(sequence)
            self.make_room(count)
            target = self.on_gpu[sequence] = self.fast.take(count)
            self.copy(self.fast.planes, target, self.slow.planes, source)
            self.slow.free += list(source)
        self.on_gpu.move_to_end(sequence)
        return self.on_gpu[sequence]

    def make_room(self, count: int) -> None:
        """Let sequences leave until so many pages are free on the GPU."""
        while len(self.fast.free) < count:
            sequence, pages = self.on_gpu.popitem(last=False)
            while len(self.slow.free) < len(pages):
                self.spill()
            target = self.on_host[sequence] = self.slow.take(len(pages))
            self.copy(self.slow.planes, target, self.fast.planes, pages)
            self.fast.free += list(pages)

    def copy(self, to: list, di: np.ndarray, of: list, si: np.ndarray) -> None:
        """Enqueue it: later copies and readers of the pages are ordered behind it."""
        hamr.copy_blocks(to, di, of, si, stream=self.stream, transfer="async")
        self.moved[TO_HOST] += self.planes * len(di) * self.words * 2

    def spill(self) -> None:
        """The first sequence on the host goes to a file, which is one more kind of memory."""
        sequence, pages = self.on_host.popitem(last=False)
        file = self.file(sequence, len(pages), "w+")
        hamr.copy_blocks(list(file), np.arange(len(pages)), self.slow.planes, pages)
        self.in_files[sequence] = len(pages)
        self.slow.free += list(pages)
        self.moved[TO_FILES] += file.nbytes

    def load(self, sequence: int) -> None:
        """A sequence comes back to the host."""
        count = self.in_files.pop(sequence)
        while len(self.slow.free) < count:
            self.spill()
        pages = self.on_host[sequence] = self.slow.take(count)
        file = self.file(sequence, count, "r")
        hamr.copy_blocks(self.slow.planes, pages, list(file), np.arange(count))
        self.moved[TO_FILES] += file.nbytes

    def file(self, sequence: int, count: int, mode: str) -> np.ndarray:
        """A file as an array: a plane, and a sequence's pages side by side in it."""
        shape = self.planes, count, self.words
        return np.memmap(self.folder / f"{sequence}", "u2", mode, shape=shape)

    def wait(self) -> None:
        """All that was enqueued is done."""
        if self.stream:
            self.stream.synchronize()


class Products:
    """A model's work: products of matrices, on a stream of their own or on a thread."""

    def __init__(self) -> None:
        self.library, self.kit = "NumPy", None
        for name in ("torch", "cupy") if ON_GPU else ():
            try:
                self.kit = import_module(name)
                self.kit.zeros(1, **({"device": "cuda"} if name == "torch" else {}))
                self.library = name
                break
            except Exception:  # not there, or without this GPU
                self.kit = None
        if self.library == "torch":
            self.stream = self.kit.cuda.Stream()
            make = {"device": "cuda", "dtype": self.kit.bfloat16}
            self.a, self.b = (self.kit.randn(8192, 8192, **make) for _ in range(2))
        elif self.library == "cupy":
            self.stream = self.kit.cuda.Stream(non_blocking=True)
            self.a, self.b = (self.kit.random.rand(8192, 8192).astype("f2") for _ in range(2))
        else:
            self.thread = ThreadPoolExecutor(1)
            self.a, self.b = (np.ones((256, 256), "f4") for _ in range(2))

    def start(self, count: int) -> None:
        """Begin so many of them."""
        if self.kit is None:
            self.future = self.thread.submit(self.on_thread, count)
            return
        timing = {"enable_timing": True} if self.library == "torch" else {}
        self.events = [self.kit.cuda.Event(**timing) for _ in range(2)]
        with self.kit.cuda.stream(self.stream) if self.library == "torch" else self.stream:
            self.events[0].record(self.stream)
            for _ in range(count):
                self.kit.matmul(self.a, self.b)
            self.events[1].record(self.stream)

    def on_thread(self, count: int) -> float:
        """Multiply on the host."""
        begun = time.perf_counter()
        for _ in range(count):
            np.matmul(self.a, self.b)
        return time.perf_counter() - begun

    def running(self) -> bool:
        """Whether some are still to be done."""
        if self.kit is None:
            return not self.future.done()
        return not (self.events[1].query() if self.library == "torch" else self.events[1].done)

    def seconds(self) -> float:
        """How long they took, which is waited for."""
        if self.kit is None:
            return self.future.result()
        begun, ended = self.events
        ended.synchronize()
        if self.library == "torch":
            return begun.elapsed_time(ended) / 1000
        return self.kit.cuda.get_elapsed_time(begun, ended) / 1000


def content(sequence: int, plane: int, count: int, words: int) -> np.ndarray:
    """What is in the pages of a sequence."""
    start = 7919 * sequence + 104729 * plane
    return (np.arange(count * words, dtype="u8") + start).astype("u2").reshape(count, words)


def go_round(cache: Cache, sequences: list[int], going: Callable[[], bool], moved: str) -> float:
    """Use one sequence after the other as long as it is to go on; GB/s."""
    cache.wait()
    before, begun = cache.moved[moved], time.perf_counter()
    for turn, sequence in enumerate(itertools.cycle(sequences)):
        cache.use(sequence)
        if turn % 8 == 7:  # so that not too much is enqueued
            cache.wait()
            if not going():
                break
    return (cache.moved[moved] - before) / (time.perf_counter() - begun) / 1e9


def for_seconds(seconds: float) -> Callable[[], bool]:
    """Whether less time has passed since."""
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() < end


def fill(cache: Cache, sequences: range, count: int) -> None:
    """Put new sequences into the cache."""
    for sequence in sequences:
        pages = cache.add(sequence, count)
        new = [content(sequence, p, count, cache.words) for p in range(cache.planes)]
        hamr.copy_blocks(cache.fast.planes, pages, new, np.arange(count), stream=cache.stream)


def right(cache: Cache, sequence: int) -> bool:
    """Whether a sequence has its values, wherever they were meanwhile."""
    pages = cache.use(sequence)
    found = [np.empty((len(pages), cache.words), "u2") for _ in range(cache.planes)]
    hamr.copy_blocks(found, np.arange(len(pages)), cache.fast.planes, pages, stream=cache.stream)
    wanted = (content(sequence, p, len(pages), cache.words) for p in range(cache.planes))
    return all(np.array_equal(f, w) for f, w in zip(found, wanted, strict=True))


def measured(cache: Cache, products: Products, repeats: int) -> dict[str, float]:
    """Rates, and how much slower products are meanwhile: medians of some turns."""
    near = sorted({*cache.on_gpu, *cache.on_host})  # these two memories have room for them
    turns = []
    for _ in range(4):
        products.start(repeats)
        alone = products.seconds()
        quiet = go_round(cache, near, for_seconds(0.1), TO_HOST)
        products.start(repeats)
        beside = go_round(cache, near, products.running, TO_HOST)
        turns.append((quiet, beside, (products.seconds() / alone - 1) * 100))
    rates = [statistics.median(column) for column in zip(*turns[1:], strict=True)]
    everything = sorted({*near, *cache.in_files})
    rates.append(go_round(cache, everything, for_seconds(0.3), TO_FILES))
    names = "GB/s alone", "GB/s beside products", "products slower by %", "GB/s of files"
    return dict(zip(names, rates, strict=True))


def main() -> None:
    """Fill the cache with more than fits, move sequences beside products, and check the values."""
    products = Products()
    large = products.library != "NumPy"
    # 8 layers' keys and values; a page is 16 tokens of 8 heads, 128 elements each: 32 KiB.
    planes, words, count = (16, 16 * 8 * 128, 64) if large else (4, 512, 8)
    fast, slow, sequences = (8, 16, 32) if large else (4, 6, 14)
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(planes, words, fast * count, slow * count, folder)
        fill(cache, range(sequences), count)
        cache.spill()  # room for one, through which the others change places
        where = {"GPU": cache.on_gpu, "host": cache.on_host, "files": cache.in_files}
        print(f"{sequences} sequences:", *(f"{name} {len(held)}" for name, held in where.items()))
        figures = measured(cache, products, 100)
        print(f"{planes * count} pages of {words * 2} bytes a sequence, products by", end=" ")
        print(products.library)
        for name, value in figures.items():
            print(f"{name}: {value:.1f}")
        print("all values are right:", all(right(cache, s) for s in range(sequences)))
    if len(sys.argv) > 1:
        device = hamr.device_properties(0)["name"] if ON_GPU else "none"
        facts = {"gpu": device, "products by": products.library, "page": words * 2}
        Path(sys.argv[1]).write_text(json.dumps({**facts, **figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
