"""Many small arrays at once for ``hamr bench --cuda``, in GB/s."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from .driver import Driver
from .groups import Case, Group, Libraries

FIELDS, KIB = 500, 64


def many(lib: Libraries, driver: Driver) -> Iterator[Group]:
    """The fields of a simulation's step, to the device, back, and within it."""
    import numpy as np

    import hamr

    n = KIB * 1024 // 4
    total = FIELDS * n * 4
    host = [np.full(n, i, "f4") for i in range(FIELDS)]
    out = [np.zeros(n, "f4") for _ in range(FIELDS)]
    there = [hamr.Buffer(n, "float32", "cuda", fill=1) for _ in range(FIELDS)]
    other = [hamr.Buffer(n, "float32", "cuda", fill=1) for _ in range(FIELDS)]
    driver.synchronize()
    waiting = driver.waiting

    def each(name: str, to: list[int], given: list[int]) -> Callable[[], Any]:
        """A loop that has no more to do than call the driver."""
        function = getattr(driver.library, name)
        device = [ctypes.c_uint64, ctypes.c_void_p]
        kinds = {"cuMemcpyHtoD_v2": device, "cuMemcpyDtoH_v2": device[::-1]}
        kind = kinds.get(name, [ctypes.c_uint64, ctypes.c_uint64])
        size, stream = ctypes.c_size_t(n * 4), ctypes.c_void_p(1)
        rest = (size,) if name in kinds else (size, stream)
        calls = [(kind[0](t), kind[1](g), *rest) for t, g in zip(to, given, strict=True)]

        def run() -> None:
            for call in calls:
                function(*call)

        return waiting(run)

    def loop(to: list[Any], given: list[Any]) -> Callable[[], Any]:
        def run() -> None:
            for d, s in zip(to, given, strict=True):
                d[...] = s

        return waiting(run)

    def get_each() -> None:
        for b, a in zip(there, out, strict=True):
            b.get(a)

    pointers = [b.ptr for b in there], [b.ptr for b in other]
    addresses = [a.ctypes.data for a in host], [a.ctypes.data for a in out]
    up = [
        Case("driver: a loop", each("cuMemcpyHtoD_v2", pointers[0], addresses[0]), floor=True),
        Case("hamr.copy_many", waiting(lambda: hamr.copy_many(there, host)), target=2.0),
        Case("hamr: a loop", loop(there, host)),
    ]
    down = [
        Case("driver: a loop", each("cuMemcpyDtoH_v2", addresses[1], pointers[0]), floor=True),
        Case("hamr.copy_many", waiting(lambda: hamr.copy_many(out, there)), target=2.0),
        Case("hamr: a loop", waiting(get_each)),
    ]
    within = [
        Case("driver: a loop", each("cuMemcpyDtoDAsync_v2", *pointers[::-1]), floor=True),
        Case("hamr.copy_many", waiting(lambda: hamr.copy_many(other, there)), target=2.0),
        Case("hamr: a loop", loop(other, there)),
    ]
    cp, torch = lib.cupy, lib.torch
    if cp:
        xs, ys = ([cp.ones(n, "f4") for _ in range(FIELDS)] for _ in range(2))

        def set_each() -> None:
            for x, a in zip(xs, host, strict=True):
                x.set(a)

        def get_each_of_cupy() -> None:
            for x, a in zip(xs, out, strict=True):
                x.get(out=a)

        up.append(Case("CuPy: a loop of x.set", waiting(set_each)))
        up.append(Case("hamr.copy_many to CuPy's", waiting(lambda: hamr.copy_many(xs, host))))
        down.append(Case("CuPy: a loop of x.get", waiting(get_each_of_cupy)))
        down.append(Case("hamr.copy_many from CuPy's", waiting(lambda: hamr.copy_many(out, xs))))
        within.append(Case("CuPy: a loop of y[...] = x", loop(ys, xs)))
    if torch:
        ts, us = ([torch.ones(n, device="cuda") for _ in range(FIELDS)] for _ in range(2))
        hs, os = ([torch.from_numpy(a) for a in arrays] for arrays in (host, out))

        def copy_each(to: Any, given: Any) -> Callable[[], Any]:
            def run() -> None:
                for t, g in zip(to, given, strict=True):
                    t.copy_(g)

            return waiting(run)

        up.append(Case("torch: a loop of t.copy_", copy_each(ts, hs)))
        down.append(Case("torch: a loop of h.copy_", copy_each(os, ts)))
        within.append(Case("torch: a loop of u.copy_", copy_each(us, ts)))
        within.append(Case("torch._foreach_copy_", waiting(lambda: torch._foreach_copy_(us, ts))))
    what = f"{FIELDS} arrays of {KIB} KiB"
    yield Group(f"{what}, host to device", up, total, 9)
    yield Group(f"{what}, device to host", down, total, 9)
    yield Group(f"{what}, within the device", within, total, 9)
