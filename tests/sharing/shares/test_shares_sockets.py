"""Handles over sockets that wait, that are interrupted, and that bring what lies."""

import array
import contextlib
import os
import random
import re
import signal
import socket
import threading
import time

import pytest

import hamr
from tests.support.processes import scaled
from tests.support.sharers import total

KINDS = [socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM]


@pytest.fixture
def handle():
    with hamr.Buffer(100, "f4", "shared", fill=1).share() as handle:
        yield handle


@pytest.fixture(params=KINDS, ids=["stream", "packets", "datagrams"])
def ends(request):
    near, far = socket.socketpair(socket.AF_UNIX, request.param)
    with near, far:
        yield near, far


def fill_up(connection):
    """Send until no more goes in; how much went."""
    connection.setblocking(False)
    sent = 0
    try:
        while True:
            sent += connection.send(b"x" * 1024)
    except BlockingIOError:
        return sent
    finally:
        connection.setblocking(True)


def empty(connection, left):
    while left:
        left -= len(connection.recv(min(left, 1024)))


def test_nothing_comes_in_time(ends):
    _, far = ends
    far.settimeout(0.01)
    with pytest.raises(TimeoutError):
        hamr.open_shared(far)
    far.setblocking(False)
    with pytest.raises(BlockingIOError):
        hamr.open_shared(far)


def test_there_is_no_room_in_time(ends, handle):
    near, far = ends
    filled = fill_up(near)
    near.settimeout(0.01)
    with pytest.raises(TimeoutError):
        handle.send(near)
    near.setblocking(False)
    with pytest.raises(BlockingIOError):
        handle.send(near)
    empty(far, filled)
    handle.send(near)
    assert total(hamr.open_shared(far)) == 100


def test_sockets_that_wait_for_some_time(ends, handle):
    near, far = ends
    for end in ends:
        end.settimeout(60)
    sender = threading.Timer(0.05, handle.send, [near])
    sender.start()
    assert total(hamr.open_shared(far)) == 100
    sender.join()


def test_the_other_end_is_closed(handle):
    for kind in KINDS[:2]:
        near, far = socket.socketpair(socket.AF_UNIX, kind)
        far.close()
        with near, pytest.raises(BrokenPipeError):
            handle.send(near)
    near.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        handle.send(near)
    with pytest.raises(OSError, match="Bad file descriptor"):
        hamr.open_shared(near)


def test_a_handle_is_closed_while_it_is_sent(ends):
    """What is under way arrives; nothing else has the number of a descriptor meanwhile."""
    near, far = ends
    filled = fill_up(near)
    handle = hamr.Buffer(100, "f4", "shared", fill=1).share()
    (number,) = handle.descriptors
    sender = threading.Thread(target=handle.send, args=[near])
    sender.start()
    time.sleep(0.05)  # it waits for room, or does not yet
    handle.close()
    empty(far, filled)
    sender.join()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    far.setblocking(False)
    with contextlib.suppress(BlockingIOError):  # it was closed before
        assert total(hamr.open_shared(far)) == 100


def interrupted(connection, handler):
    """What comes of a receiver that a signal comes to."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        return hamr.open_shared(connection)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_signals_come_while_nothing_else_does(ends, handle):
    near, far = ends

    def raises(number, frame):
        raise KeyError("from the handler")

    with pytest.raises(KeyError, match="from the handler"):
        interrupted(far, raises)
    assert total(interrupted(far, lambda number, frame: handle.send(near))) == 100


class Own(socket.socket):
    """A socket of a program's that counts."""

    calls = 0

    def sendmsg(self, *arguments):
        self.calls += 1
        return super().sendmsg(*arguments)

    def recvmsg(self, *arguments):
        self.calls += 1
        return super().recvmsg(*arguments)


def test_sockets_of_a_class_of_the_programs_own(handle):
    near, far = (
        Own(fileno=end.detach()) for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    )
    with near, far:
        handle.send(near)
        assert total(hamr.open_shared(far)) == 100
        assert near.calls == far.calls == 1


def outcome(source, *descriptors):
    """The elements, or the error and its words, without a descriptor's number."""
    try:
        found = hamr.open_shared(source, *descriptors)
    except Exception as error:
        return type(error), re.sub(r"descriptor \d+", "descriptor", str(error))
    return found.shape, found.strides, str(found.dtype), found.readonly, found.ptr != 0


def memory_files():
    """How many descriptors are of memory and sockets: Go opens others when it likes."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the folder itself
            found += os.readlink(f"/proc/self/fd/{number}").startswith(("/memfd:", "socket:"))
    return found


def test_what_lies_is_the_same_by_each_way(handle):
    """A socket of packets, of which C receives, one of bytes, of which Python does, and bytes."""
    good, chance = handle.to_bytes(), random.Random(15)
    packets = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    by_python = Own(fileno=os.dup(packets[1].fileno()))
    known = set()
    before = memory_files()
    for _ in range(scaled(20_000, 500)):
        bad = bytearray(good)
        for _ in range(chance.randint(0, 3)):
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        bad = bytes(bad[: chance.choice([len(bad)] * 4 + [1 + chance.randrange(len(bad))])])
        bad += bytes(chance.choice([0, 0, 0, 1, 100]))
        count = chance.choice([1, 1, 1, 0, 2])
        numbers = list(handle.descriptors) * count
        told = outcome(bad, numbers)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", numbers))]
        for end in packets[1], by_python:
            packets[0].sendmsg([bad], rights if numbers else [])
            assert outcome(end) == told
        known.add(told)
    assert memory_files() == before
    for end in (*packets, by_python):
        end.close()
    assert len(known) > 10


@pytest.mark.parametrize("count", [3, 16, 17, 253])
def test_other_numbers_of_descriptors_than_a_handle_has(handle, count):
    numbers = list(handle.descriptors) * count
    with pytest.raises(ValueError, match="descriptors"):
        hamr.open_shared(handle.to_bytes(), numbers)


@pytest.mark.parametrize("number", [1 << 31, 1 << 80, -(1 << 31) - 1])
def test_numbers_that_are_no_descriptors(handle, number):
    with pytest.raises(ValueError, match="descriptor"):
        hamr.open_shared(handle.to_bytes(), [number])
