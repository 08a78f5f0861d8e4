"""Libraries for library_walk.py: streams of their own that end, and kernels that write late."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.cuda import driver

#: Elements of the largest array that a library makes.
LARGEST = 80_000
_ROOM = 24 << 20  # bytes of each device that the results of a walk lie in


class LibraryStream(driver.Stream):
    """A stream that its library may end although others know its handle."""

    def __init__(self, device: int, owned: bool) -> None:
        super().__init__(device)
        self.ended = False
        self.owner = StreamOwner(self) if owned else None

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            super().__del__()

    def __del__(self) -> None:
        self.end()

    def follow(self, other: int, device: int) -> None:
        """Run what comes later after what a stream of any device holds now."""
        order(self.device, self.handle, device, other)


class StreamOwner:
    """The object that others are given of a stream, which ends with it."""

    def __init__(self, stream: LibraryStream) -> None:
        self._stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._stream.handle

    def __del__(self) -> None:
        self._stream.end()


def order(device: int, later: int, of: int, earlier: int) -> None:
    """Make a stream of one device run after what a stream of another one holds now."""
    with driver.on(of):
        event = driver.get("cuEventCreate", 2)
        driver.do("cuEventRecord", event, earlier)
    with driver.on(device):
        driver.do("cuStreamWaitEvent", later, event, 0)
        driver.do("cuEventDestroy_v2", event)


class Room:
    """A device's memory for the results of a walk: one piece, as freeing waits for the device."""

    def __init__(self, device: int) -> None:
        self.base, self.used = driver.allocate(_ROOM, device), 0

    def take(self, count: int) -> int:
        """The address of some float32 values; 0 where there is no more room."""
        size = -(-4 * count // 256) * 256
        if self.used + size > _ROOM:
            return 0
        self.used += size
        return self.base + self.used - size


class Result:
    """What a library made of elements that hamr gave it, and what that must be."""

    def __init__(
        self, address: int, expected: np.ndarray, stream: LibraryStream, told: str
    ) -> None:
        self.address, self.expected, self.stream, self.told = address, expected, stream, told

    def check(self) -> None:
        """Wait for the stream alone, unless it has ended."""
        found = np.empty(self.expected.shape, "f4")
        with driver.on(self.stream.device):
            driver.do("cuCtxSynchronize") if self.stream.ended else self.stream.synchronize()
            own = driver.get("cuStreamCreate", 1)
            driver.do("cuMemcpyDtoHAsync_v2", found.ctypes.data, self.address, found.nbytes, own)
            driver.do("cuStreamSynchronize", own)
            driver.do("cuStreamDestroy_v2", own)
        wrong = np.flatnonzero(found != self.expected)
        if wrong.size:
            at = int(wrong[0])
            raise AssertionError(
                f"{self.told} found {found[at]} for {self.expected[at]} at {at}, "
                f"{wrong.size} of {found.size} elements are wrong"
            )


class Library:
    """Works on a stream of its own on each device."""

    def __init__(self, name: str, rooms: list[Room]) -> None:
        self.name, self.rooms = name, rooms
        self.streams: dict[int, LibraryStream] = {}
        self.taken: list[Any] = []
        self.results: list[Result] = []
        self.made = 0

    def stream(self, device: int) -> LibraryStream:
        if device not in self.streams:
            self.made += 1
            self.streams[device] = LibraryStream(device, owned=self.made % 2 == 0)
        return self.streams[device]

    def read(self, device: int, address: int, expected: np.ndarray, told: str) -> None:
        """Later, take the elements times two, plus one."""
        target, stream = self.rooms[device].take(expected.size), self.stream(device)
        if target:
            driver.write_late(stream, target, expected.size, 1, address, 2)
            self.results.append(Result(target, 2 * expected + 1, stream, told))

    def copy(self, device: int, address: int, expected: np.ndarray, told: str) -> None:
        """Later, take the elements of page-locked memory."""
        target, stream = self.rooms[device].take(expected.size), self.stream(device)
        if target:
            with driver.on(device):
                arguments = target, address, 4 * expected.size, stream.handle
                driver.do("cuMemcpyHtoDAsync_v2", *arguments)
            self.results.append(Result(target, expected.copy(), stream, told))

    def write(self, device: int, address: int, count: int, value: float) -> None:
        """Later, write to the elements."""
        driver.write_late(self.stream(device), address, count, value)

    def fill(self, device: int, address: int, count: int, value: float) -> bool:
        """Later, write to page-locked memory, by a copy."""
        source = self.rooms[device].take(count)
        if source:
            driver.write_late(self.stream(device), source, count, value)
            with driver.on(device):
                handle = self.stream(device).handle
                driver.do("cuMemcpyDtoHAsync_v2", address, source, 4 * count, handle)
        return bool(source)

    def array(self, device: int, count: int, value: float) -> Any:
        """An array that is still being written."""
        address, stream = self.rooms[device].take(count), self.stream(device)
        if not address:
            return None
        self.write(device, address, count, value)
        return Shown(address, count, stream)

    def check(self, device: int | None = None) -> None:
        """What was made, or what of it was made on a device."""
        chosen = [r for r in self.results if device in (None, r.stream.device)]
        self.results = [r for r in self.results if r not in chosen]
        for result in chosen:
            result.check()


class Shown:
    """What others see of a library's array: the room keeps the memory, and nothing the stream."""

    def __init__(self, address: int, count: int, stream: LibraryStream) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "<f4",
            "data": (address, False),
            "version": 3,
            "strides": None,
            "stream": stream.handle,
        }
