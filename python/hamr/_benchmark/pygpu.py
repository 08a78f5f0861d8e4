"""What hamr.pygpu costs: kernels launched from Python, arrays, and copies between their sides."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any

from .driver import Driver
from .groups import MIB, Case, Group, Libraries, size_text

#: y += a * x, for any device from compute capability 5.2 on.
_PTX = """
.version 6.0
.target sm_52
.address_size 64

.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)
{
    .reg .pred %p<2>;
    .reg .f32 %f<5>;
    .reg .b32 %r<6>;
    .reg .b64 %d<7>;

    ld.param.u32 %r1, [n];
    ld.param.f32 %f1, [a];
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [y];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    mul.wide.u32 %d3, %r5, 4;
    add.u64 %d4, %d1, %d3;
    add.u64 %d5, %d2, %d3;
    ld.global.f32 %f2, [%d4];
    ld.global.f32 %f3, [%d5];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%d5], %f4;
DONE:
    ret;
}
"""
_COUNT = 256
_LARGE = 64 * MIB


def items(lib: Libraries, driver: Driver) -> Iterator[Group]:
    """Launches beside CuPy's, arrays beside bare calls of the driver, and copies beside hamr's."""
    yield _launches(lib, driver)
    yield _arrays(driver)
    yield from _copies(lib)


def _launches(lib: Libraries, driver: Driver) -> Group:
    import numpy as np

    import hamr
    from hamr import pygpu

    saxpy = pygpu.Module(_PTX).function("saxpy")
    n, a = np.uint32(_COUNT), np.float32(2)
    x, y = pygpu.zeros(_COUNT, "float32"), pygpu.zeros(_COUNT, "float32")
    stream = hamr.Stream(device=0)
    own = [hamr.Buffer(_COUNT, "f4", "cuda", fill=0, stream=stream) for _ in range(2)]
    one = {"grid": 1, "block": _COUNT}
    saxpy(n, a, x, y, **one)
    cases = [
        Case("function(n, a, x, y)", lambda: saxpy(n, a, x, y, **one), target=1.5),
        Case("function(256, 2.0, x, y)", lambda: saxpy(_COUNT, 2.0, x, y, **one)),
        Case(
            "the same on a stream of the buffers'",
            lambda: saxpy(n, a, *own, stream=stream, **one),
        ),
        Case("the same on another stream", lambda: saxpy(n, a, x, y, stream=stream, **one)),
    ]
    if lib.cupy:
        cp = lib.cupy
        kernel = cp.RawModule(path=_written()).get_function("saxpy")
        p, q = cp.zeros(_COUNT, "f4"), cp.zeros(_COUNT, "f4")
        arguments = n, a, p, q
        cases[:0] = [
            Case("CuPy: kernel(grid, block, args)", lambda: kernel((1,), (_COUNT,), arguments))
        ]
        cases.append(Case("function(n, a, cupy_x, cupy_y)", lambda: saxpy(n, a, p, q, **one)))
    else:
        cases[0].target = None
    cases[0].floor = True
    return Group("launching a kernel with 4 arguments", cases)


def _written() -> str:
    """A file with the PTX, which CuPy loads from one."""
    import atexit
    import tempfile

    descriptor, path = tempfile.mkstemp(suffix=".ptx")
    with os.fdopen(descriptor, "w") as file:
        file.write(_PTX)
    atexit.register(os.unlink, path)
    return path


def _arrays(driver: Driver) -> Group:
    from hamr import pygpu

    shape, nbytes = (16, 16), 16 * 16 * ctypes.sizeof(ctypes.c_double)
    return Group(
        "a small array, made and dropped",
        [
            Case("driver: cuMemAlloc, cuMemFree", driver.allocate_and_free(nbytes), floor=True),
            Case(
                "driver: cuMemAllocAsync, cuMemFreeAsync",
                driver.allocate_and_free_in_order(nbytes),
                floor=True,
            ),
            Case("GPUArray((16, 16))", lambda: pygpu.GPUArray(shape), target=1.3),
            Case("empty((16, 16))", lambda: pygpu.empty(shape)),
        ],
    )


def _copies(lib: Libraries) -> Iterator[Group]:
    """Of an array whose host side is the memory that the buffer's elements come from and go to."""
    import numpy as np

    import hamr
    from hamr import pygpu

    for nbytes in sorted({1024, min(_LARGE, lib.settings.largest)}):
        count = nbytes // 4
        sides = {
            "not page-locked": np.empty(count, "f4"),
            "page-locked": pygpu.PagelockedAllocator(count, "float32").get(),
        }
        for kind, host in sides.items():
            host[...] = 1
            array, buffer = pygpu.to_gpu(host), hamr.Buffer(count, "f4", "cuda")
            buffer[...] = host
            what = f"host side of {size_text(nbytes)}, {kind}"
            yield Group(f"{what}, to the device", list(_uploads(buffer, array, host)))
            yield Group(f"{what}, to new memory of the device", list(_made(host)))
            yield Group(f"{what}, from the device", list(_downloads(buffer, array, host)))


def _uploads(buffer: Any, array: Any, host: Any) -> Iterator[Case]:
    def assign() -> None:
        buffer[...] = host

    yield Case("buf[...] = x", assign, floor=True)
    yield Case("array.set(x)", lambda: array.set(host), target=1.05)
    yield Case("array.to_device()", array.to_device)


def _made(host: Any) -> Iterator[Case]:
    import hamr
    from hamr import pygpu

    def make() -> None:
        buffer = hamr.Buffer(host.shape, host.dtype, "cuda")
        buffer[...] = host

    yield Case("buf = Buffer(x.shape, x.dtype); buf[...] = x", make, floor=True)
    yield Case("to_gpu(x)", lambda: pygpu.to_gpu(host), target=1.05)


def _downloads(buffer: Any, array: Any, host: Any) -> Iterator[Case]:
    yield Case("buf.get(x)", lambda: buffer.get(host), floor=True)
    yield Case("array.get()", array.get, target=1.05)
    yield Case("array.to_host()", array.to_host)
