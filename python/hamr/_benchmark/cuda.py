"""What small operations on a GPU cost, beside other libraries and the driver.

Everything is timed in one process, one operation after the other in each round. A
ratio is taken to the group's floor within the round; values and ratios are medians
over the rounds. A library that is not there is recorded as absent.
"""

from __future__ import annotations

from collections.abc import Iterator

from .allocating import allocation
from .dlpack import cuda_groups as dlpack
from .driver import Driver
from .groups import Case, Group, Libraries

__all__ = ["allocation", "dlpack", "hand_over", "small_moves"]


def hand_over(lib: Libraries, driver: Driver) -> Iterator[Group]:
    """Sharing without a copy, both ways."""
    import hamr

    buf = hamr.Buffer(256, "float32", "cuda", fill=1)
    buf.synchronize()
    cases = [
        Case("buf.get_cuda_accessible(), in place", buf.get_cuda_accessible, limit=0.15),
        Case("buf.__cuda_array_interface__", lambda: buf.__cuda_array_interface__),
    ]
    cp, torch, numba = lib.cupy, lib.torch, lib.numba
    to_others, from_others = [], []
    if cp:
        x = cp.ones(256, "f4")
        description = {**x.__cuda_array_interface__, "stream": None}

        class Minimal:
            __cuda_array_interface__ = description

        minimal = Minimal()
        to_others += [
            Case("cp.asarray(minimal object)", lambda: cp.asarray(minimal), floor=True),
            Case(
                "cp.asarray(buf.get_cuda_accessible())",
                lambda: cp.asarray(buf.get_cuda_accessible()),
                target=1.15,
            ),
            Case("cp.asarray(buf)", lambda: cp.asarray(buf)),
        ]
        from_others += [
            Case("cupy_array.__cuda_array_interface__", lambda: x.__cuda_array_interface__),
            Case("hamr.buffer(cupy_array)", lambda: hamr.buffer(x), limit=1.4),
            Case("hamr.buffer(minimal object)", lambda: hamr.buffer(minimal)),
        ]
        from_others[0].floor = True
        if torch:
            from_others.append(
                Case("torch.as_tensor(cupy_array)", lambda: torch.as_tensor(x, device="cuda"))
            )
        if numba:
            from_others.append(
                Case("numba.as_cuda_array(cupy_array)", lambda: numba.as_cuda_array(x))
            )
    if torch:
        t = torch.ones(256, device="cuda")
        to_others.append(Case("torch.as_tensor(buf)", lambda: torch.as_tensor(buf, device="cuda")))
        from_others.append(Case("hamr.buffer(torch_tensor)", lambda: hamr.buffer(t)))
    if numba:
        to_others.append(Case("numba.as_cuda_array(buf)", lambda: numba.as_cuda_array(buf)))
    yield Group("reaching a buffer", cases)
    yield Group("hamr's memory in other libraries", to_others)
    yield Group("other libraries' memory in hamr", from_others)


def small_moves(lib: Libraries, driver: Driver) -> Iterator[Group]:
    """1 KiB from the GPU to NumPy, and back."""
    import numpy as np

    import hamr

    values, out = np.ones(256, "f4"), np.empty(256, "f4")
    dev = hamr.Buffer(256, "float32", "cuda", data=values)
    host = hamr.buffer(values)
    dev.synchronize()
    down = [
        Case("driver copy (ctypes)", driver.reader(out.ctypes.data, dev.ptr, 1024), floor=True),
        Case(
            "np.asarray(buf.get_host_accessible())",
            lambda: np.asarray(dev.get_host_accessible()),
            target=1.2,
        ),
        Case("buf.get(out)", lambda: dev.get(out), target=1.2),
    ]
    up = [
        Case("driver copy (ctypes)", driver.writer(dev.ptr, values.ctypes.data, 1024), floor=True),
        Case("host_buf.get_cuda_accessible()", host.get_cuda_accessible, target=1.2),
        Case("buf[...] = array", lambda: dev.__setitem__(..., values), target=1.2),
    ]
    cp, torch, numba = lib.cupy, lib.torch, lib.numba
    if cp:
        x, copy = cp.ones(256, "f4"), cp.cuda.runtime.memcpy
        inside, outside, source = x.data.ptr, out.ctypes.data, values.ctypes.data
        down += [
            Case("driver copy (CuPy)", lambda: copy(outside, inside, 1024, 2), floor=True),
            Case("cp.asnumpy(x)", lambda: cp.asnumpy(x)),
        ]
        up += [
            Case("driver copy (CuPy)", lambda: copy(inside, source, 1024, 1), floor=True),
            Case("cp.asarray(array)", lambda: cp.asarray(values)),
            Case(
                "cp.asarray(host_buf.get_cuda_accessible())",
                lambda: cp.asarray(host.get_cuda_accessible()),
            ),
        ]
    if torch:
        t = torch.ones(256, device="cuda")
        down.append(Case("torch_tensor.cpu()", lambda: t.cpu()))
        up.append(Case("torch.from_numpy(array).cuda()", lambda: torch.from_numpy(values).cuda()))
    if numba:
        d = numba.to_device(values)
        down.append(Case("numba_array.copy_to_host()", lambda: d.copy_to_host()))
        up.append(Case("numba.to_device(array)", lambda: numba.to_device(values)))
    yield Group("1 KiB from CUDA to NumPy", down)
    yield Group("1 KiB from NumPy to CUDA", up)
