"""How elements get from one space to another: what hamr says that it has chosen, and why."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hamr
from build_support.pair_table import COUNT, Trace, access, copy
from hamr._base.allocator import FACTS
from tests.cuda import driver
from tests.support import emulation, space_rows

AVAILABLE = [
    name
    for space in space_rows.NAMES
    if not space_rows.absent(space)
    for name in space_rows.allocators(space)
]
FACTS_OF = {facts[0]: facts for facts in FACTS}
DEVICE_ONLY = 3

needs_both = pytest.mark.skipif(not emulation.HIP, reason="needs emulated CUDA and HIP's stand-in")
needs_opencl = pytest.mark.skipif(
    bool(space_rows.absent("opencl")), reason=space_rows.absent("opencl")
)


def bytes_only(name):
    """Whether an allocator's memory is out of the host's reach."""
    return FACTS_OF[name][1] == DEVICE_ONLY


def the_host_reaches_here(name):
    """Of OpenCL's and OpenMP's: where the device's facts say so, and not the allocator's."""
    device = space_rows.found()[FACTS_OF[name][5]]["devices"][0]
    if name == "openmp":
        return device.get("kind") == "cpu"  # the initial device
    return name == "opencl_svm" and device["shared_memory"] in ("fine", "usm")


@pytest.mark.parametrize("pair", list(itertools.product(AVAILABLE, repeat=2)), ids=" to ".join)
def test_nothing_is_between_where_one_side_reaches_the_other(pair):
    source, target = pair
    way = copy(hamr.Buffer(COUNT, "float32", source, fill=1), target)
    backends = {FACTS_OF[name][5] for name in pair}
    if len(backends) == 1 or not all(map(bytes_only, pair)) or backends == {"cuda", "hip"}:
        assert way in ("direct", "by the host")
    elif "opencl" in backends and not any(map(the_host_reaches_here, pair)):
        assert way.startswith("staged, ")
    assert (way == "by the host") <= (not any(map(bytes_only, pair)))


@needs_both
def test_devices_are_compared_not_their_numbers():
    """The stand-in numbers the emulated devices as CUDA does; its UUIDs are AMD's."""
    b = hamr.Buffer(5, "int32", "hip", device=1, fill=4)
    with Trace() as trace:
        assert b.get_cuda_accessible(0).is_temporary
        assert not b.get_cuda_accessible(1).is_temporary
    said = "\n".join(trace.lines)
    assert "device 0 of cuda is no device of hip, and does not reach the memory" in said
    assert "cuda says that it reaches the memory from device 1 of cuda" in said
    assert b.cuda_accessible()
    assert not b.accessible("opencl")
    assert access(hamr.Buffer(COUNT, "int32", "hip_host"), "cuda") == "direct"


@needs_both
def test_code_of_the_other_runtime_comes_behind_what_is_pending():
    stream = hamr.Stream(device="hip:0")
    b = hamr.Buffer(1000, "int32", "hip", fill=1, stream=stream, transfer="async")
    b.fill(7)
    h = b.get_cuda_accessible(0)
    # CUDA's code does not know HIP's stream.
    assert driver.emulator.peek(h.ptr, 1000, "int32").tolist() == [7] * 1000


@needs_both
def test_what_the_other_runtime_does_later_is_waited_for():
    from tests.hip import runtime

    b = hamr.Buffer(100, "u1", "cuda", fill=1)
    h = b.get_hip_accessible(0)
    for value in (5, 6):  # after a wait, too
        runtime.fill_late(h.ptr, value, 100, 0)
        assert b.get().tolist() == [value] * 100


@needs_opencl
def test_what_goes_through_the_host_needs_two_pieces_of_it():
    if not emulation.CHOSEN:
        pytest.skip("needs CUDA")
    values = np.arange(5 << 20, dtype="float32")  # 20 MiB
    b = hamr.buffer(values).copy("opencl_device")
    hamr.trim()
    hamr.reset_peaks()
    before = hamr.stats()["allocators"]
    with Trace() as trace:
        c = b.copy("cuda")
    assert any(" are 2 pieces of 4194304 bytes of cuda_host" in line for line in trace.lines)
    after = hamr.stats()["allocators"]
    taken = {
        name: after[name]["peak"] - before.get(name, {"current": 0})["current"]
        for name in ("malloc", "cuda_host")
        if name in after
    }
    assert taken.get("cuda_host", 0) == 8 << 20
    np.testing.assert_array_equal(c.get(), values)


@needs_opencl
def test_a_chain_says_each_choice():
    values = np.arange(10_000, dtype="int32")
    with Trace() as trace:
        b = hamr.Buffer(values.shape, "int32", "opencl_device", data=values)
        for name in ("cuda", "malloc", "openmp", "hip", "opencl_svm"):
            if name in AVAILABLE:
                b = b.copy(name)
    np.testing.assert_array_equal(b.get(), values)
    said = "\n".join(trace.lines)
    if "cuda" in AVAILABLE:
        assert "neither runtime reaches the other's memory, nor does the host" in said
        assert "copy 40000 bytes cuda device 0" in said
