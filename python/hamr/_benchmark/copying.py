"""The paths that bytes take between the host and a device, by hamr, its peers and the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .curves import Pattern, Point, Way
from .driver import Driver
from .groups import Libraries
from .peers import Peer, peers_of

#: The paths, as records and plots name them.
TO_NEW, TO_ARRAY = "CUDA to new host memory", "CUDA to an existing NumPy array"
TO_CUDA, INTO_CUDA = "NumPy to new CUDA memory", "NumPy to an existing CUDA buffer"
TO_PINNED, FROM_PINNED = "CUDA to page-locked memory", "page-locked memory to CUDA"
ON_DEVICE = "CUDA to CUDA, one device"


class Bed:
    """The memory that all sizes of a part use: the pattern, and where the driver copies."""

    def __init__(self, lib: Libraries, driver: Driver) -> None:
        import numpy as np

        import hamr

        self.lib, self.driver, self.stream = lib, driver, driver.stream()
        self.waiting = driver.waiting
        largest = max(lib.settings.sizes())
        self.pattern = Pattern(largest)
        self.out = np.zeros(largest, "u1")
        self.out.fill(1)  # the pages are there before the first copy
        self.pinned = hamr.Buffer(largest, "u1", "cuda_host", fill=1)
        self.device = hamr.Buffer(largest, "u1", "cuda", fill=1)
        self.pinned.synchronize()
        self.device.synchronize()
        self.locked = np.asarray(self.pinned)

    def point(self, path: str, direction: str, nbytes: int, ways: list[Way]) -> Point:
        """A size of a path."""
        return Point(path, direction, self.pattern, nbytes, ways)

    def to_device(self, address: int) -> Callable[[int, int], None]:
        """How the pattern comes to a device's memory."""
        pattern, upload = self.pattern, self.driver.upload
        return lambda i, j: upload(address + i, pattern.address + i, j - i)

    def to_locked(self, start: int, stop: int) -> None:
        """Bring the pattern to the page-locked memory."""
        self.locked[start:stop] = self.pattern.array[start:stop]

    def of_device(self, address_of: Callable[[Any], int]) -> Callable[[Any, int, int], Any]:
        """How bytes are got from a device's memory, whose address the result tells."""
        import numpy as np

        def take(result: Any, start: int, stop: int) -> Any:
            found = np.empty(stop - start, "u1")
            self.driver.download(found.ctypes.data, address_of(result) + start, stop - start)
            return found

        return take

    def driven_down(self, nbytes: int) -> list[Way]:
        """The driver's copies to the host: of ordinary memory, and the limit."""
        return [self._driven_down(nbytes, pinned) for pinned in (False, True)]

    def driven_up(self, nbytes: int) -> list[Way]:
        """The driver's copies to the device, likewise."""
        return [self._driven_up(nbytes, pinned) for pinned in (False, True)]

    def _driven_down(self, nbytes: int, pinned: bool) -> Way:
        device, stream, driver = self.device.ptr, self.stream, self.driver
        give = self.to_device(device)
        if not pinned:
            run = driver.reader(self.out.ctypes.data, device, nbytes)
            name, role, target = "cuMemcpyDtoH", "driver", self.out
        else:
            arguments = self.pinned.ptr, device, nbytes, stream
            run = self.waiting(lambda: driver.call("cuMemcpyDtoHAsync_v2", *arguments))
            name, role, target = "cuMemcpyDtoHAsync, page-locked", "limit", self.locked
        return Way("driver", name, run, give=give, take=lambda r, i, j: target[i:j], role=role)

    def _driven_up(self, nbytes: int, pinned: bool) -> Way:
        device, stream, driver = self.device.ptr, self.stream, self.driver
        take = self.of_device(lambda result: device)
        if not pinned:
            run = self.waiting(driver.writer(device, self.pattern.address, nbytes))
            return Way("driver", "cuMemcpyHtoD", run, take=take, role="driver")
        arguments = device, self.pinned.ptr, nbytes, stream
        run = self.waiting(lambda: driver.call("cuMemcpyHtoDAsync_v2", *arguments))
        name = "cuMemcpyHtoDAsync, page-locked"
        return Way("driver", name, run, give=self.to_locked, take=take, role="limit")


def to_host(lib: Libraries, driver: Driver) -> Iterator[Point]:
    """From a device to ordinary memory: new, and an array that is there."""
    import hamr

    bed = Bed(lib, driver)
    for nbytes in lib.settings.sizes():
        buf = hamr.Buffer(nbytes, "u1", "cuda", fill=1)
        buf.synchronize()
        peers, out, give = peers_of(lib, nbytes), bed.out[:nbytes], bed.to_device(buf.ptr)
        take = part_of(out)
        run = buf.get_host_accessible
        ways = [
            Way("hamr", "buf.get_host_accessible()", run, give=give, take=part, role="hamr"),
            *(Way(p.library, *p.new_down, give=bed.to_device(p.address), take=part) for p in peers),
        ]
        yield bed.point(TO_NEW, "down", nbytes, ways + bed.driven_down(nbytes))
        get = partial(buf.get, out)
        ways = [
            Way("hamr", "buf.get(out)", get, give=give, take=take, role="hamr"),
            *(_down(p, out, take, bed) for p in peers),
        ]
        yield bed.point(TO_ARRAY, "down", nbytes, ways + bed.driven_down(nbytes))
        del buf, peers, ways, run, get
        lib.trim()


def to_cuda(lib: Libraries, driver: Driver) -> Iterator[Point]:
    """From a NumPy array to a device: new memory, and a buffer that is there."""
    import hamr

    bed = Bed(lib, driver)
    for nbytes in lib.settings.sizes():
        array = bed.pattern.array[:nbytes]
        host, buf = hamr.buffer(array), hamr.Buffer(nbytes, "u1", "cuda", fill=1)
        buf.synchronize()
        peers = peers_of(lib, nbytes)
        run, take = bed.waiting(host.get_cuda_accessible), bed.of_device(lambda h: h.ptr)
        ways = [
            Way("hamr", "host_buf.get_cuda_accessible()", run, take=take, role="hamr"),
            *(_new_up(p, array, bed) for p in peers),
        ]
        yield bed.point(TO_CUDA, "up", nbytes, ways + bed.driven_up(nbytes))
        run = bed.waiting(partial(buf.__setitem__, ..., array))
        take = bed.of_device(always(buf.ptr))
        ways = [Way("hamr", "buf[...] = array", run, take=take, role="hamr")]
        ways += [_up(p, array, bed) for p in peers]
        yield bed.point(INTO_CUDA, "up", nbytes, ways + bed.driven_up(nbytes))
        del buf, peers, ways, run, take, host
        lib.trim()


def pinned(lib: Libraries, driver: Driver) -> Iterator[Point]:
    """Between a device and page-locked memory, both ways."""
    import hamr

    bed = Bed(lib, driver)
    for nbytes in lib.settings.sizes():
        locked, own = bed.locked[:nbytes], bed.pinned[:nbytes]
        buf = hamr.Buffer(nbytes, "u1", "cuda", fill=1)
        buf.synchronize()
        peers, take = peers_of(lib, nbytes), part_of(locked)
        get, give = bed.waiting(partial(buf.get, locked)), bed.to_device(buf.ptr)
        ways = [
            Way("hamr", "buf.get(locked)", get, give=give, take=take, role="hamr"),
            *(_down(p, locked, take, bed, locked=True) for p in peers),
        ]
        yield bed.point(TO_PINNED, "down", nbytes, [*ways, bed.driven_down(nbytes)[1]])
        run, take = bed.waiting(partial(buf.__setitem__, ..., own)), bed.of_device(always(buf.ptr))
        ways = [
            Way("hamr", "buf[...] = locked", run, give=bed.to_locked, take=take, role="hamr"),
            *(_up(p, locked, bed, locked=True) for p in peers),
        ]
        yield bed.point(FROM_PINNED, "up", nbytes, [*ways, bed.driven_up(nbytes)[1]])
        del buf, peers, ways, run, take, get, own
        lib.trim()


def on_device(lib: Libraries, driver: Driver) -> Iterator[Point]:
    """From one part of a device's memory to another; the driver's copy is the limit."""
    import hamr

    bed = Bed(lib, driver)
    for nbytes in lib.settings.sizes():
        buf, other = (hamr.Buffer(nbytes, "u1", "cuda", fill=1) for _ in range(2))
        buf.synchronize()
        other.synchronize()
        give, source = bed.to_device(buf.ptr), bed.device.ptr
        into = bed.waiting(partial(other.__setitem__, ..., buf))
        there, new = bed.of_device(always(other.ptr)), bed.of_device(lambda b: b.ptr)
        copy = bed.waiting(buf.copy)
        arguments = other.ptr, source, nbytes, bed.stream
        raw = bed.waiting(partial(driver.call, "cuMemcpyDtoDAsync_v2", *arguments))
        give_raw = bed.to_device(source)
        ways = [
            Way("hamr", "other[...] = buf", into, give=give, take=there, role="hamr"),
            Way("hamr", "buf.copy()", copy, give=give, take=new, role="hamr"),
            Way("driver", "cuMemcpyDtoDAsync", raw, give=give_raw, take=there, role="limit"),
        ]
        pairs = zip(peers_of(lib, nbytes), peers_of(lib, nbytes), strict=True)
        ways += [_across(p, target, bed) for p, target in pairs]
        yield bed.point(ON_DEVICE, "across", nbytes, ways)
        del buf, other, ways, into, copy, raw, pairs
        lib.trim()


def _down(p: Peer, out: Any, take: Any, bed: Bed, *, locked: bool = False) -> Way:
    name, bind = p.down
    run, give = bind(out, locked), bed.to_device(p.address)
    return Way(p.library, name, bed.waiting(run) if locked else run, give=give, take=take)


def _new_up(p: Peer, array: Any, bed: Bed) -> Way:
    name, copy = p.new_up
    run = bed.waiting(partial(copy, array))
    return Way(p.library, name, run, take=bed.of_device(address_of))


def _up(p: Peer, array: Any, bed: Bed, *, locked: bool = False) -> Way:
    name, bind = p.up
    run, take = bed.waiting(bind(array, locked)), bed.of_device(always(p.address))
    return Way(p.library, name, run, give=bed.to_locked if locked else None, take=take)


def _across(p: Peer, target: Peer, bed: Bed) -> Way:
    name, bind = p.across
    run, take = bed.waiting(bind(target.array)), bed.of_device(always(target.address))
    return Way(p.library, name, run, give=bed.to_device(p.address), take=take)


def part(result: Any, start: int, stop: int) -> Any:
    """Bytes of a result that NumPy can read."""
    import numpy as np

    return np.asarray(result)[start:stop]


def part_of(array: Any) -> Callable[[Any, int, int], Any]:
    """Bytes of an array, whatever the result."""
    return lambda result, start, stop: array[start:stop]


def always(address: int) -> Callable[[Any], int]:
    """An address, whatever the result."""
    return lambda result: address


def address_of(array: Any) -> int:
    """Where a device array lies."""
    return int(array.__cuda_array_interface__["data"][0])
