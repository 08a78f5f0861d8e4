"""Large moves between GPUs and computations on one, in GB/s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .driver import Driver
from .groups import MIB, Case, Group, Libraries, size_text

COMPUTE_MIB = 256


def compute(lib: Libraries, driver: Driver) -> Iterator[Group]:
    """Conversion, transposition and filling on the device; bytes read and written count."""
    import hamr

    nbytes = min(COMPUTE_MIB * MIB, lib.settings.largest)
    size = size_text(nbytes)
    n, side = nbytes // 4, int((nbytes // 4) ** 0.5)
    a = hamr.Buffer(n, "float32", "cuda_async", fill=1)
    b = hamr.Buffer(n, "float32", "cuda_async", fill=1)
    wide = hamr.Buffer(n, "float64", "cuda_async", fill=1)
    turned = hamr.Buffer.from_pointer(
        a.ptr, (side, side), "float32", "cuda_async", strides=(4, 4 * side), owner=a
    )
    square = hamr.Buffer((side, side), "float32", "cuda_async", fill=0)
    source, target = (hamr.Buffer(2 * n, "float32", "cuda", fill=0) for _ in range(2))
    driver.synchronize()
    stream = driver.stream()

    def copy(size: int) -> Case:
        """The driver's copy as the floor; it reads and writes as much as the operation."""
        arguments = target.ptr, source.ptr, size, stream
        return Case(
            "driver copy, as many bytes",
            lambda: driver.call("cuMemcpyDtoDAsync_v2", *arguments),
            floor=True,
        )

    casts = [
        copy(3 * nbytes // 2),
        Case("hamr: wide[...] = buf", lambda: wide.__setitem__(..., a)),
        Case("hamr: buf.astype('f8')", lambda: a.astype("f8")),
    ]
    turns = [
        copy(nbytes),
        Case("hamr: square[...] = transposed", lambda: square.__setitem__(..., turned)),
        Case("hamr: transposed.copy()", turned.copy),
    ]
    fills = [
        Case(
            "driver: cuMemsetD32",
            lambda: driver.call("cuMemsetD32Async", target.ptr, 0x40200000, n, stream),
            floor=True,
        ),
        Case("hamr: buf.fill(2.5)", lambda: b.fill(2.5)),
        Case("hamr: fill of as much float64", lambda: wide[: n // 2].fill(2.5)),
    ]
    cp, torch = lib.cupy, lib.torch
    if cp:
        x, into = cp.ones((side, side), "f4"), cp.ones((side, side), "f4")
        wide_x = cp.ones((side, side), "f8")
        casts.append(Case("CuPy: wide[...] = x", lambda: wide_x.__setitem__(..., x)))
        casts.append(Case("CuPy: x.astype('f8')", lambda: x.astype("f8")))
        turns.append(Case("CuPy: into[...] = x.T", lambda: into.__setitem__(..., x.T)))
        turns.append(Case("CuPy: cp.ascontiguousarray(x.T)", lambda: cp.ascontiguousarray(x.T)))
        fills.append(Case("CuPy: x.fill(2.5)", lambda: into.fill(2.5)))
    if torch:
        t = torch.ones(side, side, device="cuda")
        t_into, t_wide = torch.empty_like(t), torch.empty_like(t, dtype=torch.float64)
        casts.append(Case("torch: wide.copy_(t)", lambda: t_wide.copy_(t)))
        casts.append(Case("torch: t.double()", lambda: t.double()))
        turns.append(Case("torch: into.copy_(t.T)", lambda: t_into.copy_(t.T)))
        turns.append(Case("torch: t.T.contiguous()", lambda: t.T.contiguous()))
        fills.append(Case("torch: t.fill_(2.5)", lambda: t_into.fill_(2.5)))
    yield Group(f"float32 to float64, {size}", casts, 3 * nbytes, 7)
    yield Group(f"transposed copy of float32, {size}", turns, 2 * nbytes, 7)
    yield Group(f"fill {size}", fills, nbytes, 7)


def peers(lib: Libraries, driver: Driver) -> Iterator[Group]:
    """From one GPU to another, where there are two."""
    if driver.count < 2:
        return
    import hamr

    nbytes = min(512 * MIB, lib.settings.largest)
    first = hamr.Buffer(nbytes, "uint8", "cuda", fill=1, device=0)
    second = hamr.Buffer(nbytes, "uint8", "cuda", fill=0, device=1)
    first.synchronize()
    second.synchronize()
    reached = hamr.peer_access(0, 1)
    stream = driver.stream()
    source, target = first.ptr, second.ptr

    def waiting(f: Callable[[], Any]) -> Callable[[], Any]:
        """Both devices, since libraries differ in whose stream they use."""

        def run() -> None:
            f()
            driver.synchronize_all()

        return run

    def raw() -> None:
        there, here = driver.contexts[1], driver.contexts[0]
        driver.call("cuMemcpyPeerAsync", target, there, source, here, nbytes, stream)

    cases = [
        Case("driver: cuMemcpyPeer", waiting(raw), floor=True),
        Case(
            "hamr: other[...] = buf", waiting(lambda: second.__setitem__(..., first)), target=0.95
        ),
        Case("hamr: buf.copy(device=1)", waiting(lambda: first.copy("cuda_async", device=1))),
        Case("hamr: buf.get_cuda_accessible(1)", waiting(lambda: first.get_cuda_accessible(1))),
    ]
    cp, torch = lib.cupy, lib.torch
    if torch:
        t = torch.ones(nbytes, dtype=torch.uint8, device="cuda:0")
        u = torch.ones(nbytes, dtype=torch.uint8, device="cuda:1")
        cases.append(Case("torch: u.copy_(t)", waiting(lambda: u.copy_(t))))
        cases.append(Case("torch: t.to('cuda:1')", waiting(lambda: t.to("cuda:1"))))
    if cp:
        with cp.cuda.Device(0):
            x = cp.ones(nbytes, "u1")

        def to_second() -> None:
            with cp.cuda.Device(1):
                cp.asarray(x).copy()

        cases.append(Case("CuPy: cp.asarray(x).copy()", waiting(to_second)))
    access = "with" if reached else "without"
    yield Group(f"device to device, {size_text(nbytes)}, {access} peer access", cases, nbytes, 7)
