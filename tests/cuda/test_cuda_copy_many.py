"""copy_many with memory of devices: in order, in few steps, and whole after each failure."""

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support.processes import launch, scaled

SCRIPT = Path(__file__).parent / "scripts" / "many_copies.py"
COUNT, N = 40, 64
SMALL_CHUNKS = {"HAMR_COPY_CHUNK": "700", "HAMR_COPY_THREADS": "3"}


def run(kind, *, seed=1, steps=1, **settings):
    """What a process says."""
    status, output = launch(
        [sys.executable, str(SCRIPT), kind, str(seed), str(steps)], 300, settings
    )
    assert status == 0, output[-4000:]
    return output


@pytest.mark.parametrize("way", ["", "kernel", "batch", "single"])
@pytest.mark.parametrize(
    "more",
    [{}, SMALL_CHUNKS, {"HAMR_COPY_THREADS": "0"}, {"HAMR_CUDA_KERNELS": "0"}],
    ids=["as it is", "small chunks", "no threads", "no kernels"],
)
def test_it_is_a_loop_of_assignments(way, more):
    assert run("walk", seed=len(way), steps=scaled(60, 6), HAMR_COPY_MANY=way, **more).endswith(
        "OK\n"
    )


@pytest.mark.parametrize("more", [{}, SMALL_CHUNKS], ids=["as it is", "small chunks"])
@pytest.mark.parametrize("way", ["", "kernel", "single"])
def test_each_call_fails_once(emulator, way, more):
    assert run("faults", HAMR_COPY_MANY=way, **more).endswith("OK\n")


def test_a_child_cannot(emulator):
    assert run("fork").endswith("OK\n")


def test_a_setting_that_is_none():
    code = "import hamr; print(hamr.backends()['cuda']['reason'])"
    status, output = launch([sys.executable, "-c", code], 60, {"HAMR_COPY_MANY": "fast"})
    assert (status, output) == (
        0,
        'HAMR_COPY_MANY is "fast": accepted are kernel, batch and single\n',
    )
    assert driver.DEVICES


def buffers(device=0, stream=None, transfer="async"):
    return [
        hamr.Buffer(N, "f4", "cuda", fill=0, device=device, stream=stream, transfer=transfer)
        for _ in range(COUNT)
    ]


def contents(list_of_buffers):
    return [np.asarray(b.get_host_accessible()).tolist() for b in list_of_buffers]


def late_fields(device=0):
    """A foreign library's arrays that its stream is still writing to, and what it writes."""
    stream = driver.Stream(device)
    arrays, values = [], []
    for _ in range(COUNT):
        array = driver.Array(np.zeros(N, "f4"), stream=stream.handle, device=device)
        values.append(driver.fresh_value())
        driver.write_late(stream, array.ptr, N, values[-1])
        arrays.append(array)
    return arrays, [[v] * N for v in values], stream


def test_producers_are_waited_for(device):
    arrays, values, _stream = late_fields(device)
    out = [np.zeros(N, "f4") for _ in range(COUNT)]
    hamr.copy_many(out, arrays)
    assert [a.tolist() for a in out] == values
    arrays, values, _other = late_fields(device)
    to = buffers(device, hamr.Stream(device=device))
    hamr.copy_many(to, arrays)
    assert contents(to) == values


def test_a_stream_that_the_caller_names(device):
    """The arrays' users are on it: they find what was copied, and what they do is waited for."""
    stream = driver.Stream(device)
    arrays = [driver.Array(np.zeros(N, "f4"), device=device) for _ in range(COUNT)]
    hamr.copy_many(arrays, [np.full(N, i, "f4") for i in range(COUNT)], stream=stream.handle)
    copies = [driver.Array(np.zeros(N, "f4"), device=device) for _ in range(COUNT)]
    with driver.on(device):
        for copied, array in zip(copies, arrays, strict=True):
            driver.do("cuMemcpyAsync", copied.ptr, array.ptr, copied.nbytes, stream.handle)
    stream.synchronize()
    assert [driver.content(a)[0] for a in copies] == list(range(COUNT))


@pytest.mark.parametrize("transfer", [None, "async"])
@pytest.mark.parametrize("blocks", [False, True])
def test_an_array_of_several_pairs(device, transfer, blocks):
    """Each pair shares it anew: the device is told which comes later."""

    def copied(*lists):
        if blocks:
            hamr.copy_blocks(lists[0], [0], lists[1], [0], transfer=transfer)
        else:
            hamr.copy_many(*lists, transfer=transfer)

    shape, stream = (1, 1 << 16), hamr.Stream(device=device)
    array = driver.Array(np.full(shape, 1, "f4"), device=device)
    to, last = (
        hamr.Buffer(shape, "f4", "cuda", fill=0, device=device, stream=stream) for _ in range(2)
    )
    copied([to, array, last], [array, np.full(shape, 2, "f4"), array])
    assert [set(b.ravel().tolist()) for b in map(hamr.Buffer.get, (to, last))] == [{1}, {2}]
    pinned = hamr.Buffer(shape, "f4", "cuda_host", fill=0)
    out = np.zeros(shape, "f4")
    copied([pinned, out, to], [array, np.asarray(pinned), np.asarray(pinned)])
    assert (set(out.ravel().tolist()), set(to.get().ravel().tolist())) == ({2}, {2})


@pytest.mark.multigpu
def test_between_two_devices():
    values = [np.full(N, i, "f4") for i in range(COUNT)]
    one, two = buffers(0), buffers(1)
    hamr.copy_many(one, values)
    hamr.copy_many(two[1:], one[1:])
    hamr.copy_many([*one[:5], *two[:5]], [*two[5:10], *values[:5]])
    assert [c[0] for c in contents(one)] == [*range(5, 10), *range(5, COUNT)]
    assert [c[0] for c in contents(two)] == list(range(COUNT))


def test_modes(emulator):
    """What is not waited for is under way."""
    device, pinned = buffers(), [hamr.Buffer(N, "f4", "cuda_host", fill=0) for _ in range(COUNT)]
    emulator.finish()
    hamr.copy_many(pinned, device, transfer="async")
    assert emulator.pending() > 0
    hamr.copy_many(pinned, device, transfer="sync_host")
    assert emulator.pending() == 0
    hamr.copy_many(device, pinned)
    assert emulator.pending() > 0
    hamr.copy_many(device, pinned, transfer="sync")
    assert emulator.pending() == 0


def test_arrays_are_complete(emulator):
    """Of other libraries: they are waited for together, and not each at the end of its sharing."""
    arrays = [driver.Array(np.zeros(N, "f4")) for _ in range(COUNT)]
    values = [np.full(N, i, "f4") for i in range(COUNT)]
    hamr.copy_many(arrays, values)
    assert emulator.pending() == 0
    calls = emulator.count_calls(lambda: hamr.copy_many(arrays, values))
    assert calls["cuStreamSynchronize"] <= 2, calls
    assert [a.read()[0] for a in arrays] == list(range(COUNT))


@pytest.mark.parametrize("way", ["up", "down", "within"])
def test_few_calls(emulator, way):
    device, other = buffers(), buffers()
    host = [np.zeros(N, "f4") for _ in range(COUNT)]
    pair = {"up": (device, host), "down": (host, device), "within": (device, other)}[way]
    hamr.copy_many(*pair)  # loads kernels, takes chunks
    calls = emulator.count_calls(lambda: hamr.copy_many(*pair))
    calls.pop("cuPointerGetAttributes", None)  # once for each array of the host's
    assert sum(calls.values()) < COUNT, calls


def test_a_capture_is_not_ended(device, emulator):
    """Each copy is one of the graph's: what makes many of one may need what a capture forbids."""
    with driver.on(device):
        captured = driver.get("cuStreamCreate", 0)
    stream = hamr.Stream(captured, device=device)
    one, two, three = (buffers(device, stream) for _ in range(3))
    pinned = [hamr.Buffer(N, "f4", "cuda_host", fill=0) for _ in range(COUNT)]
    for b in one + two + three + pinned:
        b.synchronize()
    graph = ctypes.c_uint64()
    with driver.on(device):
        driver.do("cuStreamBeginCapture_v2", captured, 2)
        calls = emulator.count_calls(lambda: hamr.copy_many(one + two, three + pinned))
        driver.do("cuStreamEndCapture", captured, ctypes.byref(graph))
        driver.do("cuGraphDestroy", graph.value)
    assert calls["cuMemcpyAsync"] == 2 * COUNT
    assert not calls.keys() & {"cuMemcpyBatchAsync", "cuLaunchKernel", "cuModuleLoadData"}
    for b in one + two + three + pinned:
        b.close()
    del stream
    with driver.on(device):
        driver.do("cuStreamDestroy_v2", captured)


def test_what_nobody_could_wait_for_stays(device, emulator):
    """A device that cannot be waited for may read it as long as there is one."""
    to = hamr.Buffer(4096, "u1", "cuda", fill=0, transfer="async", device=device)
    to.synchronize()
    exporters = [bytearray(8192), bytearray(8192)]
    for exporter in exporters:
        driver.register(np.frombuffer(exporter, "u1"), device)
    hamr.copy_many([to], [np.frombuffer(exporters[0], "u1", 4096)])
    for wait in ("cuStreamSynchronize", "cuCtxSynchronize"):
        emulator.fail(wait, 0, 719)
    hamr.copy_many([to], [np.frombuffer(exporters[1], "u1", 4096)])
    emulator.stop_failing()
    to.synchronize()
    for exporter in exporters:
        driver.unregister(np.frombuffer(exporter, "u1"), device)
    exporters[0].append(0)
    with pytest.raises(BufferError):
        exporters[1].append(0)
