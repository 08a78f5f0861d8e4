"""Memory serves others only after the work of a library that was given its address."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.cuda.library_work import SHAPES, Library, sizes
from tests.support.in_threads import in_threads

#: Of which hamr makes buffers whose address a library may have.
ALLOCATORS = ["cuda", "cuda_async", "cuda_uva", "cuda_vmm"]
#: Pieces of memory of the same size that are taken next.
OTHERS = 4


def shapes():
    return [
        pytest.param(shape, marks=pytest.mark.multigpu) if shape.devices > 1 else shape
        for shape in SHAPES
    ]


def values(buffer: hamr.Buffer) -> list[float]:
    return np.unique(np.asarray(buffer.get_host_accessible())).tolist()


@pytest.fixture(autouse=True)
def trimmed(needs_device):
    hamr.trim()


@pytest.fixture
def unwaited(emulator):
    """The caller waits for no device while a library works."""
    calls = ("cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize")
    return lambda: sum(map(emulator.calls, calls))


@pytest.mark.parametrize("count", sizes())
@pytest.mark.parametrize("shape", shapes(), ids=str)
def test_a_library_reads_what_it_was_given(shape, count):
    library = Library(shape.device)
    for number in range(3):
        result = library.add_one(shape.take(count, 10 * number), count)
        others = [shape.take(count, 7) for _ in range(OTHERS)]
        assert library.values(result) == [10 * number + 1]
        del others


@pytest.mark.parametrize("count", sizes())
@pytest.mark.parametrize("shape", shapes(), ids=str)
def test_a_library_that_writes_late_spoils_nobody(shape, count):
    library = Library(shape.device)
    library.write_late(shape.take(count, 1), count, 9)
    others = [shape.take(count, 7) for _ in range(OTHERS)]
    library.stream.synchronize()
    for handle in others:
        found = driver.read(handle.ptr, (count,), "f4", shape.device)
        assert np.unique(found).tolist() == [7]


@pytest.mark.parametrize("count", sizes())
@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("late", ["read", "written"])
def test_a_buffer_is_waited_for(allocator, count, late):
    library = Library()
    first = hamr.Buffer(count, "f4", allocator, fill=1)
    if late == "read":
        result = library.add_one(first, count)
    else:
        library.write_late(first, count, 9)
    del first
    others = [hamr.Buffer(count, "f4", allocator, fill=7) for _ in range(OTHERS)]
    if late == "read":
        assert library.values(result) == [2]
    library.stream.synchronize()
    assert [values(other) for other in others] == [[7]] * OTHERS


@pytest.mark.parametrize("count", sizes())
def test_page_locked_memory_is_waited_for(count):
    library = Library()
    first = hamr.Buffer(count, "f4", "cuda_host", fill=1)
    library.write_late(np.asarray(first).ctypes.data, count, 9)
    del first
    others = [hamr.Buffer(count, "f4", "cuda_host", fill=7) for _ in range(OTHERS)]
    library.stream.synchronize()
    assert [values(other) for other in others] == [[7]] * OTHERS


@pytest.mark.parametrize("end", ["drop", "changed", "not cached"])
def test_a_temporary_that_is_kept_is_waited_for_once_it_is_not(end):
    count = sizes()[0]
    library = Library()
    source = hamr.Buffer(count, "f4", fill=1).cached()
    result = library.add_one(source.get_cuda_accessible(), count)
    if end == "changed":
        source.changed()
    elif end == "not cached":
        source.cached(False)
    else:
        del source
    others = [hamr.Buffer(count, "f4", fill=7).get_cuda_accessible() for _ in range(OTHERS)]
    assert library.values(result) == [2]
    del others


@pytest.mark.freed_again
@pytest.mark.parametrize("count", sizes())
def test_nobody_waits_in_a_loop_that_enqueues(unwaited, count):
    source, library = hamr.Buffer(count, "f4", fill=1), Library()
    rounds = min(
        20, driver.MORE_THAN_IS_KEPT // (4 * count)
    )  # more would be too much on an emulated device
    results = [library.empty(count) for _ in range(rounds)]
    library.add_one(source.get_cuda_accessible(), count)
    before = unwaited()
    for result in results:
        library.add_one(source.get_cuda_accessible(), count, result)
    assert unwaited() == before
    assert [library.values(result) for result in results] == [[2]] * len(results)


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_host"])
def test_trim_gives_back_what_libraries_had(emulator, allocator):
    count = driver.MORE_THAN_IS_KEPT // 4
    live = emulator.live("memory")
    buffer = hamr.Buffer(count, "f4", allocator, fill=1)
    address = buffer.ptr
    assert address
    buffer.close()
    hamr.trim()
    assert emulator.live("memory") == live


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async"])
def test_what_libraries_had_is_there_for_who_would_run_out(emulator, allocator):
    size = driver.memory_info(0)[0] // 3
    library = Library()
    for value in range(6):
        buffer = hamr.Buffer(size // 4, "f4", allocator, fill=value)
        library.write_late(buffer, 1000, 9)
        buffer.close()


@pytest.mark.freed_again
def test_what_libraries_had_does_not_grow_without_bound(emulator):
    """Nobody runs out of memory, nor asks for it to be given back."""
    count, library = (1 << 20) // 4, Library()
    total = driver.memory_info(0)[1]
    source, most = hamr.Buffer(count, "f4", fill=1), 0
    for _ in range(total // (1 << 20)):
        library.write_late(source.get_cuda_accessible(), 1000, 9)
        most = max(most, total - driver.memory_info(0)[0])
    assert most <= total // 2


def test_a_capture_goes_on_while_what_a_library_had_is_dropped(emulator):
    """Neither a wait nor an event is put into it, or ends it."""
    count, library = 1000, Library()
    held = [hamr.Buffer(count, "f4", fill=1).get_cuda_accessible() for _ in range(3)]
    for handle in held:
        library.write_late(handle, count, 9)
    library.stream.synchronize()
    with driver.on(0):
        stream = driver.get("cuStreamCreate", 0)  # which the default one waits for
        driver.do("cuStreamBeginCapture_v2", stream, 0)
        del held, handle
        graph = ctypes.c_uint64()
        driver.do("cuStreamEndCapture", stream, ctypes.byref(graph))
        driver.do("cuGraphDestroy", graph.value)
        driver.do("cuStreamDestroy_v2", stream)


def test_threads_keep_out_of_what_libraries_have():
    count = 1000

    def work(number: int) -> None:
        library = Library()
        for i in range(30):
            value = 1000 * number + i
            result = library.add_one(
                hamr.Buffer(count, "f4", fill=value).get_cuda_accessible(), count
            )
            others = [hamr.Buffer(count, "f4", fill=7).get_cuda_accessible() for _ in range(3)]
            assert library.values(result) == [value + 1]
            del others

    in_threads(work)
