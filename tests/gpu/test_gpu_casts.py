"""Every pair of element types converted on the device, as on the host and as by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import hamr
from tests.gpu.gpu_bytes import EVERY, NUMPY, raw, repeated, tricky

LARGE = 100_003  # a prime: no block size divides it


def explain(source: str, target: str, device: np.ndarray, host: np.ndarray, given) -> str:
    at = np.flatnonzero((device != host).any(axis=1))
    rows = [
        f"element {i}: {bytes(raw(given[int(i)]).ravel()).hex()} became "
        f"{bytes(device[i]).hex()} on the device, {bytes(host[i]).hex()} on the host"
        for i in at[:5]
    ]
    return f"{source} to {target}: {len(at)} of {len(device)} differ (bytes, lowest first)\n" + (
        "\n".join(rows)
    )


@pytest.mark.parametrize("source", EVERY)
def test_the_device_converts_as_the_host_does(source):
    small = tricky(source)
    problems = []
    for given in (small, repeated(small, LARGE)):
        there = given.copy("cuda")
        for target in EVERY:
            device, host = raw(there.astype(target)), raw(given.astype(target))
            if not np.array_equal(device, host):
                problems.append(explain(source, target, device, host, given))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("source", EVERY)
@pytest.mark.parametrize("layout", ["strided", "negative", "into strided", "into host"])
def test_layouts_that_are_not_contiguous(source, layout):
    given = repeated(tricky(source), 5003)
    there = given.copy("cuda")
    problems = []
    for target in EVERY:
        if layout == "strided":
            device, host = there[::3].astype(target), given[::3].astype(target)
        elif layout == "negative":
            device, host = there[::-1].astype(target), given[::-1].astype(target)
        else:
            device = hamr.Buffer(2 * 5003, target, "cuda" if layout == "into strided" else "malloc")
            host = hamr.Buffer(2 * 5003, target)
            for made, taken in ((device, there), (host, given)):
                made.fill(0)
                made[1::2] = taken
        if not np.array_equal(raw(device), raw(host)):
            problems.append(f"{source} to {target}, {layout}")
    assert not problems, "\n".join(problems)


def in_range(values: np.ndarray, target: np.dtype) -> np.ndarray:
    """Which of the values a type can hold, so that NumPy's result is not left open by C."""
    if target.kind == "b":
        return np.ones(values.shape, bool)
    if values.dtype.kind == "c":
        values = values.real
    if target.kind in "iu":
        info = np.iinfo(target)
        if values.dtype.kind in "iub":
            return np.ones(values.shape, bool)  # it wraps around
        wide = values.astype("f8")
        with np.errstate(invalid="ignore"):
            return np.isfinite(wide) & (wide > float(info.min) - 1) & (wide < float(info.max))
    return ~np.isnan(values) if values.dtype.kind == "f" else np.ones(values.shape, bool)


@pytest.mark.parametrize("source", NUMPY)
@pytest.mark.filterwarnings("ignore")
def test_numpy_converts_alike_what_fits(source):
    given = tricky(source)
    values = np.array(given)
    there = given.copy("cuda_async")
    for target in NUMPY:
        kind = np.dtype(target)
        with np.errstate(all="ignore"):
            expected = values.astype(kind)
        found = np.array(there.astype(target).get_host_accessible())
        assert found.dtype == kind
        fits = in_range(values, kind)
        np.testing.assert_array_equal(found[fits], expected[fits], err_msg=f"{source} {target}")
