"""Host memory that processes share by handles."""

import gc
import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import hamr
import hamr.store
from tests.support.sharers import Process, open_files, total

ELEMENTS = [
    "bool",
    "int8",
    "uint64",
    "float16",
    "complex64",
    "complex128",
    "bfloat16",
    "float8_e5m2",
]


@pytest.fixture
def other():
    with Process() as process:
        yield process


@pytest.mark.parametrize(("allocator", "copied"), [("shared", False), ("malloc", True)])
def test_another_process_has_the_elements(other, allocator, copied):
    source = hamr.Buffer((2, 3), "f4", allocator, fill=2)
    with source.share() as handle:
        assert (handle.copied, handle.readonly) == (copied, False)
        other.opens(handle)
        here = hamr.open_shared(handle)
    assert other.read("a")[:4] == ((2, 3), "float32", False, -1)
    other.fill("a", 5)
    assert total(here) == 30, "it is the same memory"
    assert total(source) == (12 if copied else 30)
    here[1, 2] = 0
    assert other.values("a") == [[5, 5, 5], [5, 5, 0]]
    assert here.source_protocol == "share"


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("allocator", ["shared", "malloc"])
def test_elements_of_every_kind_and_layout(dtype, allocator):
    source = hamr.Buffer((4, 5), dtype, allocator, fill=1)
    source[1, 2] = 0
    for index in [..., (slice(None, None, -1), slice(1, None, 2)), 1, (1, 2), (slice(2), None)]:
        part = source[index] if index != (1, 2) else source[1:2, 2].reshape(())
        with part.share() as handle:
            found = hamr.open_shared(handle)
        assert (found.dtype, found.shape) == (part.dtype, part.shape)
        assert found.get().tobytes() == part.get().tobytes()
        if allocator == "shared":
            assert found.strides == part.strides


def test_no_elements():
    for source in (hamr.Buffer((3, 0, 2), "f4"), hamr.Buffer(4, "u1", "shared")[4:]):
        with source.share(copy=False, readonly=True) as handle:
            assert handle.descriptors == ()
            found = hamr.open_shared(handle)
        assert (found.shape, found.dtype) == (source.shape, source.dtype)


def test_what_copies_and_what_does_not():
    own, plain = hamr.Buffer(3, "f4", "shared"), hamr.Buffer(3, "f4")
    with pytest.raises(ValueError, match=r"copy is False.*memory of 12 bytes .allocator malloc"):
        plain.share(copy=False)
    with pytest.raises(ValueError, match="readonly is True: accepted is it with copy=True"):
        plain.share(readonly=True)
    assert plain.share(copy=True, readonly=True).readonly
    handle = own.share(copy=True)
    assert handle.copied
    own.fill(7)
    hamr.open_shared(handle).fill(8)
    assert total(own) == 21
    again = hamr.open_shared(handle).share(copy=False)
    assert total(hamr.open_shared(again)) == 24, "what was opened is in place from then on"
    for bad in ({"copy": 1}, {"readonly": None}):
        with pytest.raises(TypeError, match=f"{next(iter(bad))} is"):
            own.share(**bad)
    own.close()
    with pytest.raises(hamr.FreedBuffer):
        own.share()


@pytest.mark.parametrize("copy", [False, True])
def test_the_kernel_refuses_writers_where_it_is_for_reading_only(other, copy):
    source = hamr.Buffer(1000, "f4", "shared", fill=1)
    with source.share(copy=copy, readonly=True) as handle:
        other.opens(handle)
        here = hamr.open_shared(handle)
        code = "import os, mmap, sys; mmap.mmap(int(sys.argv[1]), 4096)"
        (number,) = handle.descriptors
        writer = subprocess.run(
            [sys.executable, "-c", code, str(number)], pass_fds=[number], capture_output=True
        )
        assert b"PermissionError" in writer.stderr
    assert here.readonly
    with pytest.raises(ValueError, match="read-only"):
        here.fill(1)
    onwards = here[5:].share()
    assert (onwards.readonly, onwards.copied) == (True, False)
    source.fill(2)
    assert total(here) == (1000 if copy else 2000)
    script = (
        "import ctypes, hamr, socket, sys\n"
        "found = hamr.open_shared(socket.socket(fileno=int(sys.argv[1])))\n"
        "ctypes.memset(found.ptr, 1, 1)\n"
    )
    near, far = socket.socketpair()
    with near, far, onwards:
        onwards.send(near)
        found = subprocess.run(
            [sys.executable, "-c", script, str(far.fileno())], pass_fds=[far.fileno()], check=False
        )
    assert found.returncode == -signal.SIGSEGV


def written_by(handle):
    """What comes of opening a handle's descriptor anew and writing to it."""
    (number,) = handle.descriptors
    code = (
        "import mmap, os, sys\n"
        "again = os.open(f'/proc/self/fd/{sys.argv[1]}', os.O_RDWR)\n"
        "mmap.mmap(again, 4096)[0] = 1\n"
    )
    command = [sys.executable, "-c", code, str(number)]
    done = subprocess.run(command, pass_fds=[number], capture_output=True, check=False)
    return done.stderr.decode()


def test_whom_the_kernel_keeps_from_writing(tmp_path):
    """A copy and a sealed object are out of reach, as docs/sharing.md has it; in place is not."""
    source = hamr.Buffer(1000, "f4", "shared", fill=0)
    with source.share(copy=True, readonly=True) as copied:
        assert "PermissionError" in written_by(copied)
        assert total(hamr.open_shared(copied)) == 0
    path = str(tmp_path / "store" / "socket")
    with hamr.store.Server(path), hamr.store.connect(path) as client:
        found = client.get(client.put(np.zeros(100_000)))
        with found.share(readonly=True) as stored:
            assert not stored.copied
            assert "PermissionError" in written_by(stored)
    with source.share(readonly=True) as in_place:
        assert not written_by(in_place)
        assert total(source) != 0


def test_a_read_only_buffer_stays_one():
    source = hamr.Buffer(3, "f4", "shared", fill=1)
    with hamr.buffer(memoryview(bytes(8))).share() as handle:
        assert handle.copied
        assert not hamr.open_shared(handle).readonly, "a copy is its receivers'"
    kept = hamr.open_shared(source.share(readonly=True)).share()
    assert kept.readonly


def test_the_memory_outlives_its_maker(other):
    with Process() as maker:
        maker.make("a", (3,), "i4", "shared", None, 4)
        found = maker.shared("a")
        maker.hands(other, "a")
        maker.kill()
    assert total(found) == 12
    other.fill("a", 5)
    assert total(found) == 15
    other.kill()
    assert total(found) == 15


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM])
def test_sockets_of_each_kind(kind):
    near, far = socket.socketpair(socket.AF_UNIX, kind)
    with near, far:
        for value in (1, 2):
            near.send(b"before")
            with hamr.Buffer(5, "f4", "shared", fill=value).share() as handle:
                handle.send(near)
            near.send(b"after")
            assert far.recv(6) == b"before"
            assert total(hamr.open_shared(far)) == 5 * value
            assert far.recv(5) == b"after"


def test_a_transport_of_the_programs_own():
    with hamr.Buffer(5, "f4", "shared", fill=3).share() as handle:
        frame, numbers = handle.to_bytes(), [os.dup(each) for each in handle.descriptors]
    for source in (frame, bytearray(frame), memoryview(frame)):
        assert total(hamr.open_shared(source, numbers)) == 15
    for each in numbers:
        os.close(each)


def test_closed_handles():
    handle = hamr.Buffer(5, "f4", "shared").share()
    assert repr(handle) == "<hamr.SharedHandle>"
    (number,) = handle.descriptors
    assert not os.get_inheritable(number)
    handle.close()
    handle.close()
    assert repr(handle) == "<hamr.SharedHandle closed>"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    near, far = socket.socketpair()
    for use in (
        handle.to_bytes,
        lambda: handle.descriptors,
        lambda: handle.send(near),
        lambda: hamr.open_shared(handle),
    ):
        with pytest.raises(ValueError, match="was closed"):
            use()
    near.close()
    with pytest.raises(EOFError, match="closed"):
        hamr.open_shared(far)
    far.close()


def test_plain_pickles_are_refused():
    with hamr.Buffer(5, "f4", "shared").share() as handle, pytest.raises(TypeError, match="pickle"):
        pickle.dumps(handle)
    found = hamr.open_shared(hamr.Buffer(3, "f4", fill=2).share())
    assert total(pickle.loads(pickle.dumps(found))) == 6, "a buffer's has the elements"


def fill_shared(handle, queue, pipe):
    """What a process does that gets handles by each way of multiprocessing."""
    handles = [handle, queue.get(timeout=60), pipe.recv()]
    for value, each in enumerate(handles):
        assert all(not os.get_inheritable(number) for number in each.descriptors)
        hamr.open_shared(each).fill(value + 1)


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_multiprocessing(method):
    context = multiprocessing.get_context(method)
    buffers = [hamr.Buffer(10, "f4", "shared") for _ in range(3)]
    handles = [each.share() for each in buffers]
    queue, (near, far) = context.Queue(), context.Pipe()
    process = context.Process(target=fill_shared, args=(handles[0], queue, far))
    process.start()
    queue.put(handles[1])
    near.send(handles[2])
    process.join(60)
    assert process.exitcode == 0
    assert [total(each) for each in buffers] == [10, 20, 30]
    queue.close()


def test_a_forked_child_has_what_its_parent_opened():
    source = hamr.Buffer(10, "f4", "shared", fill=1)
    handle = source.share()
    found = hamr.open_shared(handle)
    child = os.fork()
    if not child:
        try:
            again = hamr.open_shared(handle)
            again.fill(float(np.asarray(found).sum()))
            onwards = found.share()
            assert onwards.copied, "it is the parent's"
            assert total(hamr.open_shared(onwards)) == 100
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert total(found) == 100


def test_no_descriptor_is_left(other):
    source, plain = hamr.Buffer((4, 4), "f4", "shared"), hamr.Buffer(100, "f4")

    def once():
        for each in (source[1:], plain):
            with each.share() as handle:
                other.opens(handle)
                found = hamr.open_shared(handle)
                del found
            other.drop("a")
        gc.collect()

    once()
    before = open_files(), other.files()
    for _ in range(20):
        once()
    assert (open_files(), other.files()) == before


def test_objects_of_the_store_are_in_place(tmp_path):
    path = str(tmp_path / "store" / "socket")
    with hamr.store.Server(path, limit="host=16MiB"), hamr.store.connect(path) as client:
        large, small = (client.get(client.put(np.full(n, 3, "i4"))) for n in (100_000, 10))
        with large[10:20].share(copy=False) as handle, Process() as process:
            assert handle.readonly
            process.opens(handle)
            large.close()
            for info in list(client.list()):
                client.delete(info.id, force=True)
            assert process.values("a") == [3] * 10
        with small.share() as handle:
            assert handle.copied, "beside others, it has no memory of its own"
            assert total(hamr.open_shared(handle)) == 30
        with client.create(100_000, "i4") as builder:
            builder.buffer.fill(1)
            with builder.buffer.share() as handle:
                assert handle.copied, "it is its maker's still"


def test_handles_end_with_their_objects():
    gc.collect()
    before = open_files()
    for _ in range(10):
        hamr.Buffer(10, "f4", "shared").share()
    gc.collect()
    assert open_files() == before
