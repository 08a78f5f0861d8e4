"""Handing arrays over by DLPack, for ``hamr bench``: beside what others take for the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .driver import Driver
from .groups import Case, Group, Libraries

COUNT = 256  # float32 elements: 1 KiB
TARGET = 1.2


def host_groups() -> Iterator[Group]:
    """Host memory, with NumPy and, where it is installed, PyTorch."""
    import numpy as np

    import hamr

    array = np.ones(COUNT, "float32")
    buf = hamr.Buffer(COUNT, "float32", "malloc", fill=1)
    own = Case("numpy.from_dlpack(ndarray)", lambda: np.from_dlpack(array), floor=True)
    yield _group(
        "hamr's", "NumPy", own, Case("numpy.from_dlpack(buf)", lambda: np.from_dlpack(buf))
    )
    own = Case("numpy.from_dlpack(ndarray)", lambda: np.from_dlpack(array), floor=True)
    given = Case("hamr.from_dlpack(ndarray)", lambda: hamr.from_dlpack(array))
    yield _group("NumPy's", "hamr", own, given)
    torch = torch_if_there()
    if torch is None:
        return
    tensor = torch.ones(COUNT)
    own = Case("torch.from_dlpack(ndarray)", lambda: torch.from_dlpack(array), floor=True)
    given = Case("torch.from_dlpack(buf)", lambda: torch.from_dlpack(buf), target=TARGET)
    yield _group("hamr's", "PyTorch", own, given)
    own = Case("numpy.from_dlpack(tensor)", lambda: np.from_dlpack(tensor), floor=True)
    given = Case("hamr.from_dlpack(tensor)", lambda: hamr.from_dlpack(tensor), target=TARGET)
    shared = Case("hamr.buffer(tensor)", lambda: hamr.buffer(tensor))
    yield _group("PyTorch's", "hamr", own, given, shared)


def _group(whose: str, where: str, *cases: Case) -> Group:
    return Group(f"{whose} memory in {where}, by DLPack", [*cases])


def torch_if_there() -> Any:
    try:
        from importlib import import_module

        return import_module("torch")
    except Exception:  # libraries fail to load in many ways
        return None


def cuda_groups(lib: Libraries, driver: Driver) -> Iterator[Group]:
    """Device memory, with CuPy and PyTorch."""
    cp, torch = lib.cupy, lib.torch
    if not cp:
        return
    import hamr

    buf = hamr.Buffer(COUNT, "float32", "cuda", fill=1)
    buf.synchronize()
    x = cp.ones(COUNT, "f4")
    own = Case("cp.from_dlpack(cupy_array)", lambda: cp.from_dlpack(x), floor=True)
    yield _group("hamr's", "CuPy", own, Case("cp.from_dlpack(buf)", lambda: cp.from_dlpack(buf)))
    own = Case("cp.from_dlpack(cupy_array)", lambda: cp.from_dlpack(x), floor=True)
    given = Case("hamr.from_dlpack(cupy_array)", lambda: hamr.from_dlpack(x))
    yield _group("CuPy's", "hamr", own, given)
    if not torch:
        return
    tensor = torch.ones(COUNT, device="cuda")
    own = Case("torch.from_dlpack(cupy_array)", lambda: torch.from_dlpack(x), floor=True)
    given = Case("torch.from_dlpack(buf)", lambda: torch.from_dlpack(buf), target=TARGET)
    yield _group("hamr's", "PyTorch", own, given)
    own = Case("cp.from_dlpack(tensor)", lambda: cp.from_dlpack(tensor), floor=True)
    given = Case("hamr.from_dlpack(tensor)", lambda: hamr.from_dlpack(tensor), target=TARGET)
    yield _group("PyTorch's", "hamr", own, given)
