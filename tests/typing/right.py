"""What type checkers are to accept: uses as README and the documents show them."""

import socket
from typing import Any, assert_type

import numpy as np

import hamr
import hamr.pygpu as gpuarray
from hamr import Allocator, Buffer, Handle, Stream, Transfer, from_dlpack
from hamr.pygpu.gpuarray import GPUArray


class Named(Buffer):
    name = ""

    def double(self) -> "Named":
        return self.copy()


def making(array: np.ndarray[Any, Any]) -> list[Buffer]:
    shared = hamr.buffer(array)
    assert_type(shared, Buffer)
    return [
        shared,
        hamr.buffer(array, None, "sync"),
        hamr.buffer(array, stream=3, transfer=Transfer.async_, wait=False),
        hamr.buffer(b"123", sync="sync_host"),
        Buffer(3),
        Buffer((2, 3), "float32", Allocator.cuda, fill=0, device=1, transfer="async"),
        Buffer(3, device="cuda:1"),
        Buffer(3, device=np.int64(0)),
        hamr.zeros(3, device="cpu"),
        Buffer(3, np.float32, "malloc", data=[1, 2, 3]),
        Buffer(3, float, 1),
        Buffer.from_pointer(4096, (2, 3), "f4", owner=array, strides=(12, 4)),
        from_dlpack(array, device=(2, 0), copy=None),
        hamr.buffer_float(hamr.buffer_allocator_cuda, 256, 3.14),
        hamr.buffer_unsigned_long_long(Allocator.cpp, 3),
        hamr.make_buffer("malloc", 3, 1.0),
        Named(3).double(),
    ]


def looking(b: Buffer) -> None:
    assert_type(b.shape, tuple[int, ...])
    assert_type(b.strides, tuple[int, ...])
    assert_type(b.dtype, np.dtype[Any])
    assert_type(b.nbytes, int)
    assert_type(b.allocator, Allocator)
    assert_type(b.readonly, bool)
    assert_type(b.source_protocol, str | None)
    assert_type(len(b) + b.size() + b.capacity() + b.itemsize + b.ndim + b.ptr + b.device, int)
    assert_type(b.stream, Stream)
    assert_type(b.transfer, Transfer)
    assert_type(b.dtype.itemsize, int)
    assert_type(b.accessible("cuda"), bool)


def reaching(b: Buffer) -> None:
    with b.get_host_accessible() as h:
        assert_type(h, Handle)
        assert_type(h.is_temporary, bool)
        np.asarray(h).sum()
    b.get_cuda_accessible()
    b.get_cuda_accessible(1)
    b.get_cuda_accessible("cuda:1")
    b.get_device_accessible(hamr.device(1))
    b.get_cuda_accessible(device=None).get_host_accessible().close()
    np.asarray(b)
    np.from_dlpack(b)
    memoryview(b)
    b.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=False)
    b.__array_interface__["shape"]
    assert_type(hamr.device_of(b), int)


def lending(b: Buffer) -> None:
    with b.on_host("rw") as array, b[:1].on("host", "r") as read, b[1:].mirror() as mirrored:
        assert_type(array, np.ndarray[Any, np.dtype[Any]])
        assert_type(read, np.ndarray[Any, np.dtype[Any]])
        assert_type(mirrored, np.ndarray[Any, np.dtype[Any]])
    with b.on_cuda("r") as h, b.on("hip", "r", 1) as other:
        assert_type(h, Handle)
        assert_type(other, Handle)


def changing(b: Buffer) -> None:
    b.resize(3, 1.0)
    b.resize((3, 4))
    b.reserve(10)
    b.append(3)
    b.assign([1, 2, 3])
    b.set(np.zeros(3), at=1, start=1, n=2)
    b.fill(1)
    hamr.copy_many([b, np.zeros(3)], (np.ones(3), b), transfer="async")
    hamr.copy_many([b], [b], stream=b.stream, wait=False)
    hamr.copy_blocks(b, [0, 1], np.zeros(3), np.array([1, 2]), transfer="async")
    hamr.copy_blocks([b], range(2), (b,), b, stream=b.stream)
    b[...] = 3
    b[1:3] = [1, 2]
    b[0, ..., None] = b[1]
    b.move(Allocator.malloc)
    b.move("cuda", 1)
    b.swap(Buffer(3))
    b.free()
    b.close()


def taking(b: Buffer) -> None:
    out = np.empty(3, "f4")
    assert_type(b.get(), np.ndarray[Any, np.dtype[Any]])
    assert b.get(out, at=1, n=2) is out
    b.get(bytearray(12)).append(3)
    assert_type(b.copy("cpp", device=0, dtype="f8"), Buffer)
    assert_type(Named(3).copy(), Named)
    assert_type(Named(3)[1:], Named)
    assert_type(Named.from_pointer(1, 1), Named)
    assert_type(b.astype(np.float64).reshape(2, -1).reshape((2, 3), copy=False), Buffer)
    assert_type(float(b[0]) + int(b[0]), float)
    for part in b:
        assert_type(part, Buffer)


async def ordering(b: Buffer) -> None:
    s = Stream(device=0)
    e = s.record()
    e.wait()
    e.wait(s)
    await e
    await s
    await b.ready()
    b.set_stream(s, "async")
    b.set_stream(None)
    b.synchronize()
    assert_type(e.done and s.idle, bool)
    start = hamr.Event(s, timing=True)
    assert_type(start.elapsed_time(s.record(timing=True)), float)
    with hamr.device(1) as d:
        assert_type(d.index, int)
    with s as inside, hamr.stream(s):
        assert_type(inside, Stream)
    hamr.peer_access(0, 1)
    free, total = hamr.memory_info(0)
    assert_type(free + total + hamr.memory_info().free, int)


def counting() -> None:
    counted = hamr.stats()
    assert_type(counted["references"], int)
    assert_type(counted["allocators"]["malloc"]["peak"], int)
    assert_type(sum(row["live"] for row in counted["spaces"].values()), int)
    for name, row in hamr.backends().items():
        if row["available"]:
            print(name, row["allocators"][0].upper(), row["devices"][0]["name"])
        else:
            print(row.get("reason", "").upper(), *row.get("tried", []))
    for device in hamr.devices():
        assert_type(device["backend"], str)
        assert_type(device["device"], int)
    hamr.set_verbose(1)
    hamr.trim()
    largest: int = counted["pools"]["host"]["largest_free"]
    limit: int | None = hamr.limits()["devices"].get(largest)
    hamr.set_limit(pinned="4GiB", kept=np.int64(1), device="cuda:0", bytes=limit)

    @hamr.on_out_of_memory
    def give_back(device: int, nbytes: int) -> bool:
        return device < nbytes

    give_back.remove()
    hamr.set_limit(library="torch", bytes="1GiB")
    assert_type(hamr.limits()["libraries"]["torch"]["all"], int)
    with hamr.record_memory("x.html", stacks=False) as record, hamr.track(device="cpu") as t:
        assert_type((t.peak, t.allocated, t.allocations, t.freed), tuple[int, int, int, int])
    if record.snapshot is not None:
        record.snapshot.write("x.json")
        first = record.snapshot.events[0]
        print(first["action"], first["time"], first["stack"][0]["line"] + 1)
    assert_type(hamr.memory_snapshot().by_library(), dict[str, dict[str, int]])
    assert_type(hamr.memory_snapshot().devices["cuda:0"]["others"], int | None)
    hamr.serve_memory().close()
    for misuse in hamr.check_memory():
        assert_type(misuse, hamr.MemoryMisuse)
        assert_type((misuse.library, misuse.offset, misuse.written), tuple[str, int, int])
        assert_type(misuse.used, dict[str, object] | None)
    assert_type(hamr.checked_backends(), dict[str, str])
    print(hamr.__version__.split("."), hamr.get_include())


def sharing(b: Buffer, near: socket.socket) -> None:
    with b.share(copy=None, readonly=True) as handle:
        assert_type(handle, hamr.SharedHandle)
        assert_type((handle.copied, handle.readonly), tuple[bool, bool])
        handle.send(near)
        numbers: tuple[int, ...] = handle.descriptors
        assert_type(hamr.open_shared(handle.to_bytes(), numbers), Buffer)
    assert_type(hamr.open_shared(near), Buffer)


def enumerating() -> None:
    assert_type(Allocator(1), Allocator)
    assert_type(Allocator["cuda"], Allocator)
    assert_type([a.name for a in Allocator], list[str])
    assert Allocator.shared.value + 1 > Allocator.malloc
    try:
        Buffer(3, "f4", "hip")
    except hamr.BackendUnavailable as error:
        print(error.backend, error.tried)
    except hamr.OutOfMemory as error:
        print(error.size + 1)


def comparing(b: Buffer) -> None:
    if b[0] == 3 or b[1] != 4.5 or b.get_host_accessible()[0] == 1j:
        print(bool(b[0] < 3), 3.0 in b)


def light_control(array: np.ndarray[Any, Any]) -> None:
    there = gpuarray.to_gpu(array)
    assert_type(there, GPUArray)
    assert_type(there.size, int)
    assert_type(there.last_status, gpuarray.cudaError_t)
    assert_type(there[1:].T.reshape(3, -1).fill(2), GPUArray)
    print(there.get(array, async_=True, stream=gpuarray.cudaStream_t()).sum())
    GPUArray((2, 3), np.float32, order="F").set_val(1, 2.5)
    GPUArray(allocator=gpuarray.Allocator(there))
    low = gpuarray.DeviceArray_float64([2, 3])
    assert_type(low.shape(), list[int])
    address: int = int(low.device_data())
    milliseconds, status = gpuarray.cudaEventElapsedTime(
        gpuarray.cudaEvent_t(), gpuarray.cudaEvent_t(2)
    )
    assert_type(milliseconds, float)
    assert_type(gpuarray.cudaGetDeviceCount(), tuple[int, gpuarray.cudaError_t])
    assert_type(gpuarray.cuda_enabled, bool)
    print(address, status.as_int(), gpuarray.dtype.float64.value)
