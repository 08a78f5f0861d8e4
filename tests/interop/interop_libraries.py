"""All libraries of the matrix, and the cells of those that are there."""

from __future__ import annotations

import functools
import gc
from typing import Any

import pytest

from tests.interop.interop_matrix import DTYPES, LAYOUTS, Library
from tests.support import emulation

if emulation.CHOSEN == "driver":
    from tests.interop import library_cupy, library_devices, library_numba, library_rmm

    ALL: list[Library] = [
        library_cupy.LIBRARY,
        library_devices.TORCH,
        library_devices.JAX,
        library_numba.LIBRARY,
        library_devices.MPI,
        library_rmm.LIBRARY,
    ]
else:
    from tests.interop import (
        library_dask,
        library_jax,
        library_mpi4py,
        library_numpy,
        library_pillow,
        library_pyarrow,
        library_python,
        library_quantities,
        library_torch,
        library_xarray,
        library_zarr,
    )

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
        library_xarray.LIBRARY,
        library_zarr.LIBRARY,
        library_pillow.LIBRARY,
        *library_quantities.LIBRARIES,
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
