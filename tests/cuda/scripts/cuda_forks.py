"""One situation round a fork with CUDA in use, or not yet.

python -m tests.cuda.scripts.cuda_forks CASE
"""

import contextlib
import gc
import multiprocessing
import os
import sys

import numpy as np
import pytest

import hamr
from tests.scripts import forking
from tests.support.contents import on_host

N = 100


@contextlib.contextmanager
def refused():
    """A ForkError, at once, that says what to do."""
    with pytest.raises(hamr.ForkError, match="spawn"):
        yield


def parents():
    """Buffers of every CUDA allocator, with all that can be made of them."""
    allocators = "cuda", "cuda_async", "cuda_uva", "cuda_vmm", "cuda_host"
    made = [hamr.Buffer(N, "f4", allocator, fill=1) for allocator in allocators]
    for buffer in made:
        buffer.synchronize()
    return made


def device_buffers():
    """Every use of a parent's device memory is refused at once, and none hangs."""
    buffers = parents()
    handles = [b.get_cuda_accessible() for b in buffers[:4]]
    stream = hamr.Stream(device=0)
    event = stream.record()

    def child():
        for buffer in buffers:
            for use in (
                lambda: buffer.copy("malloc"),  # noqa: B023
                lambda: buffer.astype("f8"),  # noqa: B023
                lambda: buffer.get_cuda_accessible(),  # noqa: B023
                lambda: buffer.append(1),  # noqa: B023
                lambda: buffer.fill(2),  # noqa: B023
                lambda: buffer.move("malloc"),  # noqa: B023
                lambda: buffer.get(),  # noqa: B023
                lambda: buffer.synchronize(),  # noqa: B023
                lambda: str(buffer),  # noqa: B023
                lambda: buffer.get_host_accessible(),  # noqa: B023
            ):
                with refused():
                    use()
            assert buffer.shape == (N,)
            assert buffer.device in (-1, 0)
            assert "hamr.Buffer" in repr(buffer)
        for x in (*buffers[:3], *handles):
            with refused():
                x.__cuda_array_interface__  # noqa: B018
        for use in (stream.synchronize, stream.record, event.synchronize, lambda: event.done):
            with refused():
                use()

    forking.run(child)
    for buffer in buffers:
        assert on_host(buffer).tolist() == [1] * N


def host_buffers():
    """Host memory works in the child as if there were no CUDA."""
    device = parents()
    own, cpp, shared = hamr.Buffer(N, fill=1), hamr.Buffer(N, "f4", "cpp", fill=2), np.ones(N)
    adopted = hamr.buffer(shared)

    def child():
        assert on_host(own).sum() == N
        own.append(3)
        cpp.resize(2 * N, 4)
        adopted.fill(5)
        assert on_host(own).sum() == N + 3
        assert on_host(cpp.astype("i2")).sum() == 6 * N
        assert shared.sum() == 5 * N
        assert np.asarray(hamr.Buffer(N, fill=7)).sum() == 7 * N

    forking.run(child)
    assert shared.sum() == N
    assert len(device) == 5


def pending_host_buffers():
    """The child never has what a device was still to write to memory that somebody page-locked."""
    from tests.cuda import driver  # which uses it

    arrays = np.zeros((2, N), "f4")
    with driver.locked(arrays):
        written, read = (hamr.buffer(a, transfer="async") for a in arrays)
        device = hamr.Buffer(N, "f4", "cuda", fill=7, transfer="async")
        written.assign(device)
        device.assign(read)

        def child():
            for use in (
                lambda: np.asarray(written),
                lambda: written.get(),
                lambda: written[0].item(),
                lambda: written[::2].copy(),
                lambda: np.from_dlpack(written),
                lambda: written.get_host_accessible(),
                lambda: str(written),
                lambda: written.append(1),
                lambda: written.synchronize(),
            ):
                with pytest.raises(hamr.ForkError, match="synchronize"):
                    use()
            assert written.shape == (N,)
            assert not on_host(read).any()

        forking.run(child)
        assert on_host(written).tolist() == [7] * N
        forking.run(lambda: written.fill(on_host(written)[0] + 1))
        assert on_host(written).tolist() == [7] * N


def new_use_in_the_child():
    """The driver does not survive: the child is told so, whatever it tries."""
    buffers = parents()

    class Foreign:
        __cuda_array_interface__ = {
            "shape": (N,), "typestr": "<f4", "data": (buffers[0].ptr, False), "version": 3,
        }  # fmt: skip

    def child():
        for use in (
            lambda: hamr.Buffer(N, "f4", "cuda"),
            lambda: hamr.Buffer(N, "f4", "cuda_host"),
            lambda: hamr.Buffer(N).copy("cuda_async"),
            lambda: hamr.Buffer(N).get_cuda_accessible(),
            lambda: hamr.Stream(device=0),
            lambda: hamr.memory_info(0),
            lambda: hamr.device(0),
            lambda: hamr.buffer(Foreign()),
        ):
            with refused():
                use()
        assert hamr.backends()["cuda"]["available"] is False

    forking.run(child)
    assert on_host(buffers[0]).sum() == N


def exits():
    """A child with a parent's buffers ends cleanly, by both ways, whatever it drops."""
    for finish in (os._exit, sys.exit):
        exits_by(finish)


def exits_by(finish):
    buffers = parents()
    stream = hamr.Stream(device=0)
    buffers.append(hamr.Buffer(N, "f4", "cuda_async", fill=1, stream=stream, transfer="async"))
    handles = [b.get_host_accessible() for b in buffers]
    child = os.fork()
    if child == 0:
        buffers.pop().close()
        buffers.pop().free()
        del buffers[0]
        handles.clear()
        finish(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, (finish, status)
    for buffer in buffers:
        assert on_host(buffer).tolist() == [1] * N


def before_use():
    """A child of a parent that has not used CUDA yet uses it."""
    host = hamr.Buffer(N, fill=1)
    array = np.ones(N, "f4")

    def child():
        copied = host.copy("cuda_async")
        assert on_host(copied).sum() == N
        assert on_host(hamr.buffer(array).copy("cuda")).sum() == N
        assert hamr.backends()["cuda"]["available"]
        forking.run(grandchild)
        assert on_host(copied).sum() == N

    def grandchild():
        assert on_host(host).sum() == N
        with refused():
            hamr.Buffer(N, "f4", "cuda")

    for _ in range(3):
        forking.run(child)
    assert on_host(hamr.Buffer(N, "f4", "cuda", fill=2)).sum() == 2 * N


def while_collecting(work):
    """Do work in the middle of the collection that some allocation of the next calls starts."""
    pending = [work]

    def once(phase, info):
        if phase == "start" and pending:
            pending.pop()()

    gc.callbacks.append(once)
    return pending


def in_finalisers():
    """A finaliser gives the memory up and forks, anywhere inside a call: the child is told so."""
    uses = (
        lambda b: b.get_host_accessible(), lambda b: b.get(np.empty(N, "f4")), lambda b: b.copy(),
        lambda b: b.__cuda_array_interface__, lambda b: b.__dlpack__(stream=1), memoryview,
        lambda b: b.get_cuda_accessible(), lambda b: b.__dlpack__(dl_device=(1, 0)),
        lambda b: hamr.Buffer(N, "f4", "cuda"),
    )  # fmt: skip
    parent, before = os.getpid(), gc.get_threshold()
    for use in uses:
        for kind in ("cuda", "cuda_uva"):
            for allocations in range(1, 6):
                buffer = hamr.Buffer(N, "f4", kind, fill=1, stream=hamr.Stream(device=0))
                children = []

                def fork(buffer=buffer, children=children, change=allocations % 2):
                    if change:
                        buffer.free()
                    children.append(os.fork())

                gc.collect()
                pending = while_collecting(fork)
                gc.set_threshold(allocations)
                with contextlib.suppress(hamr.Error, BufferError, AttributeError, ValueError):
                    use(buffer)
                gc.set_threshold(*before)
                gc.callbacks.pop()
                if os.getpid() != parent:
                    os._exit(0)
                assert pending or os.waitpid(children[0], 0)[1] == 0, (use, kind, allocations)


def in_a_temporary():
    """A finaliser forks while a device's memory is given host memory's elements."""
    from tests.cuda import driver  # which starts it

    parent, before = os.getpid(), gc.get_threshold()
    buffer, seen = hamr.Buffer(N, "f4", fill=1), 0
    with driver.on(0):
        buffer.get_cuda_accessible(0).close()
        for allocations in range(1, 15):
            buffer.get_cuda_accessible(0).close()  # whose memory is at hand then
            children, raised, made = [], None, None
            gc.collect()
            pending = while_collecting(lambda children=children: children.append(os.fork()))
            gc.set_threshold(allocations)
            try:
                made = buffer.get_cuda_accessible(0)
            except (hamr.Error, RuntimeError) as error:
                raised = error
            gc.set_threshold(*before)
            gc.callbacks.pop()
            if os.getpid() != parent:
                if made is not None:  # from CPython 3.12 on it collects behind the call
                    try:
                        made.get()
                    except hamr.ForkError as error:
                        raised = error
                os._exit(0 if isinstance(raised, hamr.ForkError) else 1)
            assert raised is None
            assert made.is_temporary
            made.close()
            assert pending or os.waitpid(children[0], 0)[1] == 0, allocations
            seen += not pending
    assert seen


def in_an_exporter():
    """What the elements are copied into forks while it exports its memory."""
    out, children, parent = np.empty(N, "f4"), [], os.getpid()

    class Forking:
        def __buffer__(self, flags):
            children.append(os.fork())
            return memoryview(out)

    buffer = parents()[0]
    with contextlib.suppress(hamr.Error, TypeError):
        buffer.get(Forking())
    if os.getpid() != parent:
        os._exit(0)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)


def in_threads():
    """Forks beside threads that use the device."""
    import threading

    stop = threading.Event()

    def busy():
        while not stop.is_set():
            on_host(hamr.Buffer(N, "f4", "cuda_async", fill=1).copy("cuda_host"))

    threads = [threading.Thread(target=busy) for _ in range(3)]
    buffers = parents()
    for thread in threads:
        thread.start()

    def child():
        assert np.asarray(hamr.Buffer(N, fill=7)).sum() == 7 * N
        with refused():
            buffers[0].copy("malloc")
        buffers.clear()

    try:
        for _ in range(20):
            forking.run(child, patience=30)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def double(value):
    """Work for a process of its own."""
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=value)
    buffer.append(buffer)
    return buffer


def spawns():
    """Other ways of starting processes use CUDA in parent and child; buffers are sent as copies."""
    for method in ("spawn", "forkserver"):
        mine = hamr.Buffer(N, "f4", "cuda", fill=1)
        with multiprocessing.get_context(method).Pool(2) as pool:
            for value, found in enumerate(pool.map(double, range(4))):
                assert found.allocator == hamr.Allocator.cuda_async
                assert on_host(found).tolist() == [value] * (2 * N)
        assert on_host(mine).sum() == N


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("done")
