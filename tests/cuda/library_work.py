"""A library that takes elements by an address, and works on them late on a stream of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import hamr
from tests.cuda import driver


def sizes() -> list[int]:
    """Counts of float32: what C brings to a device by itself, and what the core does."""
    return [1000, driver.LARGE // 4]


class Library:
    """Its arrays are the driver's memory, and its stream waits for no other by itself."""

    def __init__(self, device: int = 0) -> None:
        self.device, self.stream = device, driver.Stream(device)

    def empty(self, count: int) -> driver.Array:
        return driver.Array(np.zeros(count, "f4"), self.device)

    def take(self, given: Any) -> int:
        """An address, once the stream runs after the one that the array names."""
        if isinstance(given, int):
            return given
        interface = given.__cuda_array_interface__
        producer = interface.get("stream")
        with driver.on(self.device):
            event = driver.get("cuEventCreate", 2)
            driver.do("cuEventRecord", event, producer or driver.LEGACY)
            driver.do("cuStreamWaitEvent", self.stream.handle, event, 0)
            driver.do("cuEventDestroy_v2", event)
        return interface["data"][0]

    def add_one(self, given: Any, count: int, to: driver.Array | None = None) -> driver.Array:
        """A new array, or `to`, that has the elements plus one when the stream is done."""
        to = to or self.empty(count)
        driver.write_late(self.stream, to.ptr, count, 1, source=self.take(given))
        return to

    def write_late(self, given: Any, count: int, value: float) -> None:
        driver.write_late(self.stream, self.take(given), count, value)

    def values(self, array: driver.Array) -> list[float]:
        self.stream.synchronize()
        return np.unique(array.read()).tolist()


def plain(count: int, value: float) -> hamr.Handle:
    return hamr.Buffer(count, "f4", fill=value).get_cuda_accessible(0)


def strided(count: int, value: float) -> hamr.Handle:
    return hamr.Buffer(2 * count, "f4", fill=value)[::2].get_cuda_accessible(0)


def converted(count: int, value: float) -> hamr.Handle:
    return hamr.Buffer(count, "f8", fill=value).astype("f4").get_cuda_accessible(0)


def from_another_device(count: int, value: float) -> hamr.Handle:
    return hamr.Buffer(count, "f4", "cuda", fill=value, device=0).get_cuda_accessible(1)


def kept(count: int, value: float) -> hamr.Handle:
    return hamr.Buffer(count, "f4", fill=value).cached().get_cuda_accessible(0)


@dataclasses.dataclass(frozen=True)
class Shape:
    """A way to come by a temporary on a device."""

    take: Callable[[int, float], hamr.Handle]
    device: int = 0
    devices: int = 1

    def __str__(self) -> str:
        return self.take.__name__


SHAPES = [Shape(plain), Shape(strided), Shape(converted), Shape(kept)]
SHAPES.append(Shape(from_another_device, device=1, devices=2))
