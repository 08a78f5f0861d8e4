"""Buffers as messages: mpirun -n 4 python tests/scripts/mpi_messages.py. Rank 0 prints OK."""

import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
from mpi4py import MPI

import hamr
from tests.support import producers

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size
LEFT, RIGHT = (RANK - 1) % SIZE, (RANK + 1) % SIZE


def refused(error, match, call, *arguments, **named):
    with pytest.raises(error, match=match):
        call(*arguments, **named)


def values_of(dtype, rank):
    return (np.arange(6) % 2 + rank).astype(dtype)


def point_to_point():
    """Every element type, buffers and handles, in both kinds of call."""
    for dtype in producers.DTYPES:
        for allocator in producers.ALLOCATORS:
            sent = hamr.Buffer(6, dtype, allocator, data=values_of(dtype, RANK))
            received = hamr.Buffer(6, dtype, allocator)
            if RANK % 2:
                WORLD.Send(sent, RIGHT)
                WORLD.Recv(received, LEFT)
            else:
                WORLD.Recv(received.get_host_accessible(), LEFT)
                WORLD.Send(sent.get_host_accessible(), RIGHT)
            producers.assert_same(received, values_of(dtype, LEFT))

            received.fill(0)
            requests = [WORLD.Irecv(received, LEFT), WORLD.Isend(sent, RIGHT)]
            # The message keeps the memory, whatever the buffer does.
            address, shared = received.ptr, np.asarray(received)
            received.resize(100_000)
            sent.close()
            MPI.Request.Waitall(requests)
            assert shared.ctypes.data == address
            np.testing.assert_array_equal(shared, values_of(dtype, LEFT))


def element_types():
    """The type that MPI is told is the buffer's, for those that MPI has."""
    for dtype in producers.DTYPES:
        one = hamr.Buffer(2, dtype, fill=1)
        status = MPI.Status()
        out = hamr.Buffer(2, dtype)
        WORLD.Sendrecv(one, RANK, recvbuf=out, source=RANK, status=status)
        named = MPI.Datatype.fromcode(np.dtype(dtype).char)
        assert status.Get_count(named) == 2, dtype
        if dtype in ("bool", "float16"):
            continue  # MPI does not add the one, and may not have the other
        WORLD.Allreduce(one, out)
        producers.assert_same(out, np.full(2, SIZE, dtype))
    truth = hamr.Buffer(2, "bool", data=[RANK == 1, False])
    WORLD.Allreduce(MPI.IN_PLACE, truth, MPI.LOR)
    producers.assert_same(truth, np.array([True, False]))


def bytes_of_types_that_mpi_lacks():
    for dtype in ("bfloat16", "float8_e4m3fn"):
        bits = np.arange(8, dtype="u1") + RANK
        size = hamr.Buffer(0, dtype).itemsize
        sent = hamr.Buffer.from_pointer(bits.ctypes.data, 8 // size, dtype, owner=bits)
        received = hamr.Buffer(8 // size, dtype)
        WORLD.Sendrecv([sent, MPI.BYTE], RIGHT, recvbuf=[received, MPI.BYTE], source=LEFT)
        found = np.asarray(received).view("u1")
        np.testing.assert_array_equal(found, np.arange(8, dtype="u1") + LEFT)


def collectives():
    ramp = np.arange(4.0)
    one = hamr.Buffer(4, data=ramp if RANK == 0 else np.zeros(4))
    WORLD.Bcast(one)
    producers.assert_same(one, ramp)

    part = hamr.Buffer(2)
    whole = hamr.Buffer((SIZE, 2), data=np.arange(2.0 * SIZE).reshape(SIZE, 2))
    WORLD.Scatter(whole if RANK == 0 else None, part)
    producers.assert_same(part, np.array([2.0 * RANK, 2 * RANK + 1]))
    part[...] = hamr.buffer(np.asarray(part) + 1)
    gathered = hamr.Buffer((SIZE, 2), fill=0)
    WORLD.Gather(part, gathered if RANK == 0 else None)
    if RANK == 0:
        np.testing.assert_array_equal(np.asarray(gathered), np.asarray(whole) + 1)
    WORLD.Allgather(part, gathered)
    np.testing.assert_array_equal(np.asarray(gathered), np.asarray(whole) + 1)

    mine = hamr.Buffer(SIZE, "int32", data=np.arange(SIZE) + 10 * RANK)
    theirs = hamr.Buffer(SIZE, "int32")
    WORLD.Alltoall(mine, theirs)
    producers.assert_same(theirs, (10 * np.arange(SIZE) + RANK).astype("i4"))


def reductions():
    mine = hamr.Buffer(1000, fill=RANK)
    total = hamr.Buffer(1000)
    expected = np.full(1000, SIZE * (SIZE - 1) / 2)
    for send, receive in (
        (mine, total),
        ([mine, MPI.DOUBLE], [total, MPI.DOUBLE]),
        ((mine, 1000, MPI.DOUBLE), total),
        (mine.get_host_accessible(), total.get_host_accessible()),
        (mine, np.asarray(total)),
    ):
        total.fill(-1)
        WORLD.Allreduce(send, receive)
        producers.assert_same(total, expected)
    WORLD.Allreduce(MPI.IN_PLACE, mine, MPI.MAX)
    producers.assert_same(mine, np.full(1000, SIZE - 1.0))
    # Part of a buffer, which is another's memory.
    mine.fill(RANK)
    WORLD.Allreduce(MPI.IN_PLACE, mine[100:200])
    np.testing.assert_array_equal(np.asarray(mine)[100:200], expected[:100])
    assert mine[99].item() == mine[200].item() == RANK


def layouts():
    """Messages have no strides: elements without gaps go in the order in which they lie."""
    square = np.arange(12.0).reshape(3, 4)
    fortran = hamr.buffer(np.asfortranarray(square))
    out = hamr.Buffer(12)
    WORLD.Sendrecv(fortran, RIGHT, recvbuf=out, source=LEFT)
    producers.assert_same(out, square.ravel("F"))
    strided = hamr.buffer(square)[:, 1]
    refused(BufferError, "", WORLD.Send, strided, RIGHT)
    refused(BufferError, "", WORLD.Recv, strided, LEFT)
    WORLD.Sendrecv(strided.copy(), RIGHT, recvbuf=[out, 3, MPI.DOUBLE], source=LEFT)
    np.testing.assert_array_equal(np.asarray(out)[:3], square[:, 1])


def refusals():
    read_only = hamr.buffer(b"abc")
    out = hamr.Buffer(3, "uint8")
    WORLD.Sendrecv(read_only, RIGHT, recvbuf=out, source=LEFT)
    assert bytes(out) == b"abc"
    refused(BufferError, "", WORLD.Recv, read_only, LEFT)
    closed = hamr.Buffer(3)
    closed.close()
    refused((hamr.FreedBuffer, BufferError), "", WORLD.Send, closed, RIGHT)
    # A message of three elements does not go beyond the two of a view.
    room = hamr.Buffer(3, "uint8", fill=0)
    refused(MPI.Exception, "TRUNC", WORLD.Sendrecv, out, RIGHT, recvbuf=room[:2], source=LEFT)
    assert room[2].item() == 0


def nothing():
    for empty in (hamr.Buffer(0), hamr.Buffer((3, 0)), hamr.buffer(np.empty(0))):
        received = hamr.Buffer(empty.shape)
        WORLD.Sendrecv(empty, RIGHT, recvbuf=received, source=LEFT)
        WORLD.Allreduce(empty, received)
        WORLD.Bcast(empty)
        assert received.shape == empty.shape


def windows():
    """One-sided: other ranks write into the buffer's memory."""
    memory = hamr.Buffer(SIZE, "int64", fill=-1)
    one, other = hamr.Buffer(1, "int64", fill=RANK), hamr.Buffer(1, "int64", fill=0)
    window = MPI.Win.Create(memory, memory.itemsize, comm=WORLD)
    window.Fence()
    window.Put(one, RIGHT, target=RANK)
    window.Fence()
    expected = np.full(SIZE, -1)
    expected[LEFT] = LEFT
    producers.assert_same(memory, expected)
    window.Get(other, LEFT, target=(RANK - 2) % SIZE)
    window.Fence()
    assert other.item() == (RANK - 2) % SIZE
    if RANK == 0:
        memory.fill(0)
    WORLD.Barrier()
    window.Lock(0)
    window.Accumulate(one, 0, target=1)
    window.Unlock(0)
    WORLD.Barrier()
    if RANK == 0:
        window.Lock(0)
        assert memory[1].item() == SIZE * (SIZE - 1) // 2
        window.Unlock(0)
    # The window keeps the memory.
    address = memory.ptr
    memory.resize(1_000_000)
    assert memory.ptr != address
    window.Fence()
    window.Put(one, RIGHT, target=RANK)
    window.Fence()
    window.Get(other, RANK, target=LEFT)
    window.Fence()
    assert other.item() == LEFT
    window.Free()


def objects():
    """Lower-case calls pickle; those of mpi4py.util send the elements out of band."""
    from mpi4py.util import pkl5

    b = hamr.Buffer((3, 4), "f4", "cpp", fill=RANK)
    back = WORLD.sendrecv(b, RIGHT, source=LEFT)
    producers.assert_same(back, np.full((3, 4), LEFT, "f4"))
    assert back.allocator == hamr.Allocator.cpp
    assert [x[0, 0].item() for x in WORLD.allgather(b)] == list(range(SIZE))
    out_of_band = pkl5.Intracomm(WORLD).bcast(b if RANK == 0 else None)
    producers.assert_same(out_of_band, np.zeros((3, 4), "f4"))
    out_of_band[...] = 5
    assert MPI.pickle.PROTOCOL >= pickle.DEFAULT_PROTOCOL
    refused(TypeError, "Handle", WORLD.send, b.get_host_accessible(), RIGHT)


def processes():
    """Signals and children are as without hamr: its Go runtime runs in every rank."""
    assert signal.getsignal(signal.SIGCHLD) in (signal.SIG_DFL, signal.SIG_IGN, None)
    done = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, check=True)
    assert done.stdout == b"42\n"


def large():
    """8 MiB, which go by another way between processes than small messages do."""
    sent, received = hamr.Buffer(1 << 20, fill=RANK), hamr.Buffer(1 << 20, fill=-1)
    WORLD.Sendrecv(sent, RIGHT, recvbuf=received, source=LEFT)
    producers.assert_same(received, np.full(1 << 20, LEFT, "f8"))


def main():
    assert SIZE == 4
    for case in (
        point_to_point, element_types, bytes_of_types_that_mpi_lacks, collectives, reductions,
        layouts, refusals, nothing, windows, objects, processes, large,
    ):  # fmt: skip
        if RANK == 0:
            print(case.__name__, flush=True)
        case()
        WORLD.Barrier()
    if RANK == 0:
        print("OK", flush=True)


try:
    main()
except BaseException:
    # The others would wait for this rank for ever.
    import traceback

    traceback.print_exc()
    sys.stderr.flush()
    WORLD.Abort(1)
