"""A kernel that writes late, so that a consumer that does not wait reads old values."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

COUNT = 4096

_kept: list[Any] = []


def keep(x: Any) -> Any:
    """An object that lasts until the process ends, as a stream must that memory is freed on."""
    _kept.append(x)
    return x


_SOURCE = r"""
extern "C" __global__ void late(float *x, float value, int n, long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) { }
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = value;
}
"""


@functools.cache
def _kernel(cupy: Any) -> Any:
    return cupy.RawKernel(_SOURCE, "late")


@functools.cache
def cycles(cupy: Any, microseconds: float) -> int:
    """Clock ticks of a time, at the device's highest rate: it lasts at least so long."""
    clock_rate = 13  # cudaDevAttrClockRate
    kilohertz = cupy.cuda.runtime.deviceGetAttribute(clock_rate, cupy.cuda.Device().id)
    return int(microseconds * (kilohertz or 2_000_000) / 1000)


def write_late(cupy: Any, stream: Any, x: Any, value: float, microseconds: float) -> None:
    """Enqueue a kernel that spins, and then sets every element of x."""
    with stream:
        _kernel(cupy)(
            (1,),
            (256,),
            (x, np.float32(value), np.int32(x.size), np.int64(cycles(cupy, microseconds))),
        )


def hold(cupy: Any, stream: Any, microseconds: float) -> None:
    """Enqueue a kernel that only spins."""
    nothing = _nothing(cupy)
    with stream:
        _kernel(cupy)(
            (1,),
            (32,),
            (nothing, np.float32(0), np.int32(0), np.int64(cycles(cupy, microseconds))),
        )


@functools.cache
def _nothing(cupy: Any) -> Any:
    return cupy.zeros(1, "f4")
