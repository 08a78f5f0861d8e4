"""What type checkers are to refuse: each marked line, and no other."""

import numpy as np

import hamr
from hamr import pygpu


async def wrong(b: hamr.Buffer, h: hamr.Handle, s: hamr.Stream, e: hamr.Event) -> None:
    # What is not there.
    hamr.nope  # expect: error
    hamr.Allocator.nope  # expect: error
    b.nope  # expect: error
    h.fill(1)  # expect: error

    # What can be read alone.
    b.shape = (3,)  # expect: error
    b.strides = (8,)  # expect: error
    b.nbytes = 1  # expect: error
    b.readonly = False  # expect: error
    b.device = 1  # expect: error
    b.dtype = np.dtype("f4")  # expect: error
    b.allocator = hamr.Allocator.cuda  # expect: error
    b.stream = s  # expect: error
    h.is_temporary = False  # expect: error
    h.ptr = 1  # expect: error
    e.done = True  # expect: error
    hamr.memory_info(0).free = 3  # expect: error

    # Arguments that are missing, too many or of another type.
    hamr.Buffer()  # expect: error
    hamr.Buffer("3")  # expect: error
    hamr.Buffer(3, "f4", 1.5)  # expect: error
    hamr.Buffer(3, device=0.5)  # expect: error
    hamr.Buffer(3, size=3)  # expect: error
    hamr.Buffer.from_pointer(1, 1, readonly="no")  # expect: error
    hamr.buffer(b"1", None, "sync", None)  # expect: error
    hamr.buffer(b"1", transfer=1.5)  # expect: error
    hamr.Allocator("cuda")  # expect: error
    hamr.Transfer("async")  # expect: error
    hamr.Stream(device=[0])  # expect: error
    hamr.device(b"1")  # expect: error
    hamr.make_buffer("malloc")  # expect: error
    b.resize("3")  # expect: error
    hamr.copy_many(b)  # expect: error
    hamr.copy_many({0: b}, [b])  # expect: error
    hamr.copy_many([b], [b], transfer=1.5)  # expect: error
    hamr.copy_blocks(b, [0], b)  # expect: error
    hamr.copy_blocks(b, [0], b, [0], transfer=1.5)  # expect: error
    b.set(1, at="0")  # expect: error
    b.swap(3)  # expect: error
    b.reshape(2, 3, order="F")  # expect: error
    b.copy(device={})  # expect: error
    b.get(at=1)  # expect: error
    b.get_cuda_accessible(b"1")  # expect: error
    b.set_stream()  # expect: error
    e.elapsed_time(s)  # expect: error
    s.record(True)  # expect: error
    with e:  # expect: error
        pass
    b.accessible(1)  # expect: error

    # Words that there are not.
    hamr.Buffer(3, "f4", "gpu")  # expect: error
    hamr.Buffer(3, transfer="later")  # expect: error
    hamr.zeros(3, allocator="gpu")  # expect: error
    hamr.buffer(b"1", sync="later")  # expect: error
    b.copy("gpu")  # expect: error
    b.move("gpu")  # expect: error
    b.set_transfer("later")  # expect: error
    b.on_host("a")  # expect: error
    b.on_cuda("a")  # expect: error
    b.on("gpu", "r")  # expect: error
    await b.synchronize()  # expect: error

    b.share(True)  # expect: error
    b.share(copy="no")  # expect: error

    # Results that are something else.
    text: str = b.dtype  # expect: error
    number: int = b.get()  # expect: error
    shape: list[int] = b.shape  # expect: error
    handle: hamr.Handle = b.copy()  # expect: error
    count: str = hamr.stats()["references"]  # expect: error
    print(text, number, shape, handle, count)

    # Entries that do not exist.
    hamr.stats()["nope"]  # expect: error
    hamr.limits()["nope"]  # expect: error
    hamr.set_limit(kept=1.5)  # expect: error
    hamr.on_out_of_memory(3)  # expect: error
    hamr.set_limit(library=3, bytes=1)  # expect: error
    hamr.track(library=3)  # expect: error
    hamr.record_memory(most="3")  # expect: error
    hamr.memory_snapshot().events[0]["nope"]  # expect: error
    hamr.stats()["allocators"]["malloc"]["nope"]  # expect: error
    hamr.backends()["cuda"]["nope"]  # expect: error
    hamr.devices()[0]["number"]  # expect: error


def wrong_light_control(a: pygpu.GPUArray) -> None:
    a.size()  # expect: error
    a.size = 3  # expect: error
    a.nope  # expect: error
    pygpu.nope  # expect: error
    pygpu.cudaSetDevice("a")  # expect: error
    pygpu.cudaGetDevice() + 1  # expect: error
    pygpu.cudaStream_t().last_status() + 1  # expect: error
