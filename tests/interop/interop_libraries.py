"""All libraries of the matrix, and the cells of those that are there."""

from __future__ import annotations

import functools
import gc
from typing import Any

import pytest

import emulation
from interop_matrix import DTYPES, LAYOUTS, Library

if emulation.CHOSEN == "driver":
    import library_cupy
    import library_devices
    import library_numba

    ALL: list[Library] = [
        library_cupy.LIBRARY,
        library_devices.TORCH,
        library_devices.JAX,
        library_numba.LIBRARY,
        library_devices.MPI,
    ]
else:
    import library_dask
    import library_jax
    import library_mpi4py
    import library_numpy
    import library_pyarrow
    import library_python
    import library_torch

    ALL = [
        library_numpy.LIBRARY,
        library_python.LIBRARY,
        library_torch.LIBRARY,
        library_jax.LIBRARY,
        library_pyarrow.LIBRARY,
        library_pyarrow.TENSOR,
        library_mpi4py.LIBRARY,
        library_mpi4py.MEMORY,
        library_dask.LIBRARY,
    ]


def each() -> list[Any]:
    """Every library; those that are absent are skipped, once each."""
    return [
        pytest.param(one, id=one.name, marks=[pytest.mark.skip(reason)] if reason else [])
        for one in ALL
        for reason in [one.probe()]
    ]


def cells() -> list[Any]:
    """A parameter set for each cell; libraries are not imported yet."""
    return [
        pytest.param(
            library,
            way,
            dtype,
            layout,
            id=f"{library.name}-{way.direction}-{way.protocol}-{way.call}-{dtype}-{layout}",
            marks=[pytest.mark.filterwarnings(text) for text in library.warnings],
        )
        for library in ALL
        if not library.probe()
        for way in library.ways
        for dtype in DTYPES
        for layout in LAYOUTS
    ]


@functools.cache
def cannot_load(index: int) -> str:
    """Why a library that is installed cannot be used; "" if it can."""
    library = ALL[index]
    try:
        library.load()
    except Exception as error:
        return f"{library.name} cannot be used: {type(error).__name__}: {error}"[:200]
    # Libraries make many objects on import, which no collection need look at from now on.
    gc.collect()
    gc.freeze()
    return ""
