"""Every kind of memory and change once, without NumPy: what valgrind watches."""

import array
import contextlib
import ctypes
import gc
import os
import pickle
import threading

import hamr

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


class Interface:
    memory = array.array("d", range(12))
    __array_interface__ = {
        "shape": (4, 3),
        "typestr": "<f8",
        "data": (memory.buffer_info()[0], False),
        "strides": (24, 8),
        "version": 3,
    }


def own(allocator, dtype, n):
    """Make, share, change and free memory of hamr's."""
    b = hamr.Buffer(n, dtype, allocator, fill=3)
    view, handle = memoryview(b), b.get_host_accessible()
    inner = memoryview(handle)
    for change in (
        lambda: b.resize(2 * n, 4),
        lambda: b.append(7),
        lambda: b.append([1, 2, 3]),
        lambda: b.append(b),
        lambda: b.set(b[:n], n, 1, n - 1),
        lambda: b.fill(9),
        lambda: b.assign([i % 100 for i in range(n)]),
        lambda: b.reserve(5 * n, 1),
        lambda: b.resize(n // 2),
        lambda: b.move("cpp"),
        lambda: b.resize((n, 3), 5),
        lambda: b.move("malloc"),
        lambda: b.swap(hamr.Buffer(n, dtype)),
        lambda: b.fill(2),
    ):
        change()
        assert view[n - 1] == inner[n - 1] == 3
    handle.close()
    assert inner[0] == 3
    b[n // 2 :] = b[: n - n // 2]
    hamr.copy_many([b[:3], b[3:6]], [b[6:9], bytearray(b"abc")])
    with contextlib.suppress(ValueError):
        hamr.copy_many([b, b"abc"], [b, b"abc"])
    hamr.copy_blocks(b, [0, 2, 0], b, range(3))
    with contextlib.suppress(IndexError):
        hamr.copy_blocks(b, [0], b, [n])
    b[::3] = 1
    b[::-1].copy("cpp").astype("f4").astype("c16")
    str(b), repr(b), b[1].item(), pickle.loads(pickle.dumps(b[1:])), b.synchronize()
    assert pickle.loads(pickle.dumps(b[1:], 5))[0].item() == b[1].item()
    wide = b[None, :, None][..., ::2]
    assert wide.shape == (1, n, 1)
    assert len(bytes(b)) == b.nbytes
    hamr.buffer(wide).copy()
    b.free()
    b.resize(3, 1)
    b.close()
    return view


def adopted():
    """Share memory of others, and let it go in odd orders."""
    source = bytearray(range(200))
    b = hamr.buffer(source)
    part = b[10:100:7]
    other = hamr.buffer(memoryview(part))
    del b, part
    gc.collect()
    assert other[1].item() == 17
    other.resize(50, 1)
    source.append(1)
    m = hamr.buffer(Interface())
    assert m[:, 1].copy()[3].item() == 10
    m.append(5)
    taken = hamr.Buffer.from_pointer(libc.malloc(80), 10, take=True)
    taken.fill(1)
    taken.append(2)
    small = hamr.Buffer.from_pointer(libc.malloc(8), 1, take=True)
    small.close()
    assert len(bytes(hamr.Buffer(8, fill=1))) == 64
    for bad in (
        {"shape": (2**62,)},
        {"typestr": "<q"},
        {"strides": (1,)},
        {"data": b"123"},
        {"data": (0, 1)},
    ):
        wrong = type("Wrong", (), {"__array_interface__": {**Interface.__array_interface__, **bad}})
        try:
            hamr.buffer(wrong())
        except (TypeError, ValueError):
            continue
        raise AssertionError(bad)


def many_dimensions():
    b = hamr.Buffer((1,) * 60 + (2, 3, 4, 5), "u1", fill=1)
    assert b.ndim == 64
    assert memoryview(bytes(b)).nbytes == 120
    c = b[(0,) * 59]
    c.swap(hamr.Buffer(3))
    b.swap(c)
    b.copy(), c.copy()


def child(kept):
    for b in kept:
        str(b)
    kept[0].append(1)
    kept[1].resize(10_000, 1)
    assert len(bytes(kept[2])) == 100
    own("malloc", "i4", 50)
    kept.clear()
    gc.collect()


def main():
    for allocator in ("malloc", "cpp"):
        for dtype, n in (("f8", 10), ("u1", 5000), ("i2", 100_000)):
            own(allocator, dtype, n).release()
    adopted()
    many_dimensions()
    threads = [threading.Thread(target=own, args=("malloc", "i4", 60 + i)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = [
        hamr.Buffer(10, fill=1),
        hamr.Buffer(10, allocator="cpp", fill=2),
        hamr.buffer(bytearray(100)),
    ]
    process = os.fork()
    if process == 0:
        child(kept)
        print("child ended well", flush=True)
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
    kept.clear()
    hamr.trim()
    host = hamr.stats()["spaces"]["host"]
    assert host["live"] == host["adopted"] == hamr.stats()["references"] == 0
    print("ended well")


main()
