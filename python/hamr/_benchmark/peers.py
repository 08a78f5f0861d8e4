"""How CuPy, PyTorch and Numba copy: each its own array on the device, and its own calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .groups import Libraries

Run = Callable[[], Any]
Bound = tuple[str, Callable[[Any, bool], Run]]


class Peer:
    """A library's device array, and its ways of copying, each with its name.

    ``new_down`` copies to new host memory, ``new_up`` an array to new device memory. ``down``
    and ``up`` make of a host array, and whether that is page-locked, what copies into or from
    it; ``across`` makes of another device array what copies into that.
    """

    def __init__(
        self,
        library: str,
        array: Any,
        *,
        new_down: tuple[str, Run],
        down: Bound,
        new_up: tuple[str, Callable[[Any], Any]],
        up: Bound,
        across: tuple[str, Callable[[Any], Run]],
    ) -> None:
        self.library, self.array = library, array
        self.address = int(array.__cuda_array_interface__["data"][0])
        self.new_down, self.down, self.new_up, self.up = new_down, down, new_up, up
        self.across = across


def peers_of(lib: Libraries, nbytes: int) -> list[Peer]:
    """Those that are there, with arrays of so many bytes."""
    made = []
    if lib.cupy:
        made.append(_cupy(lib.cupy, nbytes))
    if lib.torch:
        made.append(_torch(lib.torch, nbytes))
    if lib.numba:
        made.append(_numba(lib.numba, nbytes))
    return made


def _cupy(cp: Any, nbytes: int) -> Peer:
    x = cp.ones(nbytes, "u1")
    return Peer(
        "CuPy",
        x,
        new_down=("cp.asnumpy(x)", lambda: cp.asnumpy(x)),
        down=("x.get(out=out)", lambda out, locked: lambda: x.get(out=out)),
        new_up=("cp.asarray(array)", cp.asarray),
        up=("x.set(array)", lambda array, locked: lambda: x.set(array)),
        across=("cp.copyto(y, x)", lambda y: lambda: cp.copyto(y, x)),
    )


def _torch(torch: Any, nbytes: int) -> Peer:
    t = torch.ones(nbytes, dtype=torch.uint8, device="cuda")

    def down(out: Any, locked: bool) -> Run:
        h = torch.from_numpy(out)
        return lambda: h.copy_(t, non_blocking=locked)

    def up(array: Any, locked: bool) -> Run:
        h = torch.from_numpy(array)
        return lambda: t.copy_(h, non_blocking=locked)

    return Peer(
        "PyTorch",
        t,
        new_down=("t.cpu()", t.cpu),
        down=("h.copy_(t)", down),
        new_up=("torch.from_numpy(array).cuda()", lambda array: torch.from_numpy(array).cuda()),
        up=("t.copy_(h)", up),
        across=("u.copy_(t)", lambda u: lambda: u.copy_(t)),
    )


def _numba(cuda: Any, nbytes: int) -> Peer:
    d = cuda.device_array(nbytes, "u1")
    return Peer(
        "Numba",
        d,
        new_down=("d.copy_to_host()", lambda: d.copy_to_host()),
        down=("d.copy_to_host(out)", lambda out, locked: lambda: d.copy_to_host(out)),
        new_up=("cuda.to_device(array)", cuda.to_device),
        up=("d.copy_to_device(array)", lambda array, locked: lambda: d.copy_to_device(array)),
        across=("e.copy_to_device(d)", lambda e: lambda: e.copy_to_device(d)),
    )
